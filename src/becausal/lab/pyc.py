"""Where trials keep their bytecode: apart for each source tree, shared for what lies outside it.

Two revisions of a file may have the same size and the same second; a `.pyc` of one would then run
for the other. So each source has a cache of its own. Inside it, the places of the interpreter and
its installed packages are links into a cache shared by all sources, since these do not change.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path


def pyc_folder(cache: Path, source: str, shared: Sequence[str], environment: str) -> Path:
    """The PYTHONPYCACHEPREFIX of a source.

    `shared` are folders outside the source whose bytecode all sources may share: the standard
    library and site-packages, as the trial names them. `environment` tells installations apart
    that have the same paths but not the same packages.
    """
    root = cache.absolute() / "pyc"
    own = root / f"source-{source}"
    own.mkdir(parents=True, exist_ok=True)
    digest = hashlib.blake2b(environment.encode(), digest_size=8).hexdigest()
    common = root / f"env-{digest}"
    for folder in _outermost(shared):
        below = folder.lstrip("/")
        (common / below).mkdir(parents=True, exist_ok=True)
        link = own / below
        if link.is_symlink() or link.exists():
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.symlink(common / below, link)
        except FileExistsError:
            continue  # another worker of the same source was first
    return own


def _outermost(folders: Sequence[str]) -> list[str]:
    """Folders that are in none of the others: a link may not lie behind a link."""
    chosen: list[str] = []
    for folder in sorted({os.path.normpath(f) for f in folders if os.path.isabs(f)}, key=len):
        if not any(folder.startswith(outer.rstrip("/") + "/") for outer in chosen):
            chosen.append(folder)
    return chosen

"""Which files a Python process imported: the proof of what ran."""

from __future__ import annotations

import os
import sys
from typing import Iterable, List, Optional, Sequence, Set


def given_roots() -> List[str]:
    """Folders that the lab asks about; empty: everything but library and interpreter."""
    return [root for root in os.environ.get("BECAUSAL_ROOTS", "").split(os.pathsep) if root]


def imported_files(
    roots: Sequence[str], known: Iterable[str] = (), program: Optional[str] = None
) -> List[str]:
    """Absolute paths of files of `sys.modules` under the roots, sorted; `known` names are left out.

    Installed packages never count, even when their virtual environment lies under a root.
    """
    under = tuple(root.rstrip(os.sep) + os.sep for root in roots)
    library = _library()
    skipped = set(known)
    found: Set[str] = set()
    paths = [getattr(m, "__file__", None) for n, m in list(sys.modules.items()) if n not in skipped]
    for path in (*paths, program):
        if not isinstance(path, str) or path.startswith("<"):
            continue
        path = os.path.abspath(path)
        if not path.startswith(library) and (not under or path.startswith(under)):
            found.add(path)
    return sorted(found)


def _library() -> "tuple[str, ...]":
    """Folders whose modules are nobody's code under study: standard library, installed packages."""
    folders = {os.path.dirname(os.path.abspath(os.__file__)), _HOME}
    if sys.prefix != sys.base_prefix:
        folders.add(sys.prefix)
    folders.update(
        entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))
    )
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders)


_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

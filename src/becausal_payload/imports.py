"""Which files a Python process imported: the proof of what ran."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, whose import would cost every process of a trial 4 ms
if TYPE_CHECKING:
    from typing import List, Optional, Sequence, Set


def given_roots() -> List[str]:
    """Folders that the lab asks about; empty: everything but library and interpreter."""
    return [root for root in os.environ.get("BECAUSAL_ROOTS", "").split(os.pathsep) if root]


def imported_files(
    roots: Sequence[str], after: Optional[str] = None, program: Optional[str] = None
) -> List[str]:
    """Absolute paths of files of `sys.modules` under the roots, sorted.

    With `after`, the name of a module, only those imported later than it.

    Installed packages never count, even when their virtual environment lies under a root.
    """
    under = tuple(root.rstrip(os.sep) + os.sep for root in roots)
    library = _library()
    found: Set[str] = set()
    for path in (*_files(after), program):
        if not isinstance(path, str) or path.startswith("<"):
            continue
        path = os.path.abspath(path)
        if not path.startswith(library) and (not under or path.startswith(under)):
            found.add(path)
    return sorted(found)


def _files(after: Optional[str]) -> List[Optional[str]]:
    if after is None:
        return [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    found: List[Optional[str]] = []
    try:
        # Newest first: a forked child does not touch, and so copy, the modules of its parent.
        for name, module in reversed(sys.modules.items()):
            if name == after:
                break
            found.append(getattr(module, "__file__", None))
    except RuntimeError:
        return _files(None)  # a thread is importing at this very moment
    return found


def last_import() -> str:
    """Name that marks how far imports have come."""
    return next(reversed(sys.modules))


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

"""Whether the files a process has read are still as they were."""

from __future__ import annotations

import os
from typing import Dict, Iterable, List, Optional, Tuple

_Mark = Optional[Tuple[int, int, int]]


class Freshness:
    """Remembers files by time, size and inode; a switch of revision changes at least one."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._marks: Dict[str, _Mark] = {path: _mark(path) for path in paths}

    def changed(self) -> List[str]:
        return [path for path, mark in self._marks.items() if _mark(path) != mark]


def _mark(path: str) -> _Mark:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

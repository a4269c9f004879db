"""Undoes what a trial did to a workspace, by what two scans say."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable

from becausal.lab.capture import shown
from becausal.lab.scan import Marks, remove


class PutBack:
    """Brings the changed paths back to what they were."""

    def __init__(self, top: bytes, before: Marks, now: Marks, changed: set[bytes]) -> None:
        self._top = top
        self._before = before
        self._now = now
        self._changed = sorted(changed)

    def run(
        self,
        *,
        laid: Callable[[bytes], bool],
        tracked: Callable[[Iterable[bytes]], None],
        git: Callable[[], bool],
    ) -> None:
        """Restore; `laid` puts a carried path, `tracked` checks paths out, `git` rewrites
        `.git`."""
        in_git = [path for path in self._changed if _is_git(path)]
        rewritten = bool(in_git) and git()
        rest = [path for path in self._changed if not (rewritten and _is_git(path))]
        for path in rest:
            if _is_folder(self._before, path) and _is_folder(self._now, path):
                self._set_mode(path)
        for path in rest:
            if not (_is_folder(self._before, path) and _is_folder(self._now, path)):
                remove(os.path.join(self._top, path))
        for path in rest:
            if _is_folder(self._before, path) and not _is_folder(self._now, path):
                os.mkdir(os.path.join(self._top, path))
                self._set_mode(path)
        missing = [
            path for path in rest if path in self._before and not _is_folder(self._before, path)
        ]
        unlaid = [path for path in missing if not laid(path)]
        if unlaid:
            tracked(unlaid)

    def _set_mode(self, path: bytes) -> None:
        os.chmod(os.path.join(self._top, path), stat.S_IMODE(self._before[path][0]))


def told(before: Marks, now: Marks, changed: set[bytes]) -> tuple[str, ...]:
    """What to tell of changed paths: files, and folders with no changed file below them.

    The index in `.git` is left out: reading commands refresh it.
    """
    seen = changed - {b".git", b".git/index"}
    above = {os.path.dirname(path) for path in seen}
    folders = {path for path in seen if _is_folder(before, path) or _is_folder(now, path)}
    return tuple(sorted(shown(path) for path in seen if path not in folders or path not in above))


def _is_folder(marks: Marks, path: bytes) -> bool:
    return len(marks.get(path, ())) == 1


def _is_git(path: bytes) -> bool:
    return path == b".git" or path.startswith(b".git/")

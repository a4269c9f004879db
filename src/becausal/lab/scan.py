"""What is in a workspace, by stat: cheap enough to do after every trial."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable
from pathlib import Path

Mark = tuple[int, ...]
"""Files and links: mode, size, mtime, ctime, inode. Folders: mode. A program can set mtime back,
but not ctime, so a changed file cannot look unchanged."""

Marks = dict[bytes, Mark]

_NEEDED = stat.S_IRUSR | stat.S_IXUSR
_UNWATCHED = frozenset({b".git/objects"})
"""What is added to the object folder of a workspace changes nothing that a program can name."""


def scan(top: bytes, start: bytes = b"") -> Marks:
    """Marks of everything below `top`, by path. Links are not followed. `start`: only what is
    there."""
    marks: Marks = {}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        _let_in(os.path.join(top, here))
        with os.scandir(os.path.join(top, here)) as entries:
            for entry in entries:
                path = here + b"/" + entry.name if here else entry.name
                mark = _mark(entry.stat(follow_symlinks=False))
                marks[path] = mark
                if len(mark) == 1 and path not in _UNWATCHED:
                    waiting.append(path)
    return marks


def _let_in(folder: bytes) -> None:
    """A trial may have taken our rights on a folder. Its mark tells so: it was made before."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if mode & _NEEDED != _NEEDED:
        os.chmod(folder, mode | stat.S_IRWXU)


def stand(top: bytes) -> None:
    """Make sure that there is a folder to look into: a trial may remove even the workspace itself.

    It has the rights of the folder that holds it, which was made together with it.
    """
    mode = stat.S_IMODE(os.stat(os.path.dirname(top)).st_mode)
    if os.path.islink(top) or not os.path.isdir(top):
        remove(top)
        os.mkdir(top)
    if stat.S_IMODE(os.stat(top).st_mode) != mode:
        os.chmod(top, mode)


def _mark(state: os.stat_result) -> Mark:
    if stat.S_ISDIR(state.st_mode):
        return (state.st_mode,)
    return (state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


def scan_again(top: bytes, marks: Marks, paths: Iterable[bytes]) -> Marks:
    """Fresh marks of some paths and the folders above them; empty ones for what is gone.

    `.git` is looked at as a whole when a path is in it.
    """
    fresh: Marks = {}
    waiting = set(paths)
    if any(path == b".git" or path.startswith(b".git/") for path in waiting):
        fresh.update(dict.fromkeys((path for path in marks if path.startswith(b".git/")), ()))
        waiting = {path for path in waiting if not path.startswith(b".git/")} | {b".git"}
        if os.path.isdir(os.path.join(top, b".git")):
            fresh.update(scan(top, b".git"))
    while waiting:
        path = waiting.pop()
        try:
            fresh[path] = _mark(os.lstat(os.path.join(top, path)))
        except (FileNotFoundError, NotADirectoryError):
            fresh[path] = ()
        folder = os.path.dirname(path)
        if folder and folder not in fresh:
            waiting.add(folder)
    return fresh


def merged(marks: Marks, fresh: Marks) -> Marks:
    """Marks with fresh ones put in, and what is gone taken out."""
    both = marks | fresh
    for path, mark in fresh.items():
        if not mark:
            del both[path]
    return both


def settle(marks: Marks, clock: Path) -> None:
    """Wait until the file system's clock has moved past every mark.

    Time stamps advance in ticks of a few milliseconds; a file changed in the tick in which it was
    marked would look unchanged. `clock` is a file of ours next to the workspace.
    """
    newest = max((mark[3] for mark in marks.values() if len(mark) > 1), default=0)
    clock.touch()
    while clock.stat().st_ctime_ns <= newest:
        time.sleep(0.001)
        clock.touch()


def digest(marks: Marks) -> str:
    """One name for a whole scan."""
    return hashlib.blake2b(repr(sorted(marks.items())).encode(), digest_size=16).hexdigest()


def remove(full: bytes) -> None:
    """Remove a file, link or whole folder, whatever its permissions; nothing there is fine."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(full).st_mode
        if not stat.S_ISDIR(mode):
            os.unlink(full)
            return
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(full, mode | stat.S_IRWXU)
        for name in os.listdir(full):
            remove(os.path.join(full, name))
        os.rmdir(full)


def prune(top: bytes, paths: Iterable[bytes]) -> None:
    """Remove the folders above removed paths that are empty now."""
    for folder in sorted({os.path.dirname(path) for path in paths}, reverse=True):
        while folder:
            try:
                os.rmdir(os.path.join(top, folder))
            except OSError:
                break  # not empty, or gone already
            folder = os.path.dirname(folder)


def prune_to(top: bytes, kept: Collection[bytes]) -> None:
    """Remove everything below `top` but the kept files and the folders above them."""
    folders: set[bytes] = set()
    for path in kept:
        folder = os.path.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    for path in sorted(scan(top)):
        if path not in kept and path not in folders:
            remove(os.path.join(top, path))


def below_real_folders(top: bytes, path: bytes) -> bool:
    """Whether every folder above `path` is, or can become, a real one: never write through a
    link."""
    folder = os.path.dirname(path)
    while folder:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if not stat.S_ISDIR(os.lstat(os.path.join(top, folder)).st_mode):
                return False
        folder = os.path.dirname(folder)
    return True

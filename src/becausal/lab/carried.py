"""Chooses which ignored files a workspace gets: all that are no known cache.

Small ones are copied, so that trials are free to change them; virtual environments and what does
not fit the budget are used in place.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from becausal.lab.capture import shown
from becausal.lab.manifest import Carried, Shelf
from becausal.lab.settings import LabSettings

LEAVE = (
    "__pycache__",
    "*.py[co]",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".git",
    ".becausal",
    "htmlcov",
    ".coverage",
    ".coverage.*",
    ".cache",
    ".DS_Store",
)
"""Caches and reports: rebuilt by whoever needs them."""

LINK = ("node_modules",)


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What is carried, and what a reader should know of it."""

    entries: tuple[Carried, ...] = ()
    notes: tuple[str, ...] = ()


class _Found(msgspec.Struct):
    """One ignored path as listed: what is in it, and how many bytes that is."""

    path: bytes
    size: int = 0
    files: list[bytes] = msgspec.field(default_factory=list)
    folders: list[bytes] = msgspec.field(default_factory=list)
    """Empty ones."""
    links: list[bytes] = msgspec.field(default_factory=list)
    """Inside it, but used in place."""
    pinned: int = 0
    """Bytes of it that the settings want copied whatever their size."""
    too_large: bool = False


class Chooser:
    """Sorts ignored paths of one work tree into copied, linked and left."""

    def __init__(self, top: str, settings: LabSettings) -> None:
        self._top = os.fsencode(top)
        self._settings = settings

    def choose(
        self,
        ignored: Iterable[bytes],
        linked: Iterable[bytes],
        tracked: Iterable[bytes],
        shelf: Shelf,
    ) -> Choice:
        """Choose among `ignored` paths; `linked` ones are used in place anyway."""
        taken = set(tracked)
        found = [self._look(path.rstrip(b"/"), taken) for path in self._roots(ignored)]
        links = set(linked)
        notes: list[str] = []
        left = self._settings.budget
        copied: list[_Found] = []
        for each in sorted(found, key=lambda item: (item.size, item.path)):
            if each.size - each.pinned > left:
                links.add(each.path)
                notes.append(f"too large to copy, used in place: {shown(each.path)}")
                continue
            left -= each.size - each.pinned
            links.update(each.links)
            copied.append(each)
        occupied = _above(taken)
        entries = [Carried(path=path, kind="link") for path in links if path not in occupied]
        for path in sorted(links & occupied):
            notes.append(f"not carried, as tracked files are inside: {shown(path)}")
        for each in copied:
            entries += [Carried(path=path, kind="folder") for path in each.folders]
            for path in each.files:
                entry = self.entry(path, shelf)
                if entry is None:
                    notes.append(f"ignored and unreadable, not carried: {shown(path)}")
                else:
                    entries.append(entry)
        return Choice(entries=tuple(sorted(entries)), notes=tuple(notes))

    def entry(self, path: bytes, shelf: Shelf) -> Carried | None:
        """A file or symbolic link as it is now; None when it cannot be read."""
        full = os.path.join(self._top, path)
        try:
            mode = os.lstat(full).st_mode
            if stat.S_ISLNK(mode):
                return Carried(path=path, kind="symlink", what=os.fsencode(os.readlink(full)).hex())
            digest = shelf.put_file(full)
        except (PermissionError, FileNotFoundError):
            return None
        return Carried(path=path, kind="copy", what=digest, executable=bool(mode & stat.S_IXUSR))

    def _roots(self, ignored: Iterable[bytes]) -> list[bytes]:
        """The listed paths, with the pieces of one virtual environment taken together: an ignore
        file inside it makes git list its parts."""
        roots: dict[bytes, None] = {}
        for path in ignored:
            parts = path.rstrip(b"/").split(b"/")
            above = [b"/".join(parts[:count]) for count in range(1, len(parts))]
            environment = next((each for each in above if self._is_environment(each)), None)
            roots[environment if environment is not None else path.rstrip(b"/")] = None
        return [path for path in roots if not self.left(path)]

    def _look(self, path: bytes, taken: set[bytes]) -> _Found:
        """Walk one ignored path; the walk ends where the budget does."""
        found = _Found(path)
        waiting = [path]
        while waiting:
            here = waiting.pop()
            full = os.path.join(self._top, here)
            try:
                state = os.lstat(full)
                folder = stat.S_ISDIR(state.st_mode)
                inside = sorted(os.listdir(full)) if folder and not self.linked(here) else []
            except (FileNotFoundError, PermissionError):
                found.files.append(here)
                continue
            if folder and self.linked(here):
                found.links.append(here)
            elif folder:
                waiting += [
                    os.path.join(here, name)
                    for name in inside
                    if not self.left(os.path.join(here, name))
                ]
                if not inside:
                    found.folders.append(here)
            elif here not in taken and (stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode)):
                found.files.append(here)
                found.size += state.st_size
                if self._matches(here, self._settings.copy):
                    found.pinned += state.st_size
                elif found.size - found.pinned > self._settings.budget:
                    return found
        return found

    def linked(self, path: bytes) -> bool:
        """Whether a folder is used in place."""
        if self._matches(path, self._settings.copy):
            return False
        return self._matches(path, (*self._settings.link, *LINK)) or self._is_environment(path)

    def left(self, path: bytes) -> bool:
        """Whether a path is not carried at all."""
        if self._matches(path, (*self._settings.copy, *self._settings.link)):
            return False
        return self._matches(path, (*self._settings.leave, *LEAVE))

    def _is_environment(self, path: bytes) -> bool:
        return os.path.lexists(os.path.join(self._top, path, b"pyvenv.cfg"))

    @staticmethod
    def _matches(path: bytes, globs: Iterable[str]) -> bool:
        """A glob matches the path, a folder above it, or one of the names in it."""
        text = os.fsdecode(path)
        parts = text.split("/")
        names = {*parts, *("/".join(parts[:count]) for count in range(1, len(parts) + 1))}
        return any(fnmatchcase(name, glob.rstrip("/")) for glob in globs for name in names)


def carried_roots(entries: Iterable[Carried], tracked: Iterable[bytes]) -> tuple[str, ...]:
    """What is carried, in short: folders without a tracked file stand for all that is in them."""
    occupied = _above(tracked)
    found = set()
    for path in (entry.path for entry in entries if not entry.over and entry.kind != "module"):
        parts = path.split(b"/")
        above = [b"/".join(parts[:count]) for count in range(1, len(parts))]
        found.add(next((folder for folder in above if folder not in occupied), path))
    return tuple(shown(path) for path in sorted(found))


def _above(paths: Iterable[bytes]) -> set[bytes]:
    """Every folder that holds one of the paths."""
    found: set[bytes] = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder and folder not in found:
            found.add(folder)
            folder = os.path.dirname(folder)
    return found

"""A folder that is no repository: captured into a git folder of our own, in the cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import msgspec

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.domain.observation import RecentChange
from becausal.lab.capture import joined, read_entries, shown
from becausal.lab.carried import Chooser
from becausal.lab.git import Git, copy_index
from becausal.lab.gitdir import RAW, make_git_dir
from becausal.lab.home import Home
from becausal.lab.manifest import Carried, Manifest, Shelf
from becausal.lab.settings import read_settings
from becausal.ports.repository import Snapshot, TreeChoice

MOST_BYTES = 2_000_000_000
MOST_FILES = 200_000


class _Walked(msgspec.Struct):
    files: list[bytes] = msgspec.field(default_factory=list)
    entries: list[Carried] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    size: int = 0


class PlainFolder:
    """A folder under study without history."""

    kind: Literal["folder"] = "folder"

    def __init__(
        self, top: Path, cache: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        self._top = str(top)
        self._most_bytes = most_bytes
        self._most_files = most_files
        self.home = Home(cache, self._top)
        self.home.prepare(())
        self._git_dir = self.home.path / "folder.git"
        # Bytes are taken as they are, whatever attribute files in the folder say.
        make_git_dir(self._git_dir, attributes=RAW)

    @property
    def top(self) -> str:
        return self._top

    def snapshot(self, tree: TreeChoice = "worktree") -> Snapshot:
        """Capture the folder as it is now."""
        if tree == "head":
            raise CouldNotRun(
                "no-commit",
                "This folder is no git repository, so it has no commit to run.",
                value=self._top,
                hint="Run without `--tree head`.",
            )
        walked = self._walk()
        shelf = Shelf(self.home)
        fingerprint = shelf.keep(Manifest(entries=tuple(sorted(walked.entries))))
        source = Source(folder=self._store(walked.files), carried=fingerprint)
        return Snapshot(source=source, notes=tuple(walked.notes))

    def recent_changes(self, limit: int = 10) -> tuple[RecentChange, ...]:
        """None: a folder has no history."""
        return ()

    def branch(self) -> str:
        """Empty: a folder has no branches."""
        return ""

    def _walk(self) -> _Walked:
        """Every file that counts; environments are used in place, caches are left."""
        walked = _Walked()
        chooser = Chooser(self._top, read_settings(self._top))
        top = os.fsencode(self._top)
        waiting = [b""]
        while waiting:
            here = waiting.pop()
            try:
                names = sorted(os.listdir(os.path.join(top, here)))
            except PermissionError:
                walked.notes.append(f"unreadable folder left out: {shown(here)}")
                continue
            if not names and here:
                walked.entries.append(Carried(path=here, kind="folder"))
            for name in names:
                path = os.path.join(here, name)
                if chooser.left(path):
                    continue
                state = os.lstat(os.path.join(top, path))
                if stat.S_ISDIR(state.st_mode) and chooser.linked(path):
                    walked.entries.append(Carried(path=path, kind="link"))
                elif stat.S_ISDIR(state.st_mode):
                    waiting.append(path)
                else:
                    self._count(walked, path, state)
        return walked

    def _count(self, walked: _Walked, path: bytes, state: os.stat_result) -> None:
        if not (stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode)):
            return
        full = os.path.join(os.fsencode(self._top), path)
        if stat.S_ISREG(state.st_mode) and not os.access(full, os.R_OK):
            walked.notes.append(f"unreadable file left out: {shown(path)}")
            return
        walked.files.append(path)
        walked.size += state.st_size
        if walked.size > self._most_bytes or len(walked.files) > self._most_files:
            raise CouldNotRun(
                "folder-too-large",
                f"This folder is no git repository and holds more than {self._most_files} files "
                f"or {self._most_bytes // 1_000_000} MB, too much to copy for every trial.",
                value=self._top,
                hint="Start in a smaller folder, make it a git repository (git init), or name what "
                "is not needed in becausal.toml: [lab] leave = [...] or link = [...].",
            )

    def _store(self, files: list[bytes]) -> str:
        """The files as a git tree. The index is kept, so that only what changed is read next
        time."""
        kept = self.home.path / "folder.index"
        with self.home.temporary() as scratch:
            index = scratch / "index"
            if kept.exists():
                copy_index(kept, index)
            git = Git(self._top, git_dir=self._git_dir, objects=self.home.objects, index=index)
            gone = set(read_entries(git)) - set(files)
            # Removing by force: a path that is left out now may well still exist.
            git.run("update-index", "-z", "--force-remove", "--stdin", input=joined(sorted(gone)))
            git.run("update-index", "-z", "--add", "--replace", "--stdin", input=joined(files))
            tree = git.text("write-tree")
            os.replace(index, kept)
        return tree

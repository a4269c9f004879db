"""Lays the carried entries of a manifest into a workspace, and takes them away again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping

from becausal.lab.capture import shown
from becausal.lab.manifest import Carried, Shelf
from becausal.lab.scan import below_real_folders, prune, remove


class Layer:
    """Puts carried entries below `top`. With `bound`, a place to bind onto stands where a link
    would: in a sandbox that shows the workspace at the person's path, a link there would point at
    itself."""

    def __init__(self, top: bytes, person: str, shelf: Shelf, *, bound: bool) -> None:
        self._top = top
        self._person = os.fsencode(person)
        self._shelf = shelf
        self._bound = bound

    def lay(
        self, entries: Iterable[Carried], objects: Mapping[bytes, str]
    ) -> tuple[list[Carried], list[str]]:
        """Lay entries that are not there yet. Answers what was laid, and notes on what cannot be.

        `objects` has the tree's object of each path; an entry that goes over one needs exactly
        that.
        """
        laid: list[Carried] = []
        notes: list[str] = []
        for entry in entries:
            full = os.path.join(self._top, entry.path)
            if entry.over and objects.get(entry.path) != entry.over:
                continue  # bytes of another revision's file
            taken = not entry.over and os.path.lexists(full) and entry.kind != "folder"
            if taken or not below_real_folders(self._top, entry.path):
                notes.append(f"not carried, the tree has this path: {shown(entry.path)}")
                continue
            self.put(entry)
            laid.append(entry)
        return laid, notes

    def put(self, entry: Carried) -> None:
        """Put one entry, in place of whatever is there."""
        full = os.path.join(self._top, entry.path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        if entry.kind == "folder":
            os.makedirs(full, exist_ok=True)
            return
        remove(full)
        if entry.kind == "copy":
            shutil.copyfile(self._shelf.blob(entry.what), full)
            os.chmod(full, 0o755 if entry.executable else 0o644)
        elif entry.kind == "symlink":
            os.symlink(bytes.fromhex(entry.what), full)
        elif entry.kind == "link":
            self._link(full, os.path.join(self._person, entry.path))

    def take_away(self, entries: Iterable[Carried]) -> None:
        """Remove laid entries, and folders that held nothing else."""
        paths = [entry.path for entry in entries]
        for path in paths:
            if below_real_folders(self._top, path):
                remove(os.path.join(self._top, path))
        prune(self._top, paths)

    def _link(self, full: bytes, target: bytes) -> None:
        if not self._bound:
            os.symlink(target, full)
        elif os.path.isdir(target):
            os.mkdir(full)
        else:
            with open(full, "xb"):
                pass

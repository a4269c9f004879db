"""Finds files whose bytes on disk are not what git stores of them: filters, line ends, encodings.

A workspace must hold what is on the person's disk, and must not run their filters to get there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from becausal.lab.capture import Entry
from becausal.lab.manifest import Shelf

_CONVERTS = re.compile(rb"\b(text|eol|crlf|filter|ident|working-tree-encoding)\b")
_POINTER = b"version https://git-lfs.github.com/spec/"


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """Paths whose bytes must be carried, and notes."""

    different: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()


class Conversions:
    """Compares a work tree's bytes with what was stored of them."""

    def __init__(
        self, top: str, common_dir: Path, configuration: Mapping[str, str], shelf: Shelf
    ) -> None:
        self._top = os.fsencode(top)
        self._common_dir = common_dir
        self._configuration = configuration
        self._shelf = shelf

    def find(self, entries: Mapping[bytes, Entry]) -> Converted:
        """Read every file that may be converted; one with unchanged stat is not read again."""
        attributes = b"\n".join(self._attributes(entries))
        configured = {"core.autocrlf", "core.eol"} & set(self._configuration)
        if not configured and not _CONVERTS.search(attributes):
            return Converted()
        different: list[bytes] = []
        pointers = 0
        for path, entry in entries.items():
            full = os.path.join(self._top, path)
            if not entry.mode.startswith("100") or not os.access(full, os.R_OK):
                continue
            if self._shelf.raw_object(full, entry.oid) != entry.oid:
                different.append(path)
            elif b"lfs" in attributes and _is_pointer(full):
                pointers += 1
        notes = []
        if different:
            notes.append(
                f"{len(different)} files are not on disk as git stores them (filters, line ends): "
                "workspaces have them as they are on disk"
            )
        if pointers:
            notes.append(f"{pointers} files are LFS pointers: their content was never fetched")
        return Converted(different=tuple(different), notes=tuple(notes))

    def _attributes(self, entries: Mapping[bytes, Entry]) -> Iterator[bytes]:
        named = self._configuration.get("core.attributesfile", "~/.config/git/attributes")
        files = [Path(named).expanduser(), self._common_dir / "info" / "attributes"]
        for path in entries:
            if path.rsplit(b"/", 1)[-1] == b".gitattributes":
                files.append(Path(os.fsdecode(os.path.join(self._top, path))))
        for file in files:
            if file.is_file() and os.access(file, os.R_OK):
                yield file.read_bytes()


def _is_pointer(full: bytes) -> bool:
    if os.path.getsize(full) > 1024:
        return False
    return Path(os.fsdecode(full)).read_bytes().startswith(_POINTER)

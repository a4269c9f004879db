"""What is laid into a workspace besides the tree, and the bytes of it, kept by content."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Literal

import msgspec

from becausal.domain.errors import CouldNotRun
from becausal.domain.identity import content_id
from becausal.lab.home import Home, write_atomically

Kind = Literal["copy", "symlink", "folder", "link", "module"]

_FRESH_NS = 50_000_000
"""A file changed less than this before it was read may change again within the same time stamp."""


class Carried(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One path laid into a workspace.

    `copy`: bytes by digest. `symlink`: its target in `what`. `folder`: an empty one. `link`: used
    in place, at the person's path. `module`: the content of an inner repository, its tree in
    `what`.
    """

    path: bytes
    kind: Kind
    what: str = ""
    executable: bool = False
    over: str = ""
    """Only laid where the tree has exactly this object: bytes of a filtered file, a gitlink's
    commit."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything laid besides the tree."""

    entries: tuple[Carried, ...] = ()

    @property
    def fingerprint(self) -> str | None:
        return content_id(self) if self.entries else None


class Shelf:
    """Manifests and bytes of one repository, kept in the cache so that a source stays what it
    was."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._known: dict[str, tuple[list[int], str]] = {}
        if home.digests.exists():
            self._known = msgspec.json.decode(
                home.digests.read_bytes(), type=dict[str, tuple[list[int], str]]
            )
        self._asked: dict[str, tuple[list[int], str]] = {}

    def put_file(self, full: bytes) -> str:
        """Keep a file's bytes, answer their digest. A file with unchanged stat is not read
        again."""
        known, mark = self._recall("file", full)
        if known is not None and self.blob(known).exists():
            return known
        data = Path(os.fsdecode(full)).read_bytes()
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        blob = self.blob(digest)
        if not blob.exists():
            blob.parent.mkdir(exist_ok=True)
            write_atomically(blob, data)
        self._note("file", full, mark, digest)
        return digest

    def raw_object(self, full: bytes, oid: str) -> str:
        """The git object of a file's bytes as they are, hashed like `oid`."""
        known, mark = self._recall("object", full)
        if known is not None:
            return known
        data = Path(os.fsdecode(full)).read_bytes()
        head = b"blob %d\0" % len(data)
        made = (hashlib.sha1 if len(oid) == 40 else hashlib.sha256)(head + data).hexdigest()
        self._note("object", full, mark, made)
        return made

    def _recall(self, kind: str, full: bytes) -> tuple[str | None, list[int]]:
        """What was noted of a file with this very stat."""
        state = os.lstat(full)
        mark = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        known = self._known.get(f"{kind} {full.hex()}")
        if known is None or known[0] != mark:
            return None, mark
        self._asked[f"{kind} {full.hex()}"] = known
        return known[1], mark

    def _note(self, kind: str, full: bytes, mark: list[int], digest: str) -> None:
        if max(mark[1], mark[2]) < time.time_ns() - _FRESH_NS:
            self._asked[f"{kind} {full.hex()}"] = (mark, digest)

    def blob(self, digest: str) -> Path:
        """Where the bytes with this digest are kept."""
        return self._home.blobs / digest[:2] / digest[2:]

    def keep(self, manifest: Manifest) -> str | None:
        """Keep a manifest for the switches to come."""
        if self._asked != self._known:
            write_atomically(self._home.digests, msgspec.json.encode(self._asked))
        fingerprint = manifest.fingerprint
        if fingerprint is not None:
            path = self._home.carried / f"{fingerprint}.json"
            write_atomically(path, msgspec.json.encode(manifest))
        return fingerprint

    def manifest(self, fingerprint: str | None) -> Manifest:
        """A manifest kept before."""
        if fingerprint is None:
            return Manifest()
        path = self._home.carried / f"{fingerprint}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=Manifest)
        except FileNotFoundError as error:
            raise source_gone(self._home, fingerprint) from error


def source_gone(home: Home, value: str) -> CouldNotRun:
    """A source whose captured content is no longer (or was never) in this machine's cache."""
    return CouldNotRun(
        "source-gone",
        f"The captured source is no longer in the cache of {home.top}.",
        value=value,
        hint="Capture it again: start a new series on the tree as it is now.",
    )

"""Where the lab keeps what belongs to one repository: a folder in the person's cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path

from becausal.domain.errors import CouldNotRun


class Home:
    """The folder of one repository in the cache.

    `objects` holds what snapshots add, `person/…` are links to the object folders that the person's
    repository reads; together they are all a workspace borrows. The links have a folder of their
    own so that a sandbox can put an empty file system there and bind the real object folders into
    it.
    """

    def __init__(self, cache: Path, top: str) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", os.path.basename(top))[:40] or "root"
        digest = hashlib.blake2b(os.fsencode(top), digest_size=8).hexdigest()
        self.cache = cache
        self.top = top
        self.path = cache.absolute() / "pool" / f"{name}-{digest}"
        self.objects = self.path / "objects"
        self.person = self.path / "person"
        self.carried = self.path / "carried"
        self.blobs = self.path / "blobs"
        self.slots = self.path / "slots"
        self.scratch = self.path / "scratch"
        self.digests = self.path / "digests.json"
        self.source = self.path / "repository"

    def prepare(self, person_objects: Iterable[str]) -> None:
        """Make the folders, and borrow the person's object folders as they are now.

        While this object lives, a lock says that the folder is in use.
        """
        self._hold()
        for folder in (
            self.objects / "info",
            self.objects / "pack",
            self.person,
            self.carried,
            self.blobs,
            self.slots,
            self.scratch,
        ):
            folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.source, os.fsencode(self.top))
        self.borrow(person_objects)

    def _hold(self) -> None:
        while True:
            with contextlib.suppress(FileNotFoundError):  # collected this moment: make it again
                fd = self._opened_lock()
                weakref.finalize(self, os.close, fd)
                fcntl.flock(fd, fcntl.LOCK_SH)
                if os.fstat(fd).st_ino == os.stat(self.path / "lock").st_ino:
                    return

    def _opened_lock(self) -> int:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise CouldNotRun(
                "cache-not-writable",
                f"The cache folder, where workspaces live, cannot be written: {error.strerror}.",
                value=str(self.path),
                hint="Set BECAUSAL_CACHE to a folder that you may write to.",
            ) from error

    def borrow(self, person_objects: Iterable[str]) -> None:
        """Let workspaces read more object folders: each gets a link, every link an alternates
        line."""
        for folder in person_objects:
            digest = hashlib.blake2b(os.fsencode(folder), digest_size=6).hexdigest()
            link = self.person / digest
            if not link.is_symlink():
                with contextlib.suppress(FileExistsError):
                    os.symlink(folder, link)
        lines = [f"{link}\n" for link, folder in self.borrowed() if os.path.isdir(folder)]
        write_atomically(self.objects / "info" / "alternates", "".join(lines).encode())

    def borrowed(self) -> tuple[tuple[str, str], ...]:
        """(link, real folder) of every object folder of the person that workspaces read."""
        return tuple((str(link), os.readlink(link)) for link in sorted(self.person.iterdir()))

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Path]:
        """A scratch folder for one capture."""
        folder = self.scratch / f"{os.getpid()}-{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            yield folder
        finally:
            for entry in sorted(folder.rglob("*"), reverse=True):
                if entry.is_dir() and not entry.is_symlink():
                    entry.rmdir()
                else:
                    entry.unlink(missing_ok=True)
            folder.rmdir()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file as a whole; nothing is written when it says the same already."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    fresh = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    fresh.write_bytes(data)
    os.replace(fresh, path)

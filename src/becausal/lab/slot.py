"""One place in the pool: a lock, a growing token, a workspace and the git folder that drives it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

import msgspec

from becausal.domain.errors import CouldNotRun
from becausal.lab.home import write_atomically
from becausal.lab.manifest import Carried


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace holds, written when that is sure and taken away before it changes."""

    marks: str
    """Digest of its scan: when it still fits, nothing was changed since."""
    bound: bool
    tree: str
    revision: str | None = None
    laid: tuple[Carried, ...] = ()


class Slot:
    """A place in the pool. Whoever holds the lock of an open slot owns all of it.

    The lock is a flock: it goes with the holder's last process, however that ends.
    """

    def __init__(self, folder: Path, fd: int, name: str) -> None:
        self.folder = folder
        self.fd = fd
        self.workspace = folder / "at" / name
        self.control = folder / "control"
        self.scratch = folder / "scratch"
        self.clock = folder / "clock"
        self.token = 0

    @classmethod
    def take(cls, folder: Path, name: str, *, claim: bool = True) -> Slot | None:
        """Lock a place without waiting; None when somebody holds it.

        Without `claim` only to look at it: it is not made, and its token does not grow.
        """
        if claim:
            folder.mkdir(parents=True, exist_ok=True)
        fd = lock(folder / "lock")
        if fd is None:
            return None
        slot = cls(folder, fd, name)
        if claim:
            slot.token = slot.written_token() + 1
            write_atomically(folder / "token", str(slot.token).encode())
        return slot

    def written_token(self) -> int:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int((self.folder / "token").read_bytes())
        return 0

    def check(self) -> None:
        """Refuse to go on when this lease was closed or somebody else has a newer one."""
        if self.fd < 0 or self.written_token() != self.token:
            raise CouldNotRun(
                "lease-lost",
                "This lease of the workspace is over.",
                value=str(self.workspace),
                hint="Lease a workspace again; was the cache folder emptied meanwhile?",
            )

    def mark(self, state: State | None) -> None:
        """Note what the workspace holds; None: it is about to change."""
        path = self.folder / "state.json"
        if state is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, msgspec.json.encode(state))

    def state(self) -> State | None:
        """What the workspace held when it was last sure; None: unknown."""
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            return msgspec.json.decode((self.folder / "state.json").read_bytes(), type=State)
        return None

    def give_up(self) -> None:
        """Unlock."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def lock(path: Path) -> int | None:
    """Lock a file without waiting and answer its descriptor; None when others hold it."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None  # its folder was collected this moment
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The file may have been removed between the two calls: then this lock means nothing.
        if os.fstat(fd).st_ino == os.stat(path).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None

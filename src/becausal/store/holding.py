"""Names held by one process at a time, given back by the kernel when the process dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from becausal.domain.identity import bytes_id
from becausal.store.trouble import of_the_folder


@contextmanager
def held(folder: Path, name: str) -> Iterator[bool]:
    """Try to hold a name; True when this context is its only holder."""
    # The name may be anything a person types; the file's name is made of hex digits.
    path = folder / bytes_id(name.encode("utf-8", "surrogatepass"))
    try:
        folder.mkdir(exist_ok=True)
        descriptor = _locked(path)
    except OSError as error:
        raise of_the_folder(path, error) from error
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        # Taken away while still locked: whoever waits at the old file sees that it is gone.
        try:
            path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _locked(path: Path) -> int | None:
    """A descriptor that locks the file of that path, None when somebody else does."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(descriptor, path):
            return descriptor
        # Its last holder removed it between our opening and our locking.
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

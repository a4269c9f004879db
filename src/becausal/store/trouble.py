"""What SQLite complains of, in words that say what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from becausal.domain.errors import CouldNotRun

# Quota and file size limits reach us as a failed write: SQLite only tells ENOSPC apart.
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR}
_CLOSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}


def is_busy(error: sqlite3.Error) -> bool:
    """Another process is in the way; it may be gone in a moment."""
    return _primary(error) in _BUSY


def is_not_writable(error: sqlite3.Error) -> bool:
    """The file, or one that SQLite needs beside it, cannot be made or written."""
    return _primary(error) in _CLOSED


@contextmanager
def told_plainly(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the file into ours; errors of our own SQL stay what they are."""
    try:
        yield
    except sqlite3.Error as error:
        told = _told(error, path)
        if told is None:
            raise
        raise told from error


def not_writable(path: Path, why: str) -> CouldNotRun:
    return CouldNotRun(
        "store-not-writable",
        f"the store cannot be written: {why}",
        value=str(path),
        hint="make the folder writable for you, or choose another folder",
    )


def full(path: Path, why: str) -> CouldNotRun:
    return CouldNotRun(
        "store-full",
        f"the store has no room to write: {why}",
        value=str(path),
        hint="free disk space (or raise the quota or file size limit) and repeat the command; "
        "what was recorded before is kept",
    )


def of_the_folder(path: Path, error: OSError) -> CouldNotRun:
    """The error of a call on the folder itself."""
    why = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return full(path, why)
    return not_writable(path, why)


def _primary(error: sqlite3.Error) -> int:
    # Misuse found by the Python module itself carries no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _told(error: sqlite3.Error, path: Path) -> CouldNotRun | None:
    primary = _primary(error)
    if primary in _FULL or getattr(error, "sqlite_errorcode", 0) in _FULL:
        return full(path, str(error))
    if primary in _BUSY:
        return CouldNotRun(
            "store-busy",
            "another process kept the store locked for too long",
            value=str(path),
            hint="wait until it ends, or end it, and repeat the command",
        )
    if primary in _DAMAGED:
        return CouldNotRun(
            "store-damaged",
            f"the store's file cannot be read: {error}",
            value=str(path),
            hint="restore it from a copy, or move it away: becausal makes a new one",
        )
    if primary in _CLOSED:
        return not_writable(path, str(error))
    return None

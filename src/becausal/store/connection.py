"""One connection to the database file: opened, prepared, and written in whole transactions."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from becausal.domain.errors import CouldNotRun
from becausal.store import schema
from becausal.store.trouble import is_busy, is_not_writable, not_writable, told_plainly

PATIENCE = 10.0
"""Seconds to wait for other processes."""
_PAUSE = 0.01
_WAL_KEPT = 64 << 20

AnswerT = TypeVar("AnswerT")


class Connection:
    """SQLite as the store uses it. One thread at a time, any number of processes."""

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self._path = path
        self._readonly = readonly
        with told_plainly(path):
            self._raw = patiently(lambda: _opened(path, readonly=readonly))

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with told_plainly(self._path):
            return patiently(lambda: self._raw.execute(sql, values).fetchall())

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: on the disk when the block ends, gone without a trace when it raises."""
        if self._readonly:
            raise not_writable(self._path, "it was opened for reading only")
        with told_plainly(self._path):
            patiently(lambda: self._raw.execute("BEGIN IMMEDIATE"))
            try:
                yield self._raw
                self._raw.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back by itself, after a full disk for example.
                if self._raw.in_transaction:
                    self._raw.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._raw.close()


def patiently(action: Callable[[], AnswerT]) -> AnswerT:
    """Repeat while the database is busy: its own waiting does not cover every lock it takes.

    Turning to WAL, and reading while another process recovers or removes the log, fail at once.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= end:
                raise
            time.sleep(_PAUSE)


def _opened(path: Path, *, readonly: bool) -> sqlite3.Connection:
    raw = _connected(path, "mode=ro" if readonly else "mode=rwc")
    try:
        if readonly:
            raw = _readable(raw, path)
            if not schema.is_current(raw, path):
                raise CouldNotRun(
                    "store-missing",
                    "the store is empty, or of an older version of becausal",
                    value=str(path),
                    hint="any command that records brings it up to date",
                )
            return raw
        _prepare(raw, path)
    except BaseException:
        raw.close()
        raise
    return raw


def _connected(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?{how}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )


def _readable(raw: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """The connection, or one that needs no lock files where none can be made."""
    try:
        raw.execute("PRAGMA user_version")
    except sqlite3.OperationalError as error:
        # In a read-only folder a log cannot be opened. Without a log the file is complete.
        log = path.with_name(path.name + "-wal")
        if not is_not_writable(error) or log.exists():
            raise
        raw.close()
        return _connected(path, "immutable=1")
    return raw


def _prepare(raw: sqlite3.Connection, path: Path) -> None:
    if not schema.is_current(raw, path):
        raw.execute("BEGIN IMMEDIATE")
        # Another process may have been faster: look again, now that nobody else writes.
        if not schema.is_current(raw, path):
            schema.migrate(raw)
        raw.execute("COMMIT")
    raw.execute("PRAGMA journal_mode = WAL")
    raw.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT}")
    # Evidence: every commit is on the disk before anyone acts on it.
    raw.execute("PRAGMA synchronous = FULL")
    raw.execute("PRAGMA foreign_keys = ON")

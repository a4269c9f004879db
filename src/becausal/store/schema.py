"""The schema: numbered SQL files, applied once each, in order, all or none."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from becausal.domain.errors import CouldNotRun

APPLICATION = 0xBECA5A1
"""Marks the database file as ours."""
VERSION = 1
"""Number of the last migration."""

_folder = Path(__file__).with_name("migrations")


def is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the schema is the one this version knows; raises when it never can be."""
    # Tables first: another process may be making the store meanwhile, all in one transaction.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    application = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    blank = tables == 0 and application == 0
    if application != APPLICATION and not blank:
        raise CouldNotRun(
            "store-damaged",
            "the store's file is a database, but not of becausal",
            value=str(path),
            hint="move it away; becausal makes a new one",
        )
    if version > VERSION:
        raise CouldNotRun(
            "store-too-new",
            f"the store has schema {version}; this becausal knows up to {VERSION}",
            value=str(path),
            hint="use the newer becausal that wrote it",
        )
    return version == VERSION


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the migrations that are missing, inside the transaction the caller holds."""
    done = _pragma(connection, "user_version")
    for number, sql in _migrations():
        if number > done:
            for statement in _statements(sql):
                connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _migrations() -> list[tuple[int, str]]:
    return [(int(file.name[:4]), file.read_text("utf-8")) for file in sorted(_folder.glob("*.sql"))]


def _statements(sql: str) -> Iterator[str]:
    """Split a script: `executescript` would end the caller's transaction before it starts."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])

"""Waiting for other processes."""

from __future__ import annotations

import sqlite3

import pytest

from becausal.store import connection


def complaint(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("as SQLite says it")
    error.sqlite_errorcode = code
    return error


def test_a_busy_database_is_asked_again() -> None:
    codes = [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_LOCKED]

    def action() -> str:
        if codes:
            raise complaint(codes.pop())
        return "done"

    assert connection.patiently(action) == "done"


def test_any_other_complaint_is_told_at_once() -> None:
    calls = []

    def action() -> None:
        calls.append(1)
        raise complaint(sqlite3.SQLITE_CORRUPT)

    with pytest.raises(sqlite3.OperationalError):
        connection.patiently(action)
    assert calls == [1]


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0.0)

    def action() -> None:
        raise complaint(sqlite3.SQLITE_BUSY)

    with pytest.raises(sqlite3.OperationalError):
        connection.patiently(action)

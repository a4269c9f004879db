"""The store in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from becausal.domain.identity import bytes_id
from becausal.domain.journal import AnyEvent, CaseOpened, Entry
from becausal.domain.trial import Trial
from becausal.domain.written import read_event, read_trial, written_event, written_trial
from becausal.ports.store import artifact_unknown, case_unknown, recorded_twice
from becausal.store.connection import Connection
from becausal.store.holding import held
from becausal.store.packing import packed, unpacked
from becausal.store.trouble import not_writable

_ADD_EVENT = "INSERT INTO events (case_number, seq, at, body) VALUES (?, ?, ?, ?)"
_ADD_TRIAL = (
    "INSERT INTO trials (case_number, search, step, condition, repeat, at, body)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_ADD_ARTIFACT = "INSERT OR IGNORE INTO artifacts (digest, size, packing, body) VALUES (?, ?, ?, ?)"
_TRIALS = (
    "SELECT body FROM trials WHERE case_number = ? AND (? IS NULL OR search = ?)"
    " ORDER BY search, step, condition, repeat"
)


class SqliteStore:
    """Implements `ports.store.Store` in a folder of its own."""

    def __init__(self, folder: Path, *, readonly: bool = False) -> None:
        self._folder = folder
        self._readonly = readonly
        self._connection = Connection(folder / "journal.db", readonly=readonly)

    def open_case(self, opened: CaseOpened, *, at: float) -> str:
        body = written_event(opened)
        with self._connection.writing() as raw:
            (last,) = raw.execute("SELECT coalesce(max(number), 0) FROM cases").fetchone()
            number = last + 1
            name = f"B-{number}"
            raw.execute("INSERT INTO cases (number, name, at) VALUES (?, ?, ?)", (number, name, at))
            raw.execute(_ADD_EVENT, (number, 1, at, body))
        return name

    def cases(self) -> tuple[str, ...]:
        rows = self._connection.rows("SELECT name FROM cases ORDER BY number")
        return tuple(name for (name,) in rows)

    def append(self, case: str, events: Sequence[AnyEvent], *, at: float) -> None:
        number = self._number(case)
        bodies = [written_event(event) for event in events]
        with self._connection.writing() as raw:
            (last,) = raw.execute(
                "SELECT max(seq) FROM events WHERE case_number = ?", (number,)
            ).fetchone()
            for seq, body in enumerate(bodies, last + 1):
                raw.execute(_ADD_EVENT, (number, seq, at, body))

    def journal(self, case: str) -> tuple[Entry, ...]:
        rows = self._connection.rows(
            "SELECT seq, at, body FROM events WHERE case_number = ? ORDER BY seq",
            (self._number(case),),
        )
        return tuple(
            Entry(case=case, seq=seq, at=at, event=read_event(body)) for seq, at, body in rows
        )

    def record(
        self, case: str, trials: Sequence[Trial], *, at: float, artifacts: Sequence[bytes] = ()
    ) -> None:
        number = self._number(case)
        bodies = [written_trial(trial) for trial in trials]
        parcels = self._parcels(artifacts)
        with self._connection.writing() as raw:
            raw.executemany(_ADD_ARTIFACT, parcels)
            for trial, body in zip(trials, bodies, strict=True):
                key = trial.key
                place = (key.search, key.step, key.condition, key.repeat)
                try:
                    raw.execute(_ADD_TRIAL, (number, *place, at, body))
                except sqlite3.IntegrityError as error:
                    if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
                        raise
                    raise recorded_twice(case, key) from error

    def trials(self, case: str, search: str | None = None) -> tuple[Trial, ...]:
        rows = self._connection.rows(_TRIALS, (self._number(case), search, search))
        return tuple(read_trial(body) for (body,) in rows)

    def put(self, data: bytes) -> str:
        if parcels := self._parcels([data]):
            with self._connection.writing() as raw:
                raw.executemany(_ADD_ARTIFACT, parcels)
        return bytes_id(data)

    def get(self, digest: str) -> bytes:
        rows = self._connection.rows(
            "SELECT size, packing, body FROM artifacts WHERE digest = ?", (digest,)
        )
        if not rows:
            raise artifact_unknown(digest)
        size, packing, body = rows[0]
        return unpacked(digest, size, packing, body)

    def hold(self, name: str) -> AbstractContextManager[bool]:
        if self._readonly:
            raise not_writable(self._folder, "it was opened for reading only")
        return held(self._folder / "held", name)

    def close(self) -> None:
        self._connection.close()

    def _number(self, case: str) -> int:
        rows = self._connection.rows("SELECT number FROM cases WHERE name = ?", (case,))
        if not rows:
            raise case_unknown(case, self.cases())
        return int(rows[0][0])

    def _parcels(self, artifacts: Sequence[bytes]) -> list[tuple[str, int, str, bytes]]:
        """Rows for the artifacts that are not kept yet, packed before anyone is locked out."""
        return [
            (digest, len(data), *packed(data))
            for digest, data in {bytes_id(data): data for data in artifacts}.items()
            if not self._connection.rows("SELECT 1 FROM artifacts WHERE digest = ?", (digest,))
        ]

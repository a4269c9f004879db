"""What the payload tells, as records: a trial is untrusted, so its words are checked one by one."""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

import msgspec

from becausal.domain.recording import TestOutcome

RecordT = TypeVar("RecordT")


class FrameTold(msgspec.Struct, frozen=True):
    """One level of a traceback; the file as the program named it."""

    file: str
    function: str
    line: int


class RaisedTold(msgspec.Struct, frozen=True):
    """An exception, and what it was raised from."""

    kind: str
    message: str
    frames: tuple[FrameTold, ...] = ()
    cause: RaisedTold | None = None


class ProcessTold(msgspec.Struct, frozen=True):
    """A Python process at its end."""

    pid: int = 0
    imported: tuple[str, ...] = ()
    raised: RaisedTold | None = None


class TestTold(msgspec.Struct, frozen=True):
    """One test, or one collection that failed."""

    id: str
    outcome: TestOutcome
    seconds: float = 0.0
    raised: RaisedTold | None = None
    text: str = ""


class RunTold(msgspec.Struct, frozen=True):
    """What pytest says besides its tests; each record holds one of these."""

    usage: str | None = None
    collected: Any = None
    lines: dict[str, dict[str, list[int]]] = {}


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the processes of a trial told, with what could not be understood."""

    processes: tuple[ProcessTold, ...] = ()
    tests: tuple[TestTold, ...] = ()
    run: tuple[RunTold, ...] = ()
    unread: tuple[str, ...] = ()


class _Raw(msgspec.Struct, frozen=True):
    processes: tuple[msgspec.Raw, ...] = ()
    tests: tuple[msgspec.Raw, ...] = ()
    unread: tuple[str, ...] = ()


class _Kind(msgspec.Struct, frozen=True):
    id: Any = None


def read_side(data: bytes) -> Side:
    """Read the side of a trial. What makes no sense is named in `unread`, the rest stands."""
    if not data:
        return Side()
    unread: list[str] = []
    raw = _Reader(_Raw, unread).read(_without_lone_surrogates(data))
    if raw is None:
        return Side(unread=tuple(unread))
    unread += raw.unread
    is_test = [_Reader(_Kind, []).read(bytes(record)) for record in raw.tests]
    tests = [r for r, kind in zip(raw.tests, is_test, strict=True) if kind and kind.id is not None]
    others = [r for r, kind in zip(raw.tests, is_test, strict=True) if not kind or kind.id is None]
    processes = _Reader(ProcessTold, unread).all(raw.processes)
    return Side(
        processes=tuple(sorted(processes, key=lambda process: process.pid)),
        tests=_Reader(TestTold, unread).all(tests),
        run=_Reader(RunTold, unread).all(others),
        unread=tuple(unread),
    )


def _without_lone_surrogates(data: bytes) -> bytes:
    """Bytes of file names and outputs that are no UTF-8 travel as half characters: spell them."""
    if b"\\ud" not in data.lower():
        return data
    try:
        return json.dumps(_spelt(json.loads(data))).encode()
    except (ValueError, RecursionError):
        return data  # the reader says what is wrong with it


def _spelt(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_spelt(each) for each in value]
    if isinstance(value, dict):
        return {_spelt(name): _spelt(each) for name, each in value.items()}
    return value


class _Reader(Generic[RecordT]):
    """Reads records of one kind, and keeps what it could not read of them."""

    def __init__(self, kind: type[RecordT], unread: list[str]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        self._unread = unread

    def read(self, data: bytes) -> RecordT | None:
        try:
            return self._decoder.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._unread.append(str(error)[:200])
            return None

    def all(self, records: tuple[msgspec.Raw, ...] | list[msgspec.Raw]) -> tuple[RecordT, ...]:
        read = (self.read(bytes(record)) for record in records)
        return tuple(record for record in read if record is not None)

"""Records as text, and back: what every store keeps, so that all stores keep the same."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from becausal.domain.errors import BecausalError
from becausal.domain.journal import AnyEvent
from becausal.domain.trial import Trial

RecordT = TypeVar("RecordT")

_encoder = msgspec.json.Encoder()
_events: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_trials: msgspec.json.Decoder[Trial] = msgspec.json.Decoder(Trial)


def written_event(event: AnyEvent) -> str:
    """An event as JSON; raises `record-unwritable` when it would not read back the same."""
    return _written(event, _events)


def written_trial(trial: Trial) -> str:
    """A trial as JSON; raises `record-unwritable` when it would not read back the same."""
    return _written(trial, _trials)


def read_event(text: str) -> AnyEvent:
    """The event again; raises `record-unreadable` when this version does not know it."""
    return _read(text, _events)


def read_trial(text: str) -> Trial:
    """The trial again; raises `record-unreadable` when this version does not know it."""
    return _read(text, _trials)


def _written(record: RecordT, decoder: msgspec.json.Decoder[RecordT]) -> str:
    # Evidence that reads back otherwise (an infinity becomes null, a tuple among free parameters
    # becomes a list) is found out here, while someone can still do something about it.
    try:
        text = _encoder.encode(record).decode()
        same = decoder.decode(text) == record
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise _unwritable(record, str(error)) from error
    if not same:
        raise _unwritable(record, "it would read back as something else")
    return text


def _read(text: str, decoder: msgspec.json.Decoder[RecordT]) -> RecordT:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise BecausalError(
            "record-unreadable",
            f"a record of the journal cannot be read: {error}",
            value=text[:200],
            hint="it was written by another version of becausal, or damaged",
        ) from error


def _unwritable(record: object, why: str) -> BecausalError:
    return BecausalError(
        "record-unwritable",
        f"a {type(record).__name__} cannot be kept: {why}",
        value=repr(record)[:200],
        hint="records hold finite numbers, valid text, and lists (no tuples) in free parameters",
    )

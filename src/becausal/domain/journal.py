"""The journal of a case: append-only events, from which all else that is known is derived."""

from __future__ import annotations

from typing import Any

import msgspec

from becausal.domain.condition import Command, Condition
from becausal.domain.criterion import Criterion
from becausal.domain.finding import Finding
from becausal.domain.observation import Observation
from becausal.domain.signature import Signature
from becausal.domain.trial import TrialKey


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """Something that happened in a case."""


class CaseOpened(Event, frozen=True, kw_only=True, tag="case-opened"):
    command: Command
    criterion: Criterion
    project: str
    """Name of the folder under study."""
    tool_version: str


class Observed(Event, frozen=True, kw_only=True, tag="observed"):
    observation: Observation


class SymptomNamed(Event, frozen=True, kw_only=True, tag="symptom-named"):
    """The failure of the case: the signature of its first failing run."""

    signature: Signature
    trial: TrialKey


class SearchStarted(Event, frozen=True, kw_only=True, tag="search-started"):
    search: str
    question: str
    """`reproduce`, `bisect`, …"""
    version: int
    """Of the algorithm: another version does not resume this search."""
    seed: int
    width: int
    parameters: dict[str, Any]
    conditions: tuple[Condition, ...]


class StepTold(Event, frozen=True, kw_only=True, tag="step-told"):
    """A step was answered in full; what the clock said of it, so that a replay hears the same."""

    search: str
    step: int
    seconds: float
    budget_ended: bool


class SearchEnded(Event, frozen=True, kw_only=True, tag="search-ended"):
    search: str
    finding: Finding
    rests_on: tuple[TrialKey, ...]


class SearchDelivered(Event, frozen=True, kw_only=True, tag="search-delivered"):
    """The answer reached whoever asked: only now is the command finished, and not to be resumed."""

    search: str


class SearchAbandoned(Event, frozen=True, kw_only=True, tag="search-abandoned"):
    """The search answers no question of this case, and is not to be resumed."""

    search: str
    why: str


class Noted(Event, frozen=True, kw_only=True, tag="noted"):
    text: str
    by: str = ""


AnyEvent = (
    CaseOpened
    | Observed
    | SymptomNamed
    | SearchStarted
    | StepTold
    | SearchEnded
    | SearchDelivered
    | SearchAbandoned
    | Noted
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An event in its place: `seq` counts from 1 within the case."""

    case: str
    seq: int
    at: float
    event: AnyEvent

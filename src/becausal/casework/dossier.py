"""Dossiers: the view of a case that is derived from its journal. Nothing here is stored."""

from __future__ import annotations

from typing import Literal

import msgspec

from becausal.domain.finding import Finding, Reproduction
from becausal.domain.journal import (
    CaseOpened,
    Entry,
    Noted,
    Observed,
    SearchAbandoned,
    SearchEnded,
    SearchStarted,
    SymptomNamed,
)
from becausal.domain.observation import Observation
from becausal.domain.signature import Signature
from becausal.domain.trial import TrialKey
from becausal.ports.store import Store

Status = Literal["open", "reproduced", "not-reproduced", "could-not-run"]


_STATUS: dict[str, Status] = {
    "not-reproduced": "not-reproduced",
    "could-not-run": "could-not-run",
}


class Established(msgspec.Struct, frozen=True, kw_only=True):
    """A finding in its place in the case."""

    search: str
    finding: Finding
    rests_on: tuple[TrialKey, ...]
    at: float


class Dossier(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a case."""

    case: str
    opened: CaseOpened
    opened_at: float
    changed_at: float
    observation: Observation | None
    symptom: Signature | None
    findings: tuple[Established, ...]
    unfinished: tuple[str, ...]
    """Searches that were interrupted; the same command goes on with them."""
    notes: tuple[str, ...]

    @property
    def reproduction(self) -> Reproduction | None:
        """The latest one."""
        found = [e.finding for e in self.findings if isinstance(e.finding, Reproduction)]
        return found[-1] if found else None

    @property
    def status(self) -> Status:
        """Seen once, a failure stays reproduced: clean runs later are no proof that it is gone."""
        verdicts = [e.finding.verdict for e in self.findings]
        if "consistent" in verdicts or "intermittent" in verdicts:
            return "reproduced"
        return "open" if not verdicts else _STATUS[verdicts[-1]]


def dossier(store: Store, case: str) -> Dossier:
    """Derive the view of a case; raises `case-unknown`."""
    return derive(store.journal(case))


def derive(entries: tuple[Entry, ...]) -> Dossier:
    opened = entries[0].event
    assert isinstance(opened, CaseOpened), "a journal starts with its case being opened"
    events = [entry.event for entry in entries]
    started = [e.search for e in events if isinstance(e, SearchStarted)]
    over = {e.search for e in events if isinstance(e, SearchEnded | SearchAbandoned)}
    symptoms = [e.signature for e in events if isinstance(e, SymptomNamed)]
    observed = [e.observation for e in events if isinstance(e, Observed)]
    return Dossier(
        case=entries[0].case,
        opened=opened,
        opened_at=entries[0].at,
        changed_at=entries[-1].at,
        observation=observed[-1] if observed else None,
        symptom=symptoms[0] if symptoms else None,
        findings=tuple(
            Established(
                search=e.event.search,
                finding=e.event.finding,
                rests_on=e.event.rests_on,
                at=e.at,
            )
            for e in entries
            if isinstance(e.event, SearchEnded)
        ),
        unfinished=tuple(s for s in started if s not in over),
        notes=tuple(e.text for e in events if isinstance(e, Noted)),
    )

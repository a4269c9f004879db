"""Carrying a case away: its journal, trials and artifacts as one document."""

from __future__ import annotations

import base64

import msgspec

from becausal.domain.journal import Entry
from becausal.domain.trial import Trial
from becausal.ports.store import Store

FORMAT = 1


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A whole case, able to stand on another machine."""

    format: int
    tool_version: str
    case: str
    journal: tuple[Entry, ...]
    trials: tuple[Trial, ...]
    artifacts: dict[str, str]
    """Digest to bytes, in base64."""


def export(store: Store, case: str, *, tool_version: str) -> Exported:
    """Gather a case with every artifact that it cites."""
    journal, trials = store.journal(case), store.trials(case)
    cited = {digest for trial in trials for _, digest in trial.artifacts} | _sources(journal)
    return Exported(
        format=FORMAT,
        tool_version=tool_version,
        case=case,
        journal=journal,
        trials=trials,
        artifacts={d: base64.b64encode(store.get(d)).decode() for d in sorted(cited)},
    )


def _sources(journal: tuple[Entry, ...]) -> set[str]:
    """Patches and inputs of the conditions that were studied."""
    cited: set[str] = set()
    for entry in journal:
        for condition in getattr(entry.event, "conditions", ()):
            cited |= {d for d in (condition.source.patch, condition.input) if d is not None}
    return cited

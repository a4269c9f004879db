"""Series: one run of a search as the journal holds it, and how an interrupted one is found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from becausal.casework.bench import Bench
from becausal.casework.plan import Plan
from becausal.domain.journal import (
    AnyEvent,
    SearchAbandoned,
    SearchDelivered,
    SearchEnded,
    SearchStarted,
    StepTold,
)
from becausal.domain.trial import Trial


@dataclass(frozen=True, kw_only=True)
class Series:
    """A search run: what was asked, and what of it is answered already."""

    started: SearchStarted
    told: dict[int, StepTold]
    trials: tuple[Trial, ...]
    ended: SearchEnded | None = None
    """Its finding, when only handing it over was left to do."""


def start(bench: Bench, case: str, plan: Plan[Any]) -> Series:
    """Journal a new series of the plan."""
    drawn = f"{case}|{len(bench.store.journal(case))}|{bench.entropy}"
    digest = hashlib.blake2b(drawn.encode(), digest_size=8).digest()
    started = SearchStarted(
        search=f"{plan.question}-{digest.hex()[:8]}",
        question=plan.question,
        version=plan.version,
        seed=int.from_bytes(digest[:6], "big"),
        width=bench.lab.width,
        parameters=_plain(plan.parameters),
        conditions=_conditions(plan),
    )
    bench.store.append(case, [started], at=bench.clock.now())
    return Series(started=started, told={}, trials=())


def interrupted(bench: Bench, case: str, plan: Plan[Any]) -> list[Series]:
    """Series of exactly this plan whose answer nobody got yet, newest first."""
    events = [entry.event for entry in bench.store.journal(case)]
    found = [s for s in _open(events) if _same(s, plan)]
    return [_load(bench, case, s, events) for s in reversed(found)]


def _open(events: list[AnyEvent]) -> list[SearchStarted]:
    over = {e.search for e in events if isinstance(e, SearchDelivered | SearchAbandoned)}
    return [e for e in events if isinstance(e, SearchStarted) and e.search not in over]


def _same(started: SearchStarted, plan: Plan[Any]) -> bool:
    return (
        started.question == plan.question
        and started.version == plan.version
        and started.parameters == _plain(plan.parameters)
        and {c.id for c in started.conditions} == {c.id for c in _conditions(plan)}
    )


def _load(bench: Bench, case: str, started: SearchStarted, events: list[AnyEvent]) -> Series:
    told = {e.step: e for e in events if isinstance(e, StepTold) and e.search == started.search}
    ended = [e for e in events if isinstance(e, SearchEnded) and e.search == started.search]
    return Series(
        started=started,
        told=told,
        trials=bench.store.trials(case, started.search),
        ended=ended[0] if ended else None,
    )


def deliver(bench: Bench, case: str, search: str) -> None:
    """Journal that the answer of a search was handed over."""
    bench.store.append(case, [SearchDelivered(search=search)], at=bench.clock.now())


def _conditions(plan: Plan[Any]) -> tuple[Any, ...]:
    return tuple(plan.arms[name].condition for name in sorted(plan.arms))


def _plain(parameters: Any) -> dict[str, Any]:
    """Parameters as they come back from the journal, so that equal means equal."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(parameters)))
    return plain

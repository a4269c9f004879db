"""Strata: what fresh processes and warm servers say of the same failure, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping

from becausal.domain.condition import Warmth
from becausal.domain.finding import Disagreement, Stratum
from becausal.inquiry.evalue import Counts, same_rate
from becausal.inquiry.search import Tally
from becausal.inquiry.sequence import interval


def counts_of(tally: Tally) -> Counts:
    return tally.failed, tally.passed


def stratum(mode: Warmth, tally: Tally, level: float) -> Stratum:
    """A tally with its rate and interval.

    The rate is how often a run shows this failure. A run that ended in another one did not show
    it: it counts against the rate, though it is no pass.
    """
    ran = tally.counted + tally.otherwise + tally.timed_out
    return Stratum(
        mode=mode,
        trials=ran,
        failures=tally.failed,
        rate=tally.failed / ran if tally.counted else None,
        interval=interval((tally.failed, ran - tally.failed), level),
        otherwise=tally.otherwise,
        timed_out=tally.timed_out,
        could_not_run=tally.could_not_run,
    )


def total(tallies: Mapping[str, Tally]) -> Tally:
    return sum(tallies.values(), Tally())


def disagreement(cold: Tally, servers: Mapping[str, Tally], error: float) -> Disagreement | None:
    """Rates that differ beyond chance: between warm servers, or between warm and cold.

    Warm servers differ in nothing but their hash seed, so theirs is looked at first: it explains
    a difference to cold runs as well. The two questions share the error.
    """
    bar = 2.0 / error
    between = same_rate([counts_of(tally) for tally in servers.values()])
    if between >= bar:
        often = sorted(servers, key=lambda name: _rate(servers[name]))
        return Disagreement(
            between=(often[0], often[-1]),
            e_value=between,
            reason="hash-seed",
            detail=_said({name: servers[name] for name in (often[0], often[-1])}),
        )
    warm = total(servers)
    across = same_rate([counts_of(cold), counts_of(warm)])
    if across < bar:
        return None
    return Disagreement(
        between=("cold", "warm"),
        e_value=across,
        reason=_reason(cold, servers),
        detail=_said({"cold": cold, "warm": warm}),
    )


def _reason(cold: Tally, servers: Mapping[str, Tally]) -> str:
    """What the counts alone point to; a likely reason, which an experiment has to show."""
    warm = total(servers)
    if not cold.failed:
        # It takes a process that has lived before the test: something was left in it.
        return "leftover-state"
    steady = not any(tally.failed and tally.passed for tally in servers.values())
    if cold.passed and steady:
        # Every fresh process has a hash seed of its own, every server keeps its one.
        return "hash-seed"
    if not cold.passed and not warm.failed:
        # A fresh process always fails, one that collected the tests first never does.
        return "import-order"
    return "unknown"


def _rate(tally: Tally) -> float:
    return tally.failed / tally.counted if tally.counted else 0.5


def _said(tallies: Mapping[str, Tally]) -> str:
    return ", ".join(f"{name} {t.failed}/{t.counted} fail" for name, t in tallies.items())

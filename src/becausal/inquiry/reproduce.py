"""Reproduce: how often does the failure show, and how sure is that?"""

from __future__ import annotations

from typing import Literal

import msgspec

from becausal.domain.condition import Warmth
from becausal.domain.finding import Disagreement, Reproducibility, Reproduction
from becausal.inquiry.search import Batch, Done, Step, Tally, Told
from becausal.inquiry.sequence import gone_runs, interval, width
from becausal.inquiry.strata import counts_of, disagreement, stratum, total

VERSION = 2
COLD = "cold"
WARM_ARMS = ("warm/0", "warm/1", "warm/2")
"""Three servers that differ in nothing but their hash seed."""
GONE_LEVELS = (0.95, 0.99)

_FIRST = 3
_HOPELESS = 7
_ALL_COLD = 5
"""Up to so many runs asked for, warming up would not pay."""
_COLD_STOPS = (3, 7, 14, 24, 40)
_WARM_STOPS = (3, 15, 30, 60)
_COLD_STRIDE, _WARM_STRIDE = 20, 30

Stopped = Literal["precise", "runs", "seconds"]


class ReproduceParameters(msgspec.Struct, frozen=True, kw_only=True):
    """What decides the search; warm trials are thought to cost milliseconds, cold ones seconds."""

    runs: int | None = None
    """Exactly so many trials; None: as many as it takes."""
    cold_only: bool = False
    warm_possible: bool = True
    servers: int = len(WARM_ARMS)
    """Warm arms in use: one, where the hash seed is fixed and servers would be all alike."""
    level: float = 0.95
    """Of the confidence sequence."""
    error: float = 0.01
    """Of calling warm and cold different."""
    width: float = 0.25
    """An intermittent failure is known well enough when its warm interval is this narrow …"""
    cold_width: float = 0.35
    """… or, where only cold trials count, this narrow."""
    consistent: int = 15
    """Warm failures without a pass that, with three cold ones, make it consistent."""
    cold_consistent: int = 7
    """The same where only cold trials count: a 50 % failure passes for it once in 128 times."""
    clean: int = 60
    """Warm passes without a failure (rate below 9 %) after which it is not reproduced."""
    cold_clean: int = 40
    """The same where only cold trials count (rate below 13 %)."""
    clean_checks: int = 14
    """Cold passes that a clean warm series needs beside it: a 20 % failure shows, at 95 %."""
    most_warm: int = 600
    most_cold: int = 150


class Reproduce:
    """Asks for cold and warm trials until the rate is known well enough.

    Only passes and failures with the signature asked about count. When no cold trial counts, the
    verdict is `could-not-run`, whatever warm trials say: other failures and time-outs are no
    passes, so they cannot show that the failure is absent.
    """

    def __init__(self, parameters: ReproduceParameters) -> None:
        if parameters.runs is not None and parameters.runs < 1:
            raise ValueError("a series has at least one run")
        self._p = parameters
        self._cold = Tally()
        self._servers = dict.fromkeys(WARM_ARMS[: parameters.servers], Tally())
        self._asked: dict[Warmth, int] = {"cold": 0, "warm": 0}
        self._differ: Disagreement | None = None
        self._seconds = 0.0
        self._budget_ended = False
        self._pending: Step | Done[Reproduction] | None = None

    def next_step(self) -> Step | Done[Reproduction]:
        if self._pending is None:
            self._pending = self._plan()
        return self._pending

    def tell(self, told: Told) -> None:
        if not isinstance(self._pending, Step):
            raise ValueError("told an answer that was not asked for")
        for batch in self._pending.batches:
            tally = told.tallies[batch.arm]
            if batch.arm == COLD:
                self._asked["cold"] += batch.repeats
                self._cold += tally
            else:
                self._asked["warm"] += batch.repeats
                self._servers[batch.arm] += tally
        self._pending = None
        self._seconds += told.seconds
        self._budget_ended = told.budget_ended
        # Once shown it stays shown: the bound on the error holds for the first time it was seen.
        self._differ = self._differ or disagreement(self._cold, self._servers, self._p.error)

    def _plan(self) -> Step | Done[Reproduction]:
        if self._budget_ended:
            return self._done("seconds")
        if self._hopeless():
            return self._done("precise")
        if self._p.runs is not None:
            return self._exact(self._p.runs)
        cold, warm = self._wishes()
        cold = cold and self._asked["cold"] < self._p.most_cold
        warm = warm and self._asked["warm"] < self._p.most_warm
        if cold or warm:
            return self._step(
                self._grown("cold", _COLD_STOPS, _COLD_STRIDE, self._p.most_cold) if cold else 0,
                self._grown("warm", _WARM_STOPS, _WARM_STRIDE, self._p.most_warm) if warm else 0,
            )
        return self._done("precise" if self._wishes() == (False, False) else "runs")

    def _hopeless(self) -> bool:
        """No cold trial says anything: the first could not run, or several went another way."""
        if self._cold.counted or not self._asked["cold"]:
            return False
        none_ran = self._cold.could_not_run == self._asked["cold"] >= _FIRST
        return none_ran or (self._p.runs is None and self._asked["cold"] >= _HOPELESS)

    def _exact(self, runs: int) -> Step | Done[Reproduction]:
        """A number of runs that was asked for: some cold ones first, the rest warm where it can."""
        left = runs - self._asked["cold"] - self._asked["warm"]
        if not left:
            return self._done("runs")
        warm = runs > _ALL_COLD and self._warm_counts()
        if not self._asked["cold"]:
            first = min(_FIRST, runs)
            return self._step(first, min(_FIRST, runs - first) if warm else 0)
        # The number is fixed, so there is nothing to decide in between.
        return self._step(*((0, left) if warm else (left, 0)))

    def _wishes(self) -> tuple[bool, bool]:
        """Whether more cold, and more warm trials would teach something."""
        cold, warm = self._cold, total(self._servers)
        if not self._warm_counts():
            return not self._settled(cold), False
        if not self._asked["cold"]:
            return True, True
        if self._differ is not None:
            return not self._settled(cold), False
        if cold.counted < _FIRST or warm.counted < _FIRST:
            return cold.counted < _FIRST, warm.counted < _FIRST
        if not cold.passed and not warm.passed:
            return False, warm.counted < self._p.consistent
        if not cold.failed and not warm.failed:
            return cold.counted < self._p.clean_checks, warm.counted < self._p.clean
        if not warm.failed or not warm.passed:
            # Cold trials say something else: know each well enough to tell whether it is chance.
            return not self._settled(cold), warm.counted < self._p.clean
        return not self._checked(cold, warm), self._wide(warm, self._p.width)

    def _settled(self, cold: Tally) -> bool:
        """Cold trials alone say enough."""
        if cold.counted < _FIRST:
            return False
        if not cold.passed:
            return cold.counted >= self._p.cold_consistent
        if not cold.failed:
            return cold.counted >= self._p.cold_clean
        return not self._wide(cold, self._p.cold_width)

    def _checked(self, cold: Tally, warm: Tally) -> bool:
        """An intermittent warm series is confirmed when cold trials show the failure too.

        Where they show none, it takes more than would have shown it.
        """
        if not cold.failed:
            # Twice, so that a real difference has the trials to show itself as one.
            return cold.counted >= 2 * self._needed_to_miss(warm, GONE_LEVELS[1])
        return cold.counted >= (_FIRST if cold.passed else self._p.cold_consistent)

    def _needed_to_miss(self, warm: Tally, level: float) -> int:
        return gone_runs(interval(counts_of(warm), self._p.level)[0], level)

    def _warm_counts(self) -> bool:
        """Warm trials are possible, and the first of them said something."""
        if self._p.cold_only or not self._p.warm_possible:
            return False
        return not self._asked["warm"] or total(self._servers).counted > 0

    def _wide(self, tally: Tally, goal: float) -> bool:
        return width(counts_of(tally), self._p.level) > goal

    def _grown(self, mode: Warmth, stops: tuple[int, ...], stride: int, most: int) -> int:
        """Up to the next stop: small steps while much is open, large ones in a long series."""
        asked = self._asked[mode]
        stop = next((stop for stop in stops if stop > asked), asked + stride)
        return min(stop, most) - asked

    def _step(self, cold: int, warm: int) -> Step:
        batches = [Batch(arm=COLD, repeats=cold)] if cold else []
        for number, arm in enumerate(self._servers):
            share = (warm + len(self._servers) - 1 - number) // len(self._servers)
            if share:
                batches.append(Batch(arm=arm, repeats=share))
        return Step(batches=tuple(batches), learning=self._learning())

    def _learning(self) -> str:
        both = self._cold + total(self._servers)
        if not self._asked["cold"]:
            return "does it fail, and always?"
        return f"{both.failed}/{both.counted} fail so far"

    def _done(self, stopped: Stopped) -> Done[Reproduction]:
        cold, warm = self._cold, total(self._servers)
        mode = self._mode(cold, warm)
        strata = [stratum("cold", cold, self._p.level)]
        if self._asked["warm"]:
            strata.append(stratum("warm", warm, self._p.level))
        main = next(s for s in strata if s.mode == mode)
        lower = main.interval[0]
        levels = GONE_LEVELS if main.failures else ()
        finding = Reproduction(
            verdict=self._verdict(cold, cold if mode == "cold" else cold + warm),
            strata=tuple(strata),
            mode=mode,
            signature=None,
            gone_runs=tuple((level, gone_runs(lower, level)) for level in levels),
            disagreement=self._differ,
            stopped=stopped,
            seconds=self._seconds,
        )
        return Done(finding=finding)

    def _mode(self, cold: Tally, warm: Tally) -> Warmth:
        """Which stratum speaks: the larger while they agree, the cold one when they do not."""
        if self._differ is not None or not cold.counted or warm.counted <= cold.counted:
            return "cold"
        if cold.failed and not warm.failed:
            return "cold"
        if cold.passed and not warm.passed:
            return "cold"
        if warm.failed and not cold.failed:
            missed = cold.counted >= self._needed_to_miss(warm, self._p.level)
            return "cold" if missed else "warm"
        return "warm"

    def _verdict(self, cold: Tally, speaking: Tally) -> Reproducibility:
        if not cold.counted:
            return "could-not-run"
        if not speaking.failed:
            return "not-reproduced"
        missed = speaking.passed + speaking.otherwise + speaking.timed_out
        return "intermittent" if missed else "consistent"

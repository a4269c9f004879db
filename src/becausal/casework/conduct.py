"""Conducting a search: ask it, run what it asks, journal the answers, tell it. Resume is replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from becausal.casework.bench import Bench
from becausal.casework.ledger import Ledger
from becausal.casework.plan import Arm, Plan, derived_seed
from becausal.casework.series import Series, interrupted, start
from becausal.domain.criterion import Criterion
from becausal.domain.journal import SearchEnded, StepTold
from becausal.domain.signature import Signature
from becausal.domain.trial import Outcome, Trial, TrialKey
from becausal.inquiry.search import Done, Step, Tally, Told
from becausal.ports.lab import Order

FindingT = TypeVar("FindingT")


@dataclass(frozen=True, kw_only=True)
class Conducted(Generic[FindingT]):
    """What came of a search."""

    search: str
    finding: FindingT
    trials: tuple[Trial, ...]
    recorded_before: int
    """Trials taken from an interrupted run of the same search."""


class Conductor(Generic[FindingT]):
    """Drives one series of one plan in one case."""

    def __init__(
        self,
        bench: Bench,
        case: str,
        criterion: Criterion,
        plan: Plan[FindingT],
        *,
        symptom: Signature | None,
        after_step: Callable[[str, Sequence[Trial]], None] | None = None,
    ) -> None:
        self._bench = bench
        self._case = case
        self._plan = plan
        self._ledger = Ledger(bench, case, criterion, symptom)
        self._after_step = after_step
        self._names = {arm.condition.id: name for name, arm in plan.arms.items()}
        self._asked = 0
        self._tried = 0
        self._failed = 0

    def conduct(self) -> Conducted[FindingT]:
        with self._series() as series:
            if series.ended is not None:
                return self._handed_over(series, series.ended)
            return self._drive(series)

    @contextmanager
    def _series(self) -> Iterator[Series]:
        """The interrupted series of this plan that nobody works on, or a new one; held."""
        for series in interrupted(self._bench, self._case, self._plan):
            with self._bench.store.hold(f"search-{series.started.search}") as held:
                if held:
                    yield series
                    return
        series = start(self._bench, self._case, self._plan)
        with self._bench.store.hold(f"search-{series.started.search}"):
            yield series

    def _handed_over(self, series: Series, ended: SearchEnded) -> Conducted[FindingT]:
        """The search had ended; only its answer was not handed over."""
        return Conducted(
            search=ended.search,
            finding=ended.finding,  # type: ignore[arg-type]  # of this plan, so of its kind
            trials=tuple(sorted(series.trials, key=lambda t: t.key)),
            recorded_before=len(series.trials),
        )

    def _drive(self, series: Series) -> Conducted[FindingT]:
        search = self._plan.search(series.started.seed)
        recorded = {trial.key: trial for trial in series.trials}
        number, spent = 0, 0.0
        trials: list[Trial] = []
        if self._ledger.symptom is None:
            # Killed between recording the first failure and naming it.
            self._ledger.name_symptom(sorted(series.trials, key=lambda t: t.key.step))
        while isinstance(step := search.next_step(), Step):
            self._asked += sum(batch.repeats for batch in step.batches)
            told = series.told.get(number)
            if told is None:
                told, answers = self._ask(series, number, step, recorded, spent)
            else:
                answers = [t for t in series.trials if t.key.step == number]
                self._count(answers)
            spent += told.seconds
            trials.extend(answers)
            search.tell(self._told(step, answers, told))
            if self._after_step is not None:
                self._after_step(series.started.search, trials)
            number += 1
        return self._end(series, step, trials)

    def _ask(
        self,
        series: Series,
        number: int,
        step: Step,
        recorded: dict[TrialKey, Trial],
        spent: float,
    ) -> tuple[StepTold, list[Trial]]:
        """Run what of a step is not recorded yet, and journal that it is answered."""
        clock = self._bench.clock
        began = clock.elapsed()
        orders = self._orders(series, number, step)
        answers = [recorded[key] for key in orders if key in recorded]
        self._count(answers)
        missing = {key: order for key, order in orders.items() if key not in recorded}
        ended = self._run(missing, step, answers, began, spent)
        told = StepTold(
            search=series.started.search,
            step=number,
            seconds=round(clock.elapsed() - began, 3),
            budget_ended=ended,
        )
        self._bench.store.append(self._case, [told], at=clock.now())
        return told, answers

    def _run(
        self,
        missing: dict[TrialKey, Order],
        step: Step,
        answers: list[Trial],
        began: float,
        spent: float,
    ) -> bool:
        """Run orders, adding their trials to `answers`; True when the time ended first."""
        keys = {order.ticket: key for key, order in missing.items()}
        self._ledger.expect(list(missing))
        ended = self._out_of_time(began, spent)
        self._report(step)
        try:
            if not ended:
                with closing(self._bench.lab.run(list(missing.values()))) as running:
                    for order, recording in running:
                        judged = self._ledger.take(keys[order.ticket], order, recording)
                        answers.extend(judged)
                        self._count(judged)
                        self._report(step)
                        if ended := self._out_of_time(began, spent):
                            break
            late = self._ledger.drain()
            answers.extend(late)
        finally:
            # Also when interrupted: what is judged is kept, and a later run goes on from it. What
            # waits for an earlier trial is not: only with that one is it known which names the
            # failure, and whoever goes on has to find the same.
            self._ledger.flush()
        self._count(late)
        return ended

    def _orders(self, series: Series, number: int, step: Step) -> dict[TrialKey, Order]:
        orders: dict[TrialKey, Order] = {}
        for batch in step.batches:
            arm = self._plan.arms[batch.arm]
            for repeat in range(batch.repeats):
                key = TrialKey(series.started.search, number, arm.condition.id, repeat)
                orders[key] = _order(len(orders), arm, series.started.seed, key)
        return orders

    def _told(self, step: Step, answers: Sequence[Trial], told: StepTold) -> Told:
        tallies = {batch.arm: Tally() for batch in step.batches}
        for trial in answers:
            arm = self._names[trial.key.condition]
            tallies[arm] = tallies[arm] + tally_of(trial)
        return Told(tallies=tallies, seconds=told.seconds, budget_ended=told.budget_ended)

    def _end(
        self, series: Series, done: Done[FindingT], trials: list[Trial]
    ) -> Conducted[FindingT]:
        trials = sorted(trials, key=lambda t: t.key)
        finding = self._plan.complete(done.finding, trials, self._ledger.symptom)
        ended = SearchEnded(
            search=series.started.search,
            finding=finding,  # type: ignore[arg-type]  # every plan ends in a Finding
            rests_on=tuple(t.key for t in trials),
        )
        self._bench.store.append(self._case, [ended], at=self._bench.clock.now())
        self._bench.progress.end()
        return Conducted(
            search=series.started.search,
            finding=finding,
            trials=tuple(trials),
            recorded_before=len(series.trials),
        )

    def _out_of_time(self, began: float, spent: float) -> bool:
        limit = self._plan.seconds
        if limit is None or not spent:
            return False  # the first step is run whole: less would answer nothing
        return self._plan.spent + spent + self._bench.clock.elapsed() - began >= limit

    def _count(self, trials: Sequence[Trial]) -> None:
        self._tried += len(trials)
        self._failed += sum(t.outcome is Outcome.FAILED for t in trials)

    def _report(self, step: Step) -> None:
        learning = f"{self._failed}/{self._tried} fail so far" if self._tried else step.learning
        self._bench.progress.advance(self._tried, self._asked, learning)


def tally_of(trial: Trial) -> Tally:
    """One trial as counts."""
    names = {
        Outcome.PASSED: "passed",
        Outcome.FAILED: "failed",
        Outcome.FAILED_OTHERWISE: "otherwise",
        Outcome.TIMED_OUT: "timed_out",
        Outcome.COULD_NOT_RUN: "could_not_run",
    }
    return Tally(**{names[trial.outcome]: 1}, seconds=trial.seconds)


def _order(ticket: int, arm: Arm, seed: int, key: TrialKey) -> Order:
    fixed = arm.condition.seed
    drawn = derived_seed(seed, key, "hash")
    return Order(
        ticket=ticket,
        condition=arm.condition,
        seed=derived_seed(seed, key, "trial") if fixed is None else fixed,
        hash_seed=drawn if arm.hash_seed is None else arm.hash_seed,
    )

"""The search that reproduces: what it asks, when it ends, what it says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becausal.domain.finding import Reproduction
from becausal.inquiry.reproduce import COLD, WARM_ARMS, Reproduce, ReproduceParameters
from becausal.inquiry.search import Done, Step, Tally, Told
from becausal.testing.simulated_lab import SimulatedTallies, Truth

shares = st.floats(0, 1)
truths = st.builds(
    Truth,
    failing=st.sampled_from([0.0, 0.05, 0.5, 1.0]) | shares,
    failing_warm=st.none() | shares,
    hash_seeds=st.none() | shares,
    otherwise=st.floats(0, 0.3) | st.just(1.0),
    timing_out=st.floats(0, 0.3),
    could_not_run=st.floats(0, 0.4) | st.just(1.0),
)
parameters = st.builds(
    ReproduceParameters,
    runs=st.none() | st.integers(1, 200),
    cold_only=st.booleans(),
    warm_possible=st.booleans(),
)


def conducted(
    truth: Truth, seed: int = 0, **asked: Any
) -> tuple[Reproduction, list[Step], list[Told]]:
    return answered_by(SimulatedTallies(truth, seed), ReproduceParameters(**asked))


def answered_by(
    world: SimulatedTallies, asked: ReproduceParameters
) -> tuple[Reproduction, list[Step], list[Told]]:
    search = Reproduce(asked)
    steps: list[Step] = []
    answers: list[Told] = []
    while isinstance(step := search.next_step(), Step):
        steps.append(step)
        answers.append(world.answer(step))
        search.tell(answers[-1])
        assert len(steps) < 100, "the search has to end"
    return step.finding, steps, answers


def asked_of(steps: Sequence[Step]) -> Counter[str]:
    asked: Counter[str] = Counter()
    for step in steps:
        asked.update({batch.arm: batch.repeats for batch in step.batches})
    return asked


def verdicts(truth: Truth, runs: int = 100, **asked: Any) -> Counter[str]:
    return Counter(conducted(truth, seed, **asked)[0].verdict for seed in range(runs))


@given(truths, parameters, st.integers(0, 5))
def test_any_search_ends_and_adds_up(truth: Truth, asked: ReproduceParameters, seed: int) -> None:
    finding, steps, answers = answered_by(SimulatedTallies(truth, seed), asked)
    assert all(b.repeats > 0 for step in steps for b in step.batches)
    told = sum((t for answer in answers for t in answer.tallies.values()), Tally())
    ran = told.counted + told.otherwise + told.timed_out
    assert sum(s.trials for s in finding.strata) == ran
    assert sum(s.failures for s in finding.strata) == told.failed
    assert sum(s.otherwise + s.timed_out + s.could_not_run for s in finding.strata) == (
        told.otherwise + told.timed_out + told.could_not_run
    )
    assert finding.main.interval[0] <= (finding.main.rate or 0) <= finding.main.interval[1]
    assert (finding.verdict == "could-not-run") is (finding.strata[0].rate is None)
    assert finding.seconds == pytest.approx(sum(answer.seconds for answer in answers))


def test_a_failure_that_another_one_takes_turns_with_is_not_consistent() -> None:
    truth = Truth(failing=1.0, otherwise=0.5)
    found = verdicts(truth, runs=50)
    assert "consistent" not in found
    assert found["intermittent"] > 45
    finding, _, _ = answered_by(SimulatedTallies(truth, 1), ReproduceParameters())
    low, high = finding.main.interval
    assert low < 0.5 < high


@given(truths, parameters, st.integers(0, 5))
def test_same_answers_give_the_same_search(
    truth: Truth, asked: ReproduceParameters, seed: int
) -> None:
    finding, steps, answers = answered_by(SimulatedTallies(truth, seed), asked)
    replayed = Reproduce(asked)
    for step, answer in zip(steps, answers, strict=True):
        assert replayed.next_step() == step
        replayed.tell(answer)
    assert replayed.next_step() == Done(finding=finding)


@given(truths, parameters, st.integers(0, 5))
def test_warm_arms_are_asked_only_where_they_may_be(
    truth: Truth, asked: ReproduceParameters, seed: int
) -> None:
    _, steps, _ = answered_by(SimulatedTallies(truth, seed), asked)
    arms = {batch.arm for step in steps for batch in step.batches}
    allowed = {COLD, *WARM_ARMS} if asked.warm_possible and not asked.cold_only else {COLD}
    assert arms <= allowed
    assert COLD in {batch.arm for batch in steps[0].batches}


@settings(max_examples=60)
@given(st.integers(1, 400), st.booleans(), shares)
def test_runs_asked_for_are_run_exactly(runs: int, warm: bool, failing: float) -> None:
    finding, steps, _ = conducted(Truth(failing=failing), runs=runs, warm_possible=warm)
    asked = asked_of(steps)
    assert asked.total() == runs
    assert finding.stopped == "runs"
    assert asked[COLD] == (3 if warm and runs > 5 else runs)


def test_servers_share_a_warm_series_evenly() -> None:
    _, steps, _ = conducted(Truth(failing=0.5), runs=103)
    warm = [asked_of(steps)[arm] for arm in WARM_ARMS]
    assert sum(warm) == 100
    assert max(warm) - min(warm) <= len(steps)


def test_step_is_repeated_until_it_is_answered() -> None:
    search = Reproduce(ReproduceParameters())
    assert search.next_step() is search.next_step()


def test_nothing_is_asked_and_nothing_accepted_after_the_end() -> None:
    search = Reproduce(ReproduceParameters(runs=1))
    with pytest.raises(ValueError, match="not asked"):
        search.tell(Told(tallies={}))
    assert isinstance(search.next_step(), Step)
    search.tell(Told(tallies={COLD: Tally(failed=1)}))
    done = search.next_step()
    assert isinstance(done, Done)
    with pytest.raises(ValueError, match="not asked"):
        search.tell(Told(tallies={COLD: Tally(failed=1)}))
    assert search.next_step() == done


def test_no_runs_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one run"):
        Reproduce(ReproduceParameters(runs=0))


@pytest.mark.parametrize(
    ("failing", "verdict", "at_least"),
    [
        (0.0, "not-reproduced", 100),
        (0.05, "intermittent", 90),
        (0.2, "intermittent", 99),
        (0.5, "intermittent", 99),
        (1.0, "consistent", 100),
    ],
)
def test_verdict_is_right_for_known_rates(failing: float, verdict: str, at_least: int) -> None:
    assert verdicts(Truth(failing=failing))[verdict] >= at_least


@pytest.mark.parametrize(
    ("failing", "verdict", "at_least"),
    [
        (0.0, "not-reproduced", 100),
        (0.05, "intermittent", 75),
        (0.2, "intermittent", 99),
        (0.5, "intermittent", 95),
        (1.0, "consistent", 100),
    ],
)
def test_verdict_is_right_without_warm_trials(failing: float, verdict: str, at_least: int) -> None:
    assert verdicts(Truth(failing=failing), cold_only=True)[verdict] >= at_least


def test_intermittent_failure_is_known_to_the_width_asked_for() -> None:
    for seed in range(50):
        finding, steps, _ = conducted(Truth(failing=0.2), seed)
        low, high = finding.main.interval
        assert high - low <= 0.25
        assert finding.stopped == "precise"
        assert asked_of(steps).total() < 300


def test_interval_of_the_finding_covers_whenever_the_search_stopped() -> None:
    for failing in (0.05, 0.2, 0.6):
        found = [conducted(Truth(failing=failing), seed)[0] for seed in range(300)]
        missed = sum(not f.main.interval[0] <= failing <= f.main.interval[1] for f in found)
        assert missed / 300 <= 0.05


def test_consistent_failure_costs_few_trials() -> None:
    finding, steps, _ = conducted(Truth(failing=1.0))
    assert asked_of(steps)[COLD] == 3
    assert asked_of(steps).total() == 18
    assert finding.mode == "warm"


def test_clean_runs_for_gone_come_from_the_lower_bound() -> None:
    finding, _, _ = conducted(Truth(failing=0.2))
    levels = dict(finding.gone_runs)
    low = finding.main.interval[0]
    assert (1 - low) ** levels[0.95] <= 0.05
    assert (1 - low) ** levels[0.99] <= 0.01
    assert conducted(Truth())[0].gone_runs == ()


def test_clean_series_is_checked_by_enough_cold_runs() -> None:
    finding, _, _ = conducted(Truth())
    cold = finding.strata[0]
    assert cold.mode == "cold"
    assert 0.8**cold.trials <= 0.05, "a 20 % failure would have shown in cold runs"


@pytest.mark.parametrize(
    ("truth", "verdict", "reason"),
    [
        (Truth(failing=1.0, failing_warm=0.0), "consistent", "import-order"),
        (Truth(failing=0.0, failing_warm=1.0), "not-reproduced", "leftover-state"),
        (Truth(failing=0.0, failing_warm=0.3), "not-reproduced", "leftover-state"),
        (Truth(hash_seeds=0.5), "intermittent", "hash-seed"),
    ],
)
def test_warm_and_cold_that_differ_are_a_finding(truth: Truth, verdict: str, reason: str) -> None:
    findings = [conducted(truth, seed)[0] for seed in range(50)]
    differing = [f.disagreement for f in findings if f.disagreement is not None]
    assert len(differing) >= 45
    assert Counter(d.reason for d in differing)[reason] >= 45
    assert Counter(f.verdict for f in findings)[verdict] >= 45
    assert all(f.mode == "cold" for f in findings if f.disagreement is not None)


def test_cold_trials_speak_where_warm_ones_differ() -> None:
    search = Reproduce(ReproduceParameters(runs=46))
    warm = dict.fromkeys(WARM_ARMS, Tally(failed=9, passed=1))
    told = Told(tallies={COLD: Tally(failed=2, passed=14), **warm})
    while isinstance(search.next_step(), Step):
        search.tell(told)
        told = Told(tallies=dict.fromkeys((COLD, *WARM_ARMS), Tally()))
    done = search.next_step()
    assert isinstance(done, Done)
    assert done.finding.disagreement is not None
    assert (done.finding.mode, done.finding.main.trials) == ("cold", 16)


def test_equal_warm_and_cold_are_seldom_said_to_differ() -> None:
    for failing in (0.05, 0.2, 0.5, 0.95):
        found = [conducted(Truth(failing=failing), seed)[0] for seed in range(300)]
        assert sum(f.disagreement is not None for f in found) <= 3


def test_warm_failures_alone_reproduce_nothing() -> None:
    search = Reproduce(ReproduceParameters())
    search.next_step()
    warm = dict.fromkeys(WARM_ARMS, Tally(failed=1))
    search.tell(Told(tallies={COLD: Tally(could_not_run=3), **warm}))
    done = search.next_step()
    assert isinstance(done, Done)
    assert done.finding.verdict == "could-not-run"


@pytest.mark.parametrize("truth", [Truth(otherwise=1.0), Truth(timing_out=1.0)])
def test_other_failures_are_no_passes(truth: Truth) -> None:
    finding, steps, _ = conducted(truth)
    assert finding.verdict == "could-not-run"
    assert asked_of(steps).total() <= 12
    assert finding.strata[0].otherwise + finding.strata[0].timed_out == asked_of(steps)[COLD]


def test_warm_trials_that_say_nothing_are_given_up() -> None:
    search = Reproduce(ReproduceParameters())
    search.next_step()
    warm = dict.fromkeys(WARM_ARMS, Tally(could_not_run=1))
    search.tell(Told(tallies={COLD: Tally(failed=3), **warm}))
    step = search.next_step()
    assert isinstance(step, Step)
    assert {batch.arm for batch in step.batches} == {COLD}


def test_end_of_the_budget_ends_the_search_with_what_is_known() -> None:
    search = Reproduce(ReproduceParameters())
    step = search.next_step()
    assert isinstance(step, Step)
    told = SimulatedTallies(Truth(failing=1.0)).answer(step, budget_ended=True)
    search.tell(told)
    done = search.next_step()
    assert isinstance(done, Done)
    assert (done.finding.stopped, done.finding.verdict) == ("seconds", "consistent")


def test_budget_that_ends_before_a_cold_answer_leaves_it_open() -> None:
    search = Reproduce(ReproduceParameters())
    search.next_step()
    nothing = dict.fromkeys((COLD, *WARM_ARMS), Tally())
    search.tell(Told(tallies=nothing, budget_ended=True))
    done = search.next_step()
    assert isinstance(done, Done)
    assert done.finding.verdict == "could-not-run"


def test_learning_tells_what_is_known_so_far() -> None:
    _, steps, _ = conducted(Truth(failing=1.0))
    assert steps[1].learning == "6/6 fail so far"

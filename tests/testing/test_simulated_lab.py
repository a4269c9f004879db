"""The simulated laboratory: its truth is the one that was given."""

from __future__ import annotations

import pytest

from becausal.domain.condition import Command, Condition, Source
from becausal.domain.criterion import Criterion
from becausal.domain.trial import Outcome
from becausal.inquiry.outcome import judge
from becausal.inquiry.reproduce import COLD, WARM_ARMS
from becausal.inquiry.search import Batch, Step
from becausal.ports.lab import Lab, Order
from becausal.testing.simulated_lab import SimulatedLab, SimulatedTallies, Truth

MIXED = Truth(failing=0.5, otherwise=0.1, timing_out=0.1, could_not_run=0.1)


def condition(warm: bool = False, argv: tuple[str, ...] = ("pytest",)) -> Condition:
    return Condition(source=Source(), command=Command(argv=argv), warmth="warm" if warm else "cold")


def orders(count: int, of: Condition) -> list[Order]:
    return [Order(ticket=n, condition=of, seed=n, hash_seed=n) for n in range(count)]


def outcomes(lab: Lab, count: int, of: Condition) -> dict[int, Outcome]:
    return {
        order.ticket: judge(recording, Criterion(), None).outcome
        for order, recording in lab.run(orders(count, of))
    }


def test_recordings_are_judged_as_the_truth_meant() -> None:
    found = list(outcomes(SimulatedLab(MIXED), 2_000, condition()).values())
    share = {outcome: found.count(outcome) / 2_000 for outcome in Outcome}
    # Failing otherwise is failing, while the failure of the case has no name.
    assert share[Outcome.FAILED] == pytest.approx(0.7 * 0.5 + 0.1, abs=0.04)
    assert share[Outcome.TIMED_OUT] == pytest.approx(0.1, abs=0.03)
    assert share[Outcome.COULD_NOT_RUN] == pytest.approx(0.1, abs=0.03)


def test_failures_have_one_signature_and_other_failures_another() -> None:
    lab = SimulatedLab(Truth(failing=1.0, otherwise=0.5))
    signatures = {
        judge(recording, Criterion(), None).signature
        for _, recording in lab.run(orders(100, condition()))
    }
    assert {s.kind for s in signatures if s is not None} == {"AssertionError", "ConnectionError"}
    assert len(signatures) == 2


def test_same_order_has_the_same_recording_whatever_runs_beside_it() -> None:
    alone = {o.ticket: r for o, r in SimulatedLab(MIXED).run(orders(1, condition()))}
    beside = {o.ticket: r for o, r in SimulatedLab(MIXED).run(orders(50, condition()))}
    assert beside[0] == alone[0]


def test_answers_come_out_of_order_and_are_remembered() -> None:
    lab = SimulatedLab(Truth())
    came = [order.ticket for order, _ in lab.run(orders(50, condition()))]
    assert sorted(came) == list(range(50)) != came
    assert [order.ticket for order in lab.orders] == came


def test_commands_may_have_truths_of_their_own() -> None:
    lab = SimulatedLab({("good",): Truth(), ("bad",): Truth(failing=1.0)})
    assert set(outcomes(lab, 5, condition(argv=("good",))).values()) == {Outcome.PASSED}
    assert set(outcomes(lab, 5, condition(argv=("bad",))).values()) == {Outcome.FAILED}


def test_warm_trials_may_go_another_way() -> None:
    lab = SimulatedLab(Truth(failing=1.0, failing_warm=0.0))
    assert set(outcomes(lab, 5, condition()).values()) == {Outcome.FAILED}
    assert set(outcomes(lab, 5, condition(warm=True)).values()) == {Outcome.PASSED}


def test_hash_seed_alone_may_decide() -> None:
    lab = SimulatedLab(Truth(hash_seeds=0.5))
    found = outcomes(lab, 100, condition())
    again = outcomes(lab, 100, condition(warm=True))
    assert found == again
    assert len(set(found.values())) == 2


def test_closed_laboratory_runs_nothing() -> None:
    lab = SimulatedLab(Truth())
    lab.close()
    with pytest.raises(ValueError, match="closed"):
        list(lab.run(orders(1, condition())))


def test_tallies_follow_the_truth() -> None:
    step = Step(batches=(Batch(arm=COLD, repeats=1_000), Batch(arm=WARM_ARMS[0], repeats=1_000)))
    told = SimulatedTallies(MIXED).answer(step)
    for tally in told.tallies.values():
        assert tally.counted + tally.otherwise + tally.timed_out + tally.could_not_run == 1_000
        assert tally.failed / 1_000 == pytest.approx(0.35, abs=0.06)
    assert told == SimulatedTallies(MIXED).answer(step)
    assert told != SimulatedTallies(MIXED, seed=1).answer(step)

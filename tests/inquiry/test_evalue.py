"""E-values: evidence that peeking does not spoil."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becausal.inquiry.evalue import Counts, log_one_sample, log_same_rate, same_rate

counts = st.tuples(st.integers(0, 300), st.integers(0, 300))


def expected(evidence: dict[Counts, float], rate: float, trials: int) -> float:
    """The mean pay after so many trials, over everything that could have happened."""
    return sum(
        math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) * evidence[k, trials - k]
        for k in range(trials + 1)
    )


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.97])
@pytest.mark.parametrize("trials", [1, 7, 40])
def test_bet_against_the_true_rate_pays_one_on_average(rate: float, trials: int) -> None:
    pay = {(k, trials - k): math.exp(log_one_sample((k, trials - k), rate)) for k in range(41)}
    assert expected(pay, rate, trials) == pytest.approx(1.0)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5])
def test_bet_against_equal_rates_pays_at_most_one_on_average(rate: float) -> None:
    pay = 0.0
    for k in range(13):
        evidence = {(j, 8 - j): same_rate([(k, 12 - k), (j, 8 - j)]) for j in range(9)}
        chance = math.comb(12, k) * rate**k * (1 - rate) ** (12 - k)
        pay += chance * expected(evidence, rate, 8)
    assert pay <= 1.0 + 1e-9


@given(counts, counts)
def test_order_of_arms_plays_no_part(left: Counts, right: Counts) -> None:
    assert log_same_rate([left, right]) == pytest.approx(log_same_rate([right, left]))


@given(st.lists(counts, min_size=1, max_size=4))
def test_failures_and_passes_are_treated_alike(arms: list[Counts]) -> None:
    turned = [(passed, failed) for failed, passed in arms]
    assert log_same_rate(turned) == pytest.approx(log_same_rate(arms))


@given(counts)
def test_nothing_tried_is_no_evidence(arm: Counts) -> None:
    assert same_rate([arm, (0, 0)]) <= 1.0
    assert same_rate([]) == 1.0
    assert log_one_sample((0, 0), 0.3) == pytest.approx(0.0)


def test_what_cannot_happen_is_refuted_at_once() -> None:
    assert log_one_sample((1, 0), 0.0) == math.inf
    assert log_one_sample((0, 1), 1.0) == math.inf


def test_overwhelming_evidence_stays_a_number() -> None:
    assert math.isfinite(same_rate([(10**6, 0), (0, 10**6)]))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.8])
def test_equal_rates_are_seldom_called_different_however_often_one_peeks(rate: float) -> None:
    """Two arms of one rate, looked at after every trial, the weaker evidence tried again."""
    chance, runs, alarms = random.Random(f"peek {rate}"), 1_000, 0
    for _ in range(runs):
        arms = [[0, 0], [0, 0]]
        for _ in range(120):
            # An adversary goes on with the arm that looks more unlike the other.
            arm = arms[_lesser_known(arms)]
            arm[chance.random() >= rate] += 1
            if log_same_rate([(f, p) for f, p in arms]) >= math.log(20):
                alarms += 1
                break
    assert alarms / runs <= 0.05


def _lesser_known(arms: list[list[int]]) -> int:
    """Start with ten each; then the arm with the more extreme rate gets two trials of three."""
    totals = [sum(arm) for arm in arms]
    if min(totals) < 10:
        return totals.index(min(totals))
    extreme = max((0, 1), key=lambda n: abs(arms[n][0] / totals[n] - 0.5))
    return extreme if sum(totals) % 3 else 1 - extreme


@pytest.mark.parametrize(("left", "right"), [(1.0, 0.0), (0.5, 0.0), (0.9, 0.3)])
def test_real_differences_are_found(left: float, right: float) -> None:
    chance, found = random.Random("power"), 0
    for _ in range(200):
        arms = [
            (hits := sum(chance.random() < rate for _ in range(60)), 60 - hits)
            for rate in (left, right)
        ]
        found += same_rate(arms) >= 100
    assert found >= 190

"""Confidence sequences: they hold whenever one stops."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becausal.inquiry.evalue import Counts
from becausal.inquiry.sequence import gone_runs, interval, width

interval_of = functools.cache(interval)
counts = st.tuples(st.integers(0, 500), st.integers(0, 500))


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2, 0.5, 0.9, 1.0])
def test_true_rate_stays_inside_at_every_look_of_a_thousand_runs(rate: float) -> None:
    """Stopping cannot cheat: a run counts as missed when any of its looks ever missed."""
    chance, missed = random.Random(f"coverage {rate}"), 0
    for _ in range(1_000):
        failed = passed = 0
        for _ in range(150):
            hit = chance.random() < rate
            failed, passed = failed + hit, passed + (not hit)
            low, high = interval_of((failed, passed))
            if not low <= rate <= high:
                missed += 1
                break
    assert missed / 1_000 <= 0.05


def test_twenty_per_cent_is_known_to_a_quarter_after_150_trials() -> None:
    assert width((30, 120)) <= 0.27
    chance, widths = random.Random("width"), []
    for _ in range(1_000):
        failed = sum(chance.random() < 0.2 for _ in range(150))
        widths.append(width((failed, 150 - failed)))
    # Failures that happen to be frequent make the rate, and with it the interval, larger.
    assert sum(w <= 0.27 for w in widths) >= 995


@given(counts)
def test_rate_seen_is_inside(arm: Counts) -> None:
    low, high = interval(arm)
    assert 0.0 <= low <= high <= 1.0
    if sum(arm):
        assert low <= arm[0] / sum(arm) <= high


@given(counts)
def test_higher_level_is_wider(arm: Counts) -> None:
    low, high = interval(arm, 0.95)
    lower, higher = interval(arm, 0.99)
    assert lower <= low
    assert high <= higher


@given(counts)
def test_failures_and_passes_are_mirrored(arm: Counts) -> None:
    low, high = interval(arm)
    mirrored = interval((arm[1], arm[0]))
    assert mirrored == (pytest.approx(1 - high, abs=1e-9), pytest.approx(1 - low, abs=1e-9))


def test_nothing_tried_is_nothing_known() -> None:
    assert interval((0, 0)) == (0.0, 1.0)


def test_one_kind_alone_leaves_its_end_open() -> None:
    assert interval((9, 0))[1] == 1.0
    assert interval((0, 9))[0] == 0.0


@pytest.mark.parametrize(
    ("rate", "level", "runs"),
    [(0.2, 0.95, 14), (0.2, 0.99, 21), (1.0, 0.99, 1), (0.5, 0.5, 1), (0.5, 0.875, 3)],
)  # fmt: skip
def test_clean_runs_that_gone_needs(rate: float, level: float, runs: int) -> None:
    assert gone_runs(rate, level) == runs


@given(st.floats(0.001, 0.999), st.floats(0.5, 0.999))
def test_clean_runs_are_enough_and_no_fewer_would_be(rate: float, level: float) -> None:
    runs = gone_runs(rate, level)
    assert (1 - rate) ** runs <= (1 - level) * (1 + 1e-6)
    assert runs == 1 or (1 - rate) ** (runs - 1) > (1 - level) * (1 - 1e-6)


@pytest.mark.parametrize(("rate", "level"), [(0.0, 0.95), (-0.1, 0.95), (0.2, 1.0), (1.1, 0.9)])
def test_a_failure_that_may_never_show_has_no_such_number(rate: float, level: float) -> None:
    with pytest.raises(ValueError, match="no number of clean runs"):
        gone_runs(rate, level)

"""Strata, and what their difference points to."""

from __future__ import annotations

import pytest

from becausal.inquiry.search import Tally
from becausal.inquiry.strata import disagreement, stratum, total


def servers(*counts: tuple[int, int]) -> dict[str, Tally]:
    return {f"warm/{n}": Tally(failed=f, passed=p) for n, (f, p) in enumerate(counts)}


def test_servers_that_differ_point_to_the_hash_seed() -> None:
    found = disagreement(Tally(failed=2, passed=3), servers((20, 0), (11, 9), (0, 20)), error=0.01)
    assert found is not None
    assert (found.between, found.reason) == (("warm/2", "warm/0"), "hash-seed")
    assert found.detail == "warm/2 0/20 fail, warm/0 20/20 fail"
    assert found.e_value >= 100


@pytest.mark.parametrize(
    ("cold", "warm", "reason"),
    [
        ((40, 0), (0, 20), "import-order"),
        ((0, 40), (20, 0), "leftover-state"),
        ((0, 40), (10, 10), "leftover-state"),
        ((20, 20), (0, 20), "hash-seed"),
        ((10, 40), (18, 2), "unknown"),
        ((40, 0), (10, 10), "unknown"),
    ],
)
def test_counts_point_to_a_likely_reason(
    cold: tuple[int, int], warm: tuple[int, int], reason: str
) -> None:
    found = disagreement(Tally(failed=cold[0], passed=cold[1]), servers(warm, warm, warm), 0.01)
    assert found is not None
    assert (found.between, found.reason) == (("cold", "warm"), reason)


def test_chance_is_no_difference() -> None:
    assert disagreement(Tally(failed=3), servers((2, 1), (3, 0), (1, 2)), error=0.01) is None
    assert disagreement(Tally(), servers((9, 0), (9, 0), (9, 0)), error=0.01) is None


def test_other_endings_count_as_runs_that_did_not_show_the_failure() -> None:
    tally = Tally(failed=1, passed=3, otherwise=4, timed_out=5, could_not_run=6)
    found = stratum("warm", tally, level=0.95)
    assert (found.trials, found.failures, found.rate) == (13, 1, 1 / 13)
    assert (found.otherwise, found.timed_out, found.could_not_run) == (4, 5, 6)
    assert stratum("cold", Tally(otherwise=3), level=0.95).rate is None


def test_total_is_the_sum_of_all() -> None:
    assert total(servers((1, 2), (3, 4))) == Tally(failed=4, passed=6)
    assert total({}) == Tally()

"""E-values on failure rates: evidence that may be looked at after every trial.

An e-value is a bet against a null hypothesis whose expected pay is at most 1 while the null holds.
By Ville's inequality a null that holds is ever paid 1/α with probability at most α, however often
one looks, whenever one stops, and whichever arm one chooses to try next.

All bets here are mixtures: each arm's unknown rate is averaged over Jeffreys' prior, Beta(½, ½)
(Krichevsky and Trofimov 1981), so that they depend on counts only, not on the order of trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Counts = tuple[int, int]
"""Failures and passes of one arm."""


def log_one_sample(counts: Counts, rate: float) -> float:
    """Log e-value against "every trial fails with this rate, independently".

    Under the null it is the log of a ratio of likelihoods with the mixture above, hence a
    non-negative martingale starting at 1 (Robbins 1970); Ville's inequality applies.
    """
    return _log_mixture(counts) - _log_likelihood(counts, rate)


def log_same_rate(arms: Sequence[Counts]) -> float:
    """Log e-value against "all arms fail with one rate, whichever it is".

    Universal inference (Wasserman, Ramdas and Balakrishnan 2020): the product of the arms'
    mixtures over the largest likelihood one common rate can have. The denominator is at least the
    likelihood of the true rate, so the ratio never exceeds a martingale under any null; Ville's
    inequality applies, also when the next arm is chosen by looking at the trials so far.
    Within an arm trials have to be independent given its rate.
    """
    failures = sum(failed for failed, _ in arms)
    passes = sum(passed for _, passed in arms)
    if not failures or not passes:
        return min(0.0, sum(map(_log_mixture, arms)))
    pooled = failures / (failures + passes)
    return sum(map(_log_mixture, arms)) - _log_likelihood((failures, passes), pooled)


def same_rate(arms: Sequence[Counts]) -> float:
    """The e-value itself, held below what a record can carry."""
    return math.exp(min(log_same_rate(arms), 500.0))


def _log_mixture(counts: Counts) -> float:
    """Log probability of one sequence with these counts, its rate averaged over Beta(½, ½)."""
    failed, passed = counts
    both = math.lgamma(failed + 0.5) + math.lgamma(passed + 0.5)
    return both - math.lgamma(failed + passed + 1) - math.log(math.pi)


def _log_likelihood(counts: Counts, rate: float) -> float:
    failed, passed = counts
    likelihood = 0.0
    for count, chance in ((failed, rate), (passed, 1.0 - rate)):
        if count:
            likelihood += count * math.log(chance) if chance > 0 else -math.inf
    return likelihood

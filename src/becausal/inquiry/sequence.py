"""Confidence sequences of a failure rate: intervals that hold whenever one stops looking."""

from __future__ import annotations

import math

from becausal.inquiry.evalue import Counts, log_one_sample

_HALVINGS = 60


def interval(counts: Counts, level: float = 0.95) -> tuple[float, float]:
    """All rates that the trials so far do not speak against, from failures and passes.

    It holds every rate whose e-value is below 1 / (1 - level). The true rate's e-value reaches
    that with probability at most 1 - level in the whole course of trials, so the interval covers
    it at every look at once, whatever made one stop.
    """
    failed, passed = counts
    if not failed + passed:
        return 0.0, 1.0
    seen = failed / (failed + passed)
    bar = -math.log(1.0 - level)
    low = _edge(counts, bar, outside=0.0, inside=seen) if failed else 0.0
    high = _edge(counts, bar, outside=1.0, inside=seen) if passed else 1.0
    return low, high


def width(counts: Counts, level: float = 0.95) -> float:
    low, high = interval(counts, level)
    return high - low


def gone_runs(rate: float, level: float) -> int:
    """Clean runs in a row after which a failure of at least this rate would have shown itself.

    The rate must be above 0: no number of clean runs rules out a failure that may never show.
    """
    if not 0.0 < rate <= 1.0 or not 0.0 < level < 1.0:
        raise ValueError(f"no number of clean runs answers rate {rate} at level {level}")
    if rate == 1.0:
        return 1
    # A hair of tolerance: a product that is exact on paper is not so in binary.
    return max(1, math.ceil(math.log1p(-level) / math.log1p(-rate) - 1e-9))


def _edge(counts: Counts, bar: float, *, outside: float, inside: float) -> float:
    """Where the e-value crosses the bar: it falls from infinity to its least at the rate seen.

    Answers the side away from the rate seen, so that rounding never narrows the interval.
    """
    for _ in range(_HALVINGS):
        middle = (outside + inside) / 2
        if log_one_sample(counts, middle) >= bar:
            outside = middle
        else:
            inside = middle
    return outside

"""Trials: one run of a condition, with its outcome."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from becausal.domain.condition import Warmth
from becausal.domain.signature import Signature


class Outcome(StrEnum):
    """What a trial says about the failure asked about. Only FAILED counts as the failure."""

    PASSED = "passed"
    FAILED = "failed"
    FAILED_OTHERWISE = "failed-otherwise"
    TIMED_OUT = "timed-out"
    COULD_NOT_RUN = "could-not-run"


class TrialKey(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The place of a trial in its search: what makes resuming a replay."""

    search: str
    step: int
    condition: str
    repeat: int


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a condition: outcome, signature, cost, and where its artifacts are."""

    key: TrialKey
    warmth: Warmth
    outcome: Outcome
    signature: Signature | None = None
    """Signature of whatever failure it showed, the one asked about or another."""
    exit_code: int | None = None
    """None when it did not end by itself."""
    reason: str = ""
    """Why this outcome, in a few words: the measure, the exit code, the obstacle."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    max_rss: int = 0
    seed: int = 0
    hash_seed: int = 0
    """PYTHONHASHSEED of the process."""
    server: str = ""
    isolation: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    artifacts: tuple[tuple[str, str], ...] = ()
    """Name (`stdout`, `stderr`, `tests`, …) and digest, sorted."""

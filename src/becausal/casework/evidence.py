"""Evidence kept with trials: reading back what a run printed and reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from becausal.domain.recording import Raised, TestReport
from becausal.domain.trial import Outcome, Trial
from becausal.ports.store import Artifacts


class Details(msgspec.Struct, frozen=True, kw_only=True):
    """What a run reported besides its output."""

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    obstacle: Any = None
    tests: tuple[TestReport, ...] = ()
    raised: Raised | None = None


def details(artifacts: Artifacts, trial: Trial) -> Details:
    return msgspec.json.decode(artifact(artifacts, trial, "details") or b"{}", type=Details)


def artifact(artifacts: Artifacts, trial: Trial, name: str) -> bytes:
    """The bytes kept under this name; empty when the run left none."""
    digest = dict(trial.artifacts).get(name)
    return b"" if digest is None else artifacts.get(digest)


def first_failing(trials: Sequence[Trial]) -> Trial | None:
    """The run that shows the failure best: the first that failed, else that failed otherwise."""
    for outcome in (Outcome.FAILED, Outcome.FAILED_OTHERWISE, Outcome.TIMED_OUT):
        for trial in trials:
            if trial.outcome is outcome:
                return trial
    return None


def exact_error(artifacts: Artifacts, trial: Trial) -> str:
    """The error as it was printed, with its full trace."""
    for test in details(artifacts, trial).tests:
        if test.outcome in ("failed", "error") and test.text:
            return f"{test.id}\n{test.text}"
    printed = artifact(artifacts, trial, "stderr") or artifact(artifacts, trial, "stdout")
    return printed.decode("utf-8", errors="backslashreplace")

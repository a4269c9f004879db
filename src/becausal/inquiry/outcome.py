"""Judging a recording: what a run says about the failure asked about."""

from __future__ import annotations

import re

import msgspec

from becausal.domain.criterion import Criterion
from becausal.domain.recording import Recording
from becausal.domain.signature import Signature
from becausal.domain.trial import Outcome
from becausal.inquiry.measure import Measure, is_hang, measured, parse_fail_if, printed
from becausal.inquiry.signature import (
    failing_tests,
    has_traceback,
    signal_name,
    signature_of,
    signature_of_test,
)

# What a shell answers when the command is no program, or none that may be run.
_NOT_STARTED = {126: "not executable", 127: "command not found"}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says, which failure it showed, and why in a few words."""

    outcome: Outcome
    signature: Signature | None = None
    reason: str = ""


def judge(recording: Recording, criterion: Criterion, asked: Signature | None) -> Judged:
    """The outcome of a run. `asked` is the failure of the case, None while it has no name."""
    if recording.obstacle is not None:
        reason = f"{recording.obstacle.what} ({recording.obstacle.slug})"
        return Judged(outcome=Outcome.COULD_NOT_RUN, reason=reason)
    measure = parse_fail_if(criterion.fail_if)
    if recording.timed_out:
        return _stopped(recording, criterion, measure)
    if recording.exit_code is None and recording.signal is None:
        return Judged(outcome=Outcome.COULD_NOT_RUN, reason="it is not known how the run ended")
    if is_hang(criterion):
        return _by_rule(recording, criterion, failed=None, reason="ended by itself")
    if measure is not None:
        return _by_measure(recording, criterion, measure)
    if criterion.fail_when:
        found = re.search(criterion.fail_when, printed(recording)) is not None
        failed = Signature(kind="output", message=criterion.fail_when) if found else None
        reason = "the output matches" if found else "the output does not match"
        return _by_rule(recording, criterion, failed=failed, reason=reason)
    if criterion.fail_exit is not None:
        hit = recording.signal is None and recording.exit_code == criterion.fail_exit
        failed = Signature(kind=f"exit {criterion.fail_exit}") if hit else None
        return _by_rule(recording, criterion, failed=failed, reason=_ending(recording))
    return _by_itself(recording, criterion, asked)


def _stopped(recording: Recording, criterion: Criterion, measure: Measure | None) -> Judged:
    """Stopped at the time limit: the failure itself, where it is about hanging or slowness."""
    reason = f"stopped after {recording.seconds:.3g} s"
    if is_hang(criterion):
        return Judged(outcome=Outcome.FAILED, signature=Signature(kind="hang"), reason=reason)
    if measure is not None and measure.what == "seconds" and measure.fails(recording.seconds):
        return Judged(outcome=Outcome.FAILED, signature=_of_measure(measure), reason=reason)
    return Judged(outcome=Outcome.TIMED_OUT, reason=reason)


def _by_rule(
    recording: Recording, criterion: Criterion, *, failed: Signature | None, reason: str
) -> Judged:
    """A rule of the person says what the failure is; any other bad ending is another failure."""
    if failed is not None:
        return Judged(outcome=Outcome.FAILED, signature=failed, reason=reason)
    if _ended_well(recording):
        return Judged(outcome=Outcome.PASSED, reason=reason)
    return _never_started(recording) or Judged(
        outcome=Outcome.FAILED_OTHERWISE,
        signature=signature_of(recording, criterion),
        reason=_ending(recording),
    )


def _by_measure(recording: Recording, criterion: Criterion, measure: Measure) -> Judged:
    if not _ended_well(recording):
        return _by_rule(recording, criterion, failed=None, reason=_ending(recording))
    value = measured(measure, recording)
    if isinstance(value, str):
        return Judged(outcome=Outcome.COULD_NOT_RUN, reason=value)
    failed = _of_measure(measure) if measure.fails(value) else None
    reason = f"{measure.what} = {measure.shown(value)}"
    return _by_rule(recording, criterion, failed=failed, reason=reason)


def _of_measure(measure: Measure) -> Signature:
    return Signature(kind="measure", message=str(measure))


def _by_itself(recording: Recording, criterion: Criterion, asked: Signature | None) -> Judged:
    """The command's own word: its tests, the exception it ended with, its exit code."""
    failing = failing_tests(recording)
    if _ended_well(recording):
        if failing:
            # Its runner forgave them (a rerun passed, say); the command did not fail.
            return Judged(
                outcome=Outcome.PASSED, reason=f"exit 0 although {len(failing)} failed in between"
            )
        if recording.tests and all(test.outcome == "skipped" for test in recording.tests):
            return Judged(outcome=Outcome.COULD_NOT_RUN, reason="every test was skipped")
        return Judged(outcome=Outcome.PASSED, reason=_ending(recording))
    if recording.signal is None and failing:
        return _by_tests(recording, asked)
    if not recording.tests and (never := _never_started(recording)) is not None:
        return never
    shown = signature_of(recording, criterion)
    same = asked is None or shown == asked
    outcome = Outcome.FAILED if same else Outcome.FAILED_OTHERWISE
    return Judged(outcome=outcome, signature=shown, reason=_ending(recording))


def _by_tests(recording: Recording, asked: Signature | None) -> Judged:
    """Any failing test may show the failure asked about; others may fail beside it."""
    failing = failing_tests(recording)
    total = sum(test.outcome != "skipped" for test in recording.tests)
    for test in failing:
        shown = signature_of_test(test)
        if asked is None or shown == asked:
            reason = f"{test.id}: {test.outcome}" if total == 1 else f"{len(failing)}/{total} fail"
            return Judged(outcome=Outcome.FAILED, signature=shown, reason=reason)
    return Judged(
        outcome=Outcome.FAILED_OTHERWISE,
        signature=signature_of_test(failing[0]),
        reason=f"{len(failing)}/{total} fail, with another failure",
    )


def _ended_well(recording: Recording) -> bool:
    return recording.signal is None and recording.exit_code == 0


def _never_started(recording: Recording) -> Judged | None:
    """A shell that found no command says nothing about the failure."""
    if recording.signal is not None or recording.exit_code not in _NOT_STARTED:
        return None
    if has_traceback(recording):
        return None
    reason = f"exit {recording.exit_code}: {_NOT_STARTED[recording.exit_code]}"
    return Judged(outcome=Outcome.COULD_NOT_RUN, reason=reason)


def _ending(recording: Recording) -> str:
    if recording.signal is not None:
        return f"signal {signal_name(recording.signal)}"
    return f"exit {recording.exit_code}"

"""Outcomes: what a run says about the failure asked about."""

from __future__ import annotations

import pytest

from becausal.domain.criterion import Criterion
from becausal.domain.recording import Obstacle, Output, Raised, Recording
from becausal.domain.recording import TestReport as Report
from becausal.domain.signature import Signature
from becausal.domain.trial import Outcome
from becausal.inquiry.outcome import Judged, judge

PLAIN = Criterion()
VALUE_ERROR = Raised(kind="ValueError", message="x")
KEY_ERROR = Raised(kind="KeyError", message="'x'")
ASKED = Signature(kind="ValueError", message="x")


def failing(*raised: Raised, exit_code: int = 1) -> Recording:
    tests = tuple(Report(id=f"t{n}", outcome="failed", raised=r) for n, r in enumerate(raised))
    return Recording(exit_code=exit_code, tests=(*tests, Report(id="z", outcome="passed")))


def outcome(
    recording: Recording, criterion: Criterion = PLAIN, asked: Signature | None = None
) -> Outcome:
    return judge(recording, criterion, asked).outcome


def printing(text: str, exit_code: int = 0) -> Recording:
    return Recording(exit_code=exit_code, stdout=Output(head=text.encode()))


def test_first_failure_is_the_failure_while_none_is_named() -> None:
    judged = judge(failing(VALUE_ERROR), PLAIN, None)
    assert judged == Judged(outcome=Outcome.FAILED, signature=ASKED, reason="1/2 fail")


def test_another_failure_is_failed_otherwise_with_its_own_signature() -> None:
    judged = judge(failing(KEY_ERROR), PLAIN, ASKED)
    assert judged.outcome is Outcome.FAILED_OTHERWISE
    assert judged.signature == Signature(kind="KeyError", message="'x'")


def test_failure_asked_about_counts_wherever_it_stands_in_the_run() -> None:
    judged = judge(failing(KEY_ERROR, VALUE_ERROR), PLAIN, ASKED)
    assert (judged.outcome, judged.signature) == (Outcome.FAILED, ASKED)


def test_passing_tests_pass() -> None:
    run = Recording(exit_code=0, tests=(Report(id="a", outcome="passed"),))
    assert outcome(run) is Outcome.PASSED


@pytest.mark.parametrize("others", [(), (Report(id="b", outcome="passed"),)])
def test_skipped_tests_alone_are_no_pass(others: tuple[Report, ...]) -> None:
    run = Recording(exit_code=0, tests=(Report(id="a", outcome="skipped"), *others))
    assert outcome(run) is (Outcome.PASSED if others else Outcome.COULD_NOT_RUN)


def test_failure_that_the_runner_forgave_is_no_failure() -> None:
    judged = judge(failing(VALUE_ERROR, exit_code=0), PLAIN, ASKED)
    assert judged.outcome is Outcome.PASSED
    assert "although" in judged.reason


def test_run_that_dies_though_its_tests_pass_has_failed() -> None:
    run = Recording(signal=11, tests=(Report(id="a", outcome="passed"),))
    assert judge(run, PLAIN, None).signature == Signature(kind="signal SEGV")
    assert outcome(run, asked=ASKED) is Outcome.FAILED_OTHERWISE


def test_exit_code_alone_is_a_failure() -> None:
    assert judge(Recording(exit_code=3), PLAIN, None).signature == Signature(kind="exit 3")
    assert (
        outcome(Recording(exit_code=3), asked=Signature(kind="exit 4")) is Outcome.FAILED_OTHERWISE
    )


@pytest.mark.parametrize("code", [126, 127])
def test_command_that_no_shell_found_could_not_run(code: int) -> None:
    assert outcome(Recording(exit_code=code)) is Outcome.COULD_NOT_RUN
    assert outcome(Recording(exit_code=code), Criterion(fail_when="x")) is Outcome.COULD_NOT_RUN
    assert outcome(Recording(exit_code=code), Criterion(fail_exit=code)) is Outcome.FAILED
    raised = Recording(exit_code=code, raised=VALUE_ERROR)
    assert outcome(raised, asked=ASKED) is Outcome.FAILED


def test_obstacle_is_never_a_failure() -> None:
    run = Recording(obstacle=Obstacle(slug="x", what="no room"), exit_code=1, timed_out=True)
    for criterion in (PLAIN, Criterion(fail_if="hang"), Criterion(fail_exit=1)):
        assert judge(run, criterion, None) == Judged(
            outcome=Outcome.COULD_NOT_RUN, reason="no room (x)"
        )


def test_unknown_ending_could_not_run() -> None:
    assert outcome(Recording()) is Outcome.COULD_NOT_RUN


@pytest.mark.parametrize(
    ("criterion", "expected"),
    [
        (PLAIN, Outcome.TIMED_OUT),
        (Criterion(fail_if="hang"), Outcome.FAILED),
        (Criterion(fail_if="seconds > 2"), Outcome.FAILED),
        (Criterion(fail_if="seconds > 20"), Outcome.TIMED_OUT),
        (Criterion(fail_if="seconds < 2"), Outcome.TIMED_OUT),
        (Criterion(fail_if="max_rss > 1"), Outcome.TIMED_OUT),
        (Criterion(fail_when="x"), Outcome.TIMED_OUT),
    ],
)
def test_time_limit_is_a_failure_only_where_that_is_the_question(
    criterion: Criterion, expected: Outcome
) -> None:
    assert outcome(Recording(timed_out=True, seconds=10.0), criterion) is expected


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (Recording(exit_code=0), Outcome.PASSED),
        (Recording(exit_code=1), Outcome.FAILED_OTHERWISE),
        (Recording(signal=6), Outcome.FAILED_OTHERWISE),
    ],
)
@pytest.mark.parametrize(
    "criterion",
    [
        Criterion(fail_if="hang"),
        Criterion(fail_if="seconds > 2"),
        Criterion(fail_when="absent"),
        Criterion(fail_exit=9),
    ],
)
def test_other_bad_endings_are_failed_otherwise(
    run: Recording, expected: Outcome, criterion: Criterion
) -> None:
    assert outcome(run, criterion) is expected


def test_output_asked_about_is_the_failure_whatever_the_exit_code() -> None:
    for code in (0, 5):
        judged = judge(printing("all WRONG here", code), Criterion(fail_when="WRO?NG"), None)
        assert judged.outcome is Outcome.FAILED
        assert judged.signature == Signature(kind="output", message="WRO?NG")


def test_exit_code_asked_about_is_the_failure() -> None:
    judged = judge(Recording(exit_code=0), Criterion(fail_exit=0), None)
    assert judged.signature == Signature(kind="exit 0")
    assert outcome(Recording(exit_code=1), Criterion(fail_exit=3)) is Outcome.FAILED_OTHERWISE


@pytest.mark.parametrize(
    ("value", "expected"),
    [("80", Outcome.PASSED), ("81", Outcome.FAILED), ("fast", Outcome.COULD_NOT_RUN)],
)
def test_measure_over_its_limit_is_the_failure(value: str, expected: Outcome) -> None:
    criterion = Criterion(fail_if=r'match("p95=(\w+)") > 80')
    judged = judge(printing(f"p95={value}"), criterion, None)
    assert judged.outcome is expected
    assert (judged.signature is not None) is (expected is Outcome.FAILED)


def test_slow_and_large_runs_fail_by_their_measure() -> None:
    run = Recording(exit_code=0, seconds=3.0, max_rss=600 * 2**20)
    judged = judge(run, Criterion(fail_if="max_rss > 500M"), None)
    assert judged.signature == Signature(kind="measure", message="max_rss > 500M")
    assert judged.reason == "max_rss = 600M"
    assert outcome(run, Criterion(fail_if="seconds > 2")) is Outcome.FAILED
    assert outcome(run, Criterion(fail_if="seconds > 4")) is Outcome.PASSED

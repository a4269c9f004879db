"""`--fail-if`: reading a measure, and taking it."""

from __future__ import annotations

import pytest

from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.domain.recording import Output, Recording
from becausal.inquiry.measure import Measure, check_criterion, measured, needs_cold, parse_fail_if


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seconds > 2", Measure(what="seconds", sign=">", limit=2.0)),
        ("seconds>=.5", Measure(what="seconds", sign=">=", limit=0.5)),
        (" max_rss > 500M ", Measure(what="max_rss", sign=">", limit=500 * 1024**2)),
        ("max_rss <= 1.5G", Measure(what="max_rss", sign="<=", limit=1.5 * 1024**3)),
        ("max_rss < 7", Measure(what="max_rss", sign="<", limit=7.0)),
        (
            r'match(r"p95=(\d+)") > 80',
            Measure(what="match", pattern=r"p95=(\d+)", sign=">", limit=80.0),
        ),
        (
            r"match('a\"b (\d+)')<-1e3",
            Measure(what="match", pattern=r"a\"b (\d+)", sign="<", limit=-1000.0),
        ),
    ],
)
def test_measures_are_read(text: str, expected: Measure) -> None:
    assert parse_fail_if(text) == expected


@pytest.mark.parametrize("text", ["", "hang", " hang "])
def test_hang_is_no_measure(text: str) -> None:
    assert parse_fail_if(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "seconds",
        "seconds > 2M",
        "seconds = 2",
        "rss > 3",
        "max_rss > 5T",
        'match("(") > 1',
        'match("(a)(b)") > 1',
        "match(x) > 1",
        "seconds > 1e999",
        "seconds > 2 or hang",
        "seconds > nan",
    ],
)
def test_unreadable_measures_show_the_forms(text: str) -> None:
    with pytest.raises(WrongUse) as caught:
        parse_fail_if(text)
    assert caught.value.slug == "fail-if-unreadable"
    assert caught.value.value == text
    assert "seconds > 2" in caught.value.hint


@pytest.mark.parametrize(
    ("criterion", "slug"),
    [
        (Criterion(fail_when="("), "fail-when-unreadable"),
        (Criterion(fail_if="quickly"), "fail-if-unreadable"),
        (Criterion(fail_when="x", fail_exit=0), "criterion-ambiguous"),
        (Criterion(fail_if="hang", fail_when="x"), "criterion-ambiguous"),
    ],
)
def test_criteria_that_cannot_judge_are_refused(criterion: Criterion, slug: str) -> None:
    with pytest.raises(WrongUse) as caught:
        check_criterion(criterion)
    assert caught.value.slug == slug


@pytest.mark.parametrize(
    "criterion",
    [Criterion(), Criterion(fail_if="hang"), Criterion(fail_when="a|b"), Criterion(fail_exit=0)],
)
def test_sound_criteria_are_accepted(criterion: Criterion) -> None:
    check_criterion(criterion)


@pytest.mark.parametrize(
    ("text", "cold"),
    [
        ("seconds > 1", True),
        ("max_rss > 1G", True),
        ('match("x") > 1', False),
        ("hang", False),
        ("", False),
    ],
)
def test_measures_of_a_whole_process_need_cold_runs(text: str, cold: bool) -> None:
    assert needs_cold(Criterion(fail_if=text)) is cold


def taken(text: str, recording: Recording) -> float | str:
    measure = parse_fail_if(text)
    assert measure is not None
    return measured(measure, recording)


def test_last_number_printed_is_the_value() -> None:
    recording = Recording(stdout=Output(head=b"p95=7\np95=91\n"), stderr=Output(head=b"\xffp95=12"))
    assert taken(r'match("p95=(\d+)") > 1', recording) == 12.0
    assert taken(r'match("\d+\d") > 1', recording) == 12.0


def test_resources_are_the_value() -> None:
    assert taken("seconds > 1", Recording(seconds=3.5)) == 3.5
    assert taken("max_rss > 1", Recording(max_rss=10)) == 10.0


@pytest.mark.parametrize("output", [b"", b"p95=fast"])
def test_missing_number_is_a_reason(output: bytes) -> None:
    value = taken(r'match("p95=(\w+)") > 1', Recording(stdout=Output(head=output)))
    assert isinstance(value, str)
    assert value


@pytest.mark.parametrize("text", ["seconds > 2", "max_rss >= 500M", "max_rss < 500000001"])
def test_measures_are_shown_as_they_are_written(text: str) -> None:
    assert str(parse_fail_if(text)) == text

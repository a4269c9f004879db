"""Measures: slowness and growth as failures, read from `--fail-if` and taken from recordings."""

from __future__ import annotations

import math
import operator
import re
from typing import Literal

import msgspec

from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.domain.recording import Recording

HANG = "hang"
_FORMS = (
    "write hang, 'seconds > 2', 'max_rss > 500M' (K, M, G), "
    "or a number the command prints: 'match(r\"p95=(\\d+)\") > 80'; <, <=, >= work as well"
)
_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_NUMBER = r"(?P<limit>[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
_RESOURCE = re.compile(
    rf"(?P<what>seconds|max_rss)\s*(?P<sign>[<>]=?)\s*{_NUMBER}\s*(?P<unit>[KMG]?)"
)
_MATCH = re.compile(
    rf"match\(\s*r?(?P<quote>['\"])(?P<pattern>.+)(?P=quote)\s*\)\s*(?P<sign>[<>]=?)\s*{_NUMBER}",
    re.DOTALL,
)


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A number taken from every run, and the limit that makes it a failure."""

    what: Literal["seconds", "max_rss", "match"]
    pattern: str | None = None
    """For `match`: what to look for in the output; its group, or all of it, is the number."""
    sign: Literal["<", "<=", ">", ">="]
    limit: float
    """Seconds, bytes, or in the unit the command prints."""

    def fails(self, value: float) -> bool:
        return bool(_SIGNS[self.sign](value, self.limit))

    def __str__(self) -> str:
        what = f"match({self.pattern})" if self.what == "match" else self.what
        return f"{what} {self.sign} {self.shown(self.limit)}"

    def shown(self, value: float) -> str:
        """A value as the person would write it: bytes in the largest unit that divides them."""
        if self.what == "max_rss" and value.is_integer():
            units = reversed(_UNITS.items())
            unit, size = next((u, n) for u, n in units if n == 1 or (value and value % n == 0))
            return f"{int(value) // size}{unit}"
        return f"{value:.12g}"


def parse_fail_if(text: str) -> Measure | None:
    """The measure that `--fail-if` names; None for `hang` and for nothing at all."""
    text = text.strip()
    if text in ("", HANG):
        return None
    found = _RESOURCE.fullmatch(text) or _MATCH.fullmatch(text)
    if found is None:
        raise _unreadable(text, "--fail-if does not say a measure and a limit")
    parts = found.groupdict()
    pattern, unit = parts.get("pattern"), parts.get("unit") or ""
    if unit and parts["what"] == "seconds":
        raise _unreadable(text, "seconds have no unit")
    limit = float(parts["limit"]) * _UNITS[unit]
    if not math.isfinite(limit):
        raise _unreadable(text, "the limit of --fail-if is too large")
    if pattern is not None:
        _check_pattern(text, pattern)
    what = parts.get("what") or "match"
    fields = {"what": what, "pattern": pattern, "sign": parts["sign"], "limit": limit}
    return msgspec.convert(fields, Measure)


def is_hang(criterion: Criterion) -> bool:
    """Whether not ending is the failure asked about."""
    return criterion.fail_if.strip() == HANG


def check_criterion(criterion: Criterion) -> None:
    """Refuse a criterion that no run could be judged by, before anything is run."""
    if bool(criterion.fail_if) + bool(criterion.fail_when) + (criterion.fail_exit is not None) > 1:
        raise WrongUse(
            "criterion-ambiguous",
            "more than one rule says what counts as the failure",
            hint="keep one of --fail-if, --fail-when and --fail-exit",
        )
    parse_fail_if(criterion.fail_if)
    try:
        re.compile(criterion.fail_when)
    except re.error as error:
        raise WrongUse(
            "fail-when-unreadable",
            f"--fail-when is no regular expression: {error}",
            value=criterion.fail_when,
            hint="quote special characters with a backslash, as in Python's re",
        ) from error


def needs_cold(criterion: Criterion) -> bool:
    """A warm server has started up before the trial begins, so it would measure another thing."""
    measure = parse_fail_if(criterion.fail_if)
    return measure is not None and measure.what in ("seconds", "max_rss")


def measured(measure: Measure, recording: Recording) -> float | str:
    """The value in this run, or why there is none."""
    if measure.pattern is None:
        return recording.seconds if measure.what == "seconds" else float(recording.max_rss)
    found = re.findall(measure.pattern, printed(recording))
    if not found:
        return f"nothing in the output matches {measure.pattern}"
    try:
        value = float(found[-1])
    except ValueError:
        value = math.nan
    return value if math.isfinite(value) else f"the last match is no number: {found[-1][:40]!r}"


def printed(recording: Recording) -> str:
    """Everything that was kept of the output, as text: standard output first."""
    streams = (recording.stdout.joined(), recording.stderr.joined())
    return "\n".join(s.decode("utf-8", errors="replace") for s in streams)


def _check_pattern(text: str, pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise _unreadable(text, f"match(…) holds no regular expression: {error}") from error
    if groups > 1:
        raise _unreadable(text, "match(…) may have one group, the number")


def _unreadable(text: str, what: str) -> WrongUse:
    return WrongUse("fail-if-unreadable", what, value=text, hint=_FORMS)

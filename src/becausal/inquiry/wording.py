"""Reading a person's words for what fails and how much: refused when they make no sense."""

from __future__ import annotations

import re

from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.inquiry.measure import parse_fail_if

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def check_criterion(criterion: Criterion) -> None:
    """Raise when the words that say what fails cannot be read, or say two things."""
    said = {
        "--fail-if": bool(criterion.fail_if),
        "--fail-when": bool(criterion.fail_when),
        "--fail-exit": criterion.fail_exit is not None,
    }
    given = [name for name, is_said in said.items() if is_said]
    if len(given) > 1:
        raise WrongUse(
            "two-criteria",
            "a case is about one failure, and this names several",
            value=" ".join(given),
            hint="keep the one that is the failure; open another case for the other",
        )
    parse_fail_if(criterion.fail_if)
    try:
        re.compile(criterion.fail_when)
    except re.error as error:
        raise WrongUse(
            "fail-when-unreadable",
            f"--fail-when is no regular expression: {error}",
            value=criterion.fail_when,
            hint="escape signs that are meant literally, such as \\( and \\[",
        ) from error


def parse_size(text: str) -> int:
    """`500M` as bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongUse(
            "size-unreadable",
            "this is no amount of memory",
            value=text,
            hint="write a number with K, M or G after it, such as 500M",
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])

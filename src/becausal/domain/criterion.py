"""What counts as the failure of a case."""

from __future__ import annotations

import msgspec


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """The question a trial answers; all empty: the command fails by its exit code or its tests."""

    fail_if: str = ""
    """`hang`, or a measure against a limit: `seconds > 2`, `max_rss > 500M`,
    `match(r"p95=(\\d+)") > 80`."""
    fail_when: str = ""
    """A regular expression found in the output."""
    fail_exit: int | None = None
    """This exit code and no other."""

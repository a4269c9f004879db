"""Why pytest ran no test, in its own words."""

from __future__ import annotations

import re

from becausal.domain.recording import Obstacle, Recording
from becausal.probes.told import Side

_USAGE_ERROR, _NO_TESTS = 4, 5
_ABSENT = re.compile(r"(^|\n|: )((file or directory )?not found: |found no collectors for )")


def nothing_ran(recording: Recording, side: Side) -> Obstacle | None:
    """pytest ran no test at all: wrong words, or nothing to run. That is no failure of the code.

    Without a record of its plugin it was not pytest that ended so.
    """
    if side.tests:
        return None
    if recording.exit_code == _USAGE_ERROR and side.run:
        # Wrong options end pytest before it would tell its plugins why.
        printed = recording.stderr.joined().decode("utf-8", "replace").strip()[-2000:]
        usage = next((told.usage for told in side.run if told.usage is not None), printed)
        if _ABSENT.search(usage):
            hint = "does the test exist in this revision?"
            return Obstacle(slug="test-not-found", what=usage, hint=hint)
        return Obstacle(slug="pytest-usage", what=usage, hint="run the command by hand")
    if recording.exit_code == _NO_TESTS and any(told.collected is not None for told in side.run):
        hint = "check the path and the options -k and -m"
        return Obstacle(slug="no-tests", what="pytest collected no test", hint=hint)
    return None

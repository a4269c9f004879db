"""What pytest tells besides its tests: which lines they ran, and why there were none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from becausal.domain.recording import Obstacle, Recording
from becausal.lab.stage import Stage

_USAGE_ERROR, _NO_TESTS = 4, 5
_ABSENT = re.compile(r"(^|\n|: )((file or directory )?not found: |found no collectors for )")


def nothing_ran(recording: Recording, told: Sequence[Mapping[str, Any]]) -> Obstacle | None:
    """pytest ran no test at all: wrong words, or nothing to run. That is no failure of the code.

    `told` are the records of its plugin. Without one of them it was not pytest that ended so.
    """
    if any("id" in record for record in told):
        return None
    if recording.exit_code == _USAGE_ERROR and told:
        # Wrong options end pytest before it would tell its plugins why.
        printed = recording.stderr.joined().decode("utf-8", "replace").strip()[-2000:]
        usage = next((str(record["usage"]) for record in told if "usage" in record), printed)
        if _ABSENT.search(usage):
            hint = "does the test exist in this revision?"
            return Obstacle(slug="test-not-found", what=usage, hint=hint)
        return Obstacle(slug="pytest-usage", what=usage, hint="run the command by hand")
    if recording.exit_code == _NO_TESTS and any("collected" in record for record in told):
        hint = "check the path and the options -k and -m"
        return Obstacle(slug="no-tests", what="pytest collected no test", hint=hint)
    return None


def lines_from(told: Sequence[Mapping[str, Any]], stage: Stage) -> dict[str, dict[str, list[int]]]:
    """Test id -> file below the top -> lines."""
    found: dict[str, dict[str, list[int]]] = {}
    for record in told:
        for test, files in record.get("lines", {}).items():
            own = {stage.relative(name): lines for name, lines in files.items()}
            found[test] = {name: lines for name, lines in own.items() if name is not None}
    return found

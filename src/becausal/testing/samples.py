"""Plain records to write into stores."""

from __future__ import annotations

from becausal.domain.condition import Command
from becausal.domain.criterion import Criterion
from becausal.domain.journal import CaseOpened
from becausal.domain.trial import Outcome, Trial, TrialKey

OPENED = CaseOpened(
    command=Command(argv=("pytest", "tests/test_a.py")),
    criterion=Criterion(),
    project="sample",
    tool_version="1",
)


def trial(search: str = "s", step: int = 0, condition: str = "c", repeat: int = 0) -> Trial:
    """A trial at that place."""
    key = TrialKey(search, step, condition, repeat)
    return Trial(key=key, warmth="cold", outcome=Outcome.PASSED)

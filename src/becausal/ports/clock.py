"""Time, as the casework may know it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for records that people read."""

    def elapsed(self) -> float:
        """Monotonic seconds, for budgets."""

"""The clock of this machine."""

from __future__ import annotations

import time

from becausal.ports.clock import Clock


class SystemClock(Clock):
    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.monotonic()

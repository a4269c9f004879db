"""The roster: which worker takes which order, so that few servers have to be started."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from becausal.domain.recording import Recording
from becausal.ports.lab import Order

Seat = tuple[str, int]
"""A warm server: the condition it serves, and its hash seed."""


class Roster:
    """Hands out orders: to each worker those that it has a server for, then whatever is left.

    A worker that has run out of its own joins in on another's seat once waiting has cost as much
    as starting one more server: so it never loses more than twice what was best.
    """

    def __init__(self, workers: int) -> None:
        self._lock = threading.Lock()
        self._seats: list[set[Seat]] = [set() for _ in range(workers)]
        self._cold: list[Order] = []
        self._warm: dict[Seat, list[Order]] = {}
        self._began: dict[int, float] = {}
        self._start_seconds = 1.0
        self._trial_seconds = 0.0
        self._waited = 0.0
        self.stopped = False

    def begin(self, orders: Sequence[Order]) -> None:
        """New orders; whoever has a server keeps its seat."""
        with self._lock:
            self.stopped = False
            self._cold = [o for o in reversed(orders) if o.condition.warmth == "cold"]
            self._warm = {}
            for order in reversed(orders):
                if order.condition.warmth == "warm":
                    self._warm.setdefault(seat_of(order), []).append(order)

    def seat(self, worker: int, order: Order) -> None:
        """Such orders are this worker's."""
        with self._lock:
            self._seats[worker].add(seat_of(order))

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            self._cold, self._warm = [], {}

    def take(self, worker: int) -> Order | None:
        """The next order for this worker; None when there is none that it should run."""
        with self._lock:
            self._began[worker] = time.monotonic()
            own = next((s for s in self._seats[worker] if self._warm.get(s)), None)
            if own is not None:
                return self._warm[own].pop()
            if self._cold:
                return self._cold.pop()
            seat = self._free() or self._worth_joining()
            if seat is None:
                return None
            self._seats[worker].add(seat)
            return self._warm[seat].pop()

    def ran(self, worker: int, order: Order, recording: Recording) -> None:
        """Learn from a trial what starting a server and running a trial cost."""
        with self._lock:
            took = time.monotonic() - self._began[worker]
            if order.condition.warmth == "warm":
                self._start_seconds = max(self._start_seconds, took - recording.seconds)
                seen = self._trial_seconds or recording.seconds
                self._trial_seconds = 0.9 * seen + 0.1 * recording.seconds

    def _free(self) -> Seat | None:
        """A seat with orders that nobody has."""
        taken = set().union(*self._seats)
        return next((s for s, orders in self._warm.items() if orders and s not in taken), None)

    def _worth_joining(self) -> Seat | None:
        seat = max(self._warm, key=lambda s: len(self._warm[s]), default=None)
        if seat is None or not self._warm[seat]:
            return None
        self._waited += len(self._warm[seat]) * self._trial_seconds / 2
        if self._waited <= self._start_seconds:
            return None
        self._waited = 0.0
        return seat


def seat_of(order: Order) -> Seat:
    return order.condition.id, order.hash_seed

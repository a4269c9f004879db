"""Workers share orders: each order once, servers few, nothing left running."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becausal.domain.condition import Command, Condition, Source
from becausal.domain.recording import Recording
from becausal.lab.crew import Crew
from becausal.lab.roster import Roster, seat_of
from becausal.ports.lab import Order


def order(ticket: int, *, hash_seed: int | None = None) -> Order:
    condition = Condition(
        source=Source(revision="0" * 40),
        command=Command(argv=("pytest",)),
        warmth="cold" if hash_seed is None else "warm",
    )
    return Order(ticket=ticket, condition=condition, seed=ticket, hash_seed=hash_seed or 0)


class Helper:
    """A worker that remembers; it may wait to be cancelled, or die."""

    def __init__(self, *, waits: bool = False, dies: bool = False) -> None:
        self.ran: list[Order] = []
        self.cancelled = threading.Event()
        self.started = threading.Event()
        self.closed = False
        self._waits = waits
        self._dies = dies

    def run(self, order: Order) -> Recording:
        self.started.set()
        if self._dies:
            raise RuntimeError("a worker's own mistake")
        if self._waits:
            assert self.cancelled.wait(30)
        self.ran.append(order)
        return Recording(exit_code=0, seconds=0.01)

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.closed = True


ORDERS = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=40)


@settings(max_examples=50, deadline=None)
@given(kinds=ORDERS, workers=st.integers(1, 4), again=ORDERS)
def test_every_order_is_run_exactly_once(
    kinds: list[int | None], workers: int, again: list[int | None]
) -> None:
    crew = Crew([Helper() for _ in range(workers)])
    for wanted in (kinds, again):
        orders = [order(n, hash_seed=kind) for n, kind in enumerate(wanted)]
        answered = [o.ticket for o, _ in crew.run(orders)]
        assert sorted(answered) == list(range(len(orders)))


def test_a_short_series_starts_one_server_for_each_seat() -> None:
    helpers = [Helper(), Helper()]
    crew = Crew(helpers)
    for _ in range(5):
        list(crew.run([order(n, hash_seed=1 + n % 3) for n in range(30)]))
    seats = Counter(seat for h in helpers for seat in {seat_of(o) for o in h.ran})
    assert len(seats) == 3
    assert set(seats.values()) == {1}


def test_a_long_series_is_worth_a_second_server() -> None:
    roster = Roster(2)
    many = [order(n, hash_seed=1) for n in range(1000)]
    roster.begin(many)
    first = roster.take(0)
    assert first is not None
    assert roster.take(1) is None
    roster.ran(0, first, Recording(seconds=0.5))
    assert roster.take(1) is not None


def test_closing_early_ends_what_runs_and_hands_out_no_more() -> None:
    class Patient(Helper):
        def run(self, order: Order) -> Recording:
            assert helpers[1].started.wait(30)
            assert not self.ran or self.cancelled.wait(30)
            return super().run(order)

    helpers = [Patient(), Helper(waits=True)]
    crew = Crew(helpers)
    running = crew.run([order(n) for n in range(1000)])
    next(running)
    running.close()
    assert helpers[1].cancelled.is_set()
    assert sum(len(h.ran) for h in helpers) <= 3
    assert not [t for t in threading.enumerate() if t.name.startswith("becausal-worker")]


def test_a_worker_that_dies_is_heard_of() -> None:
    crew = Crew([Helper(dies=True)])
    with pytest.raises(RuntimeError, match="own mistake"):
        list(crew.run([order(n) for n in range(50)]))


def test_all_workers_are_closed_although_one_cannot_be() -> None:
    class Stuck(Helper):
        def close(self) -> None:
            super().close()
            raise OSError("the folder is gone")

    helpers = [Stuck(), Helper()]
    with pytest.raises(OSError, match="gone"):
        Crew(helpers).close()
    assert all(h.closed for h in helpers)

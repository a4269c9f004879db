"""The crew: workers that share the orders of a step, one trial at a time each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Sequence
from typing import Protocol

from becausal.domain.recording import Recording
from becausal.lab.roster import Roster
from becausal.ports.lab import Order

Answer = tuple[Order, Recording] | BaseException | None
"""An answered order; what a worker died of; or None: a worker has nothing left to do."""


class Worker(Protocol):
    """Whoever runs trials in a place of its own."""

    def run(self, order: Order) -> Recording:
        """Run one order to its end."""

    def cancel(self) -> None:
        """End the trial that runs now, from any thread."""

    def close(self) -> None:
        """End every process and give the place back."""


class Crew:
    """Runs orders on several workers at once, each in a thread that lives as long as the step."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = tuple(workers)
        self._roster = Roster(len(workers))
        self._closed = False

    @property
    def width(self) -> int:
        return len(self._workers)

    def run(self, orders: Sequence[Order]) -> Generator[tuple[Order, Recording], None, None]:
        """Yield answers as they come. Left early, it cancels what runs and waits for its end."""
        if self._closed:
            raise ValueError("the laboratory is closed")
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._roster.begin(orders)
        threads = [
            threading.Thread(
                target=self._work, args=(number, answers), name=f"becausal-worker-{number}"
            )
            for number in range(len(self._workers))
        ]
        for thread in threads:
            thread.start()
        working = len(threads)
        try:
            while working:
                answer = answers.get()
                if answer is None:
                    working -= 1
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    yield answer
        finally:
            self._roster.stop()
            while any(thread.is_alive() for thread in threads):
                for worker in self._workers:
                    worker.cancel()
                for thread in threads:
                    thread.join(0.1)

    def seat(self, worker: int, order: Order) -> None:
        """This worker has a warm server for such orders already."""
        self._roster.seat(worker, order)

    def close(self) -> None:
        """Close every worker, also when one of them cannot be."""
        self._closed = True
        failures = []
        for worker in self._workers:
            try:
                worker.close()
            except Exception as failure:  # noqa: BLE001  # raised below, after the others
                failures.append(failure)
        if failures:
            raise failures[0]

    def _work(self, number: int, answers: queue.SimpleQueue[Answer]) -> None:
        try:
            while (order := self._roster.take(number)) is not None:
                recording = self._workers[number].run(order)
                self._roster.ran(number, order, recording)
                if not self._roster.stopped:
                    answers.put((order, recording))
        except BaseException as death:  # noqa: BLE001  # raised again where it is awaited
            answers.put(death)
        finally:
            answers.put(None)

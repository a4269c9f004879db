"""The laboratory: runs conditions and says what it saw. It never judges."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

import msgspec

from becausal.domain.condition import Condition
from becausal.domain.observation import Surroundings
from becausal.domain.recording import Recording


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One run asked of the lab. `seed` is the trial's randomness, `ticket` is given back."""

    ticket: int
    condition: Condition
    seed: int
    hash_seed: int = 0
    """PYTHONHASHSEED: of the fresh process when cold, of its warm server when warm."""


class Warming(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a command can run warm, and why not."""

    possible: bool
    reason: str = ""
    tests: int = 0
    """Tests that the warm server collected."""


class Lab(Protocol):
    """A place that runs conditions: local, simulated, or a cluster."""

    @property
    def width(self) -> int:
        """How many trials run at once."""

    def warming(self, condition: Condition) -> Warming:
        """Try to prepare warm trials of this condition; the answer says why not."""

    def run(self, orders: Sequence[Order]) -> Generator[tuple[Order, Recording], None, None]:
        """Run all orders, yielding each with its recording as it ends, in any order.

        Closing the generator early stops what still runs; nothing survives it.
        """

    def surroundings(self, condition: Condition) -> Surroundings:
        """The environment that trials of this condition get, secrets masked."""

    def close(self) -> None:
        """End every process and give back every workspace."""

"""What every search is: asked for its next step, told what came of it, deterministic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

FindingT = TypeVar("FindingT", covariant=True)


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Trials asked for: `repeats` runs of one named arm of the search."""

    arm: str
    repeats: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One request of a search; its batches may run in any order, at once."""

    batches: tuple[Batch, ...]
    learning: str = ""
    """What is being learned, for the person who waits."""


class Done(msgspec.Struct, Generic[FindingT], frozen=True, kw_only=True):
    """The end of a search."""

    finding: FindingT


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a batch, as counts."""

    passed: int = 0
    failed: int = 0
    otherwise: int = 0
    timed_out: int = 0
    could_not_run: int = 0
    seconds: float = 0.0
    """Sum over its trials."""

    @property
    def counted(self) -> int:
        """Trials that say something about the failure."""
        return self.passed + self.failed

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            otherwise=self.otherwise + other.otherwise,
            timed_out=self.timed_out + other.timed_out,
            could_not_run=self.could_not_run + other.could_not_run,
            seconds=self.seconds + other.seconds,
        )


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a step: a tally for each arm asked, and what the clock said."""

    tallies: Mapping[str, Tally]
    seconds: float = 0.0
    budget_ended: bool = False


class Search(Protocol[FindingT]):
    """A pure, adaptive plan. Given the question, the seed and the answers it is deterministic."""

    def next_step(self) -> Step | Done[FindingT]: ...

    def tell(self, told: Told) -> None: ...

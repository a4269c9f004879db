"""The store: an append-only journal, the trials, and artifacts by content."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from becausal.domain.journal import AnyEvent, CaseOpened, Entry
from becausal.domain.trial import Trial


class Artifacts(Protocol):
    """Bytes by content."""

    def put(self, data: bytes) -> str:
        """Keep bytes for good; answers their digest. Putting twice keeps one."""

    def get(self, digest: str) -> bytes:
        """The bytes again; raises `artifact-unknown` when they were never put."""


class Store(Artifacts, Protocol):
    """What outlives a command. Every write is durable when the call returns."""

    def open_case(self, opened: CaseOpened, *, at: float) -> str:
        """Journal a new case and answer its name: `B-1`, `B-2`, … in order."""

    def cases(self) -> tuple[str, ...]:
        """Names of all cases, oldest first."""

    def append(self, case: str, events: Sequence[AnyEvent], *, at: float) -> None:
        """Add events in order, all or none; raises `case-unknown`."""

    def journal(self, case: str) -> tuple[Entry, ...]:
        """All entries of a case in order; raises `case-unknown`."""

    def record(self, case: str, trials: Sequence[Trial], *, at: float) -> None:
        """Add trials, all or none; a key recorded before raises `trial-recorded-twice`."""

    def trials(self, case: str, search: str | None = None) -> tuple[Trial, ...]:
        """Trials of a case (of one search), in the order of their keys' step, condition, repeat."""

    def hold(self, name: str) -> AbstractContextManager[bool]:
        """Try to be the only holder of a name while the context lasts.

        True when held. A holder that dies gives it up at once; nobody waits.
        """

    def close(self) -> None: ...

"""The store: an append-only journal, the trials, and artifacts by content."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from becausal.domain.errors import BecausalError, WrongUse
from becausal.domain.journal import AnyEvent, CaseOpened, Entry
from becausal.domain.trial import Trial, TrialKey


class Artifacts(Protocol):
    """Bytes by content."""

    def put(self, data: bytes) -> str:
        """Keep bytes for good; answers their digest. Putting twice keeps one."""

    def get(self, digest: str) -> bytes:
        """The bytes again; raises `artifact-unknown` when they were never put."""


class Store(Artifacts, Protocol):
    """What outlives a command. Every write is durable when the call returns.

    A record that would not read back equal is refused (`record-unwritable`).
    """

    def open_case(self, opened: CaseOpened, *, at: float) -> str:
        """Journal a new case and answer its name: `B-1`, `B-2`, … in order."""

    def cases(self) -> tuple[str, ...]:
        """Names of all cases, oldest first."""

    def append(self, case: str, events: Sequence[AnyEvent], *, at: float) -> None:
        """Add events in order, all or none; raises `case-unknown`."""

    def journal(self, case: str) -> tuple[Entry, ...]:
        """All entries of a case in order; raises `case-unknown`."""

    def record(
        self, case: str, trials: Sequence[Trial], *, at: float, artifacts: Sequence[bytes] = ()
    ) -> None:
        """Add trials and the artifacts they cite, all or none, in one durable write.

        A key recorded before raises `trial-recorded-twice`.
        """

    def trials(self, case: str, search: str | None = None) -> tuple[Trial, ...]:
        """Trials of a case (of one search), in the order of their keys; raises `case-unknown`."""

    def hold(self, name: str) -> AbstractContextManager[bool]:
        """Try to be the only holder of a name while the context lasts.

        True when held. A holder that dies gives it up at once; nobody waits.
        """

    def close(self) -> None: ...


def case_unknown(case: str, known: Sequence[str]) -> WrongUse:
    """What every store raises for a case it does not have."""
    last = ", ".join(known[-5:])
    hint = (
        f"the latest: {last}; becausal case list shows all" if known else "no case was opened yet"
    )
    return WrongUse("case-unknown", "there is no such case", value=case, hint=hint)


def recorded_twice(case: str, key: TrialKey) -> BecausalError:
    """What every store raises for a trial whose place is taken."""
    return BecausalError(
        "trial-recorded-twice",
        f"a trial of {case} was recorded before; nothing of this batch is kept",
        value=f"{key.search} step {key.step}, condition {key.condition}, repeat {key.repeat}",
        hint="another becausal may be running the same search",
    )


def artifact_unknown(digest: str) -> BecausalError:
    """What every store raises for bytes it never kept."""
    return BecausalError(
        "artifact-unknown",
        "no artifact has this digest",
        value=digest,
        hint="it may be in the store of another project or machine",
    )

"""Small fakes of the lesser ports: a repository, a clock, a progress that remembers."""

from __future__ import annotations

from typing import Literal

from becausal.domain.condition import Source
from becausal.domain.observation import RecentChange
from becausal.ports.clock import Clock
from becausal.ports.progress import Progress
from becausal.ports.repository import Repository, Snapshot, TreeChoice


class FakeRepository(Repository):
    """A repository whose code never changes, unless told to."""

    def __init__(self, top: str = "/fake/project") -> None:
        self._top = top
        self.source = Source(revision="0" * 40)
        self.patch: bytes | None = None
        self.changes: tuple[RecentChange, ...] = ()

    @property
    def top(self) -> str:
        return self._top

    @property
    def kind(self) -> Literal["git", "folder"]:
        return "git"

    def snapshot(self, tree: TreeChoice = "worktree") -> Snapshot:
        return Snapshot(source=self.source, patch=self.patch)

    def recent_changes(self, limit: int = 10) -> tuple[RecentChange, ...]:
        return self.changes[:limit]

    def branch(self) -> str:
        return "main"


class FakeClock(Clock):
    """Time that goes on only when it is looked at, by `tick` seconds."""

    def __init__(self, tick: float = 0.001) -> None:
        self._at = 1_000_000.0
        self._tick = tick

    def now(self) -> float:
        return self.elapsed()

    def elapsed(self) -> float:
        self._at += self._tick
        return self._at


class RememberedProgress(Progress):
    """Keeps what a person would have been shown."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def begin(self, what: str) -> None:
        self.told.append(what)

    def advance(self, done: int, total: int, learning: str) -> None:
        self.told.append(f"{done}/{total} {learning}")

    def end(self) -> None:
        self.told.append("end")

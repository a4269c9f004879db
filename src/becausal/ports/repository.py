"""The person's code, read without being touched."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from becausal.domain.condition import Source
from becausal.domain.observation import RecentChange

TreeChoice = Literal["worktree", "head"]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The source as captured now; `patch` holds the bytes that `source.patch` names."""

    source: Source
    patch: bytes | None = None
    dirty: tuple[str, ...] = ()
    """Paths with uncommitted or untracked work."""
    carried: tuple[str, ...] = ()
    """Ignored files and folders that trials get as well; they travel by no patch."""
    notes: tuple[str, ...] = ()


class Repository(Protocol):
    """One folder under study, usually a git checkout."""

    @property
    def top(self) -> str:
        """Absolute path of the folder that trials see."""

    @property
    def kind(self) -> Literal["git", "folder"]: ...

    def snapshot(self, tree: TreeChoice = "worktree") -> Snapshot:
        """Capture the source without touching tree, index, stash, refs or config."""

    def recent_changes(self, limit: int = 10) -> tuple[RecentChange, ...]: ...

    def branch(self) -> str:
        """Name of the branch, empty when detached or none."""

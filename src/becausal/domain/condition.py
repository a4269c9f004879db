"""Conditions: everything that decides how a run may go, named by its content."""

from __future__ import annotations

from typing import Literal

import msgspec

from becausal.domain.identity import content_id

Warmth = Literal["warm", "cold"]


def secret_mask(name: str) -> str:
    """What stands for the value of a variable that must not be written down."""
    return f"[secret:{name}]"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The code a trial runs: a commit, and the uncommitted work over it."""

    revision: str | None = None
    """Commit the checkout stands on; None when there is no commit (or no repository)."""
    tree: str | None = None
    """Git tree with the uncommitted work in it; None when the tree is the revision's."""
    patch: str | None = None
    """Artifact with the uncommitted work as a binary git diff, so that it can travel."""
    carried: str | None = None
    """Fingerprint of the ignored files laid into the workspace (`.env`, generated modules, …)."""
    folder: str | None = None
    """Content fingerprint of a plain folder, when there is no repository."""


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and where: `cwd` is relative to the top of the source."""

    argv: tuple[str, ...]
    cwd: str = "."


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trial is stopped."""

    seconds: float = 600.0
    memory: int | None = None
    """Bytes of address space; None: no limit."""


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides how a run may go. Its content hash is its identity."""

    source: Source
    command: Command
    environment: tuple[tuple[str, str | None], ...] = ()
    """Declared changes to the person's environment, sorted; None takes a variable away, and a
    `secret_mask` says that the lab was given the value apart."""
    input: str | None = None
    """Artifact given on standard input; None: standard input is empty."""
    seed: int | None = None
    """Fixed seed of every trial; None: each repeat has its own, recorded with it."""
    warmth: Warmth = "cold"
    network: bool = True
    lines: bool = False
    """Record which lines each test runs."""
    limits: Limits = Limits()

    @property
    def id(self) -> str:
        return content_id(self)

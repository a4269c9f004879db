"""The observation a case starts from: collected by the engine, never typed in."""

from __future__ import annotations

import msgspec


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """The environment around a failure, secrets masked."""

    python: str = ""
    """Version and path of the interpreter that the command uses."""
    platform: str = ""
    packages: tuple[tuple[str, str], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables of the trial that matter, sorted."""


class RecentChange(msgspec.Struct, frozen=True, kw_only=True):
    """A commit shortly before the failure was seen."""

    revision: str
    when: float
    author: str
    summary: str
    files: tuple[str, ...] = ()


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the failure before any search: R1.1."""

    error: str
    """The exact error with its full trace, as printed."""
    steps: tuple[str, ...]
    """Commands that show it, in order."""
    surroundings: Surroundings
    changes: tuple[RecentChange, ...] = ()
    dirty: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()
    """Ignored files and folders that the trials had."""
    branch: str = ""
    notes: tuple[str, ...] = ()

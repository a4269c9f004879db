"""The race that a lock file loses when it is removed: between opening it and locking it."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from becausal.store import holding


def test_a_file_removed_before_it_was_locked_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    removals: list[Path] = []

    def lock_too_late(descriptor: int, how: int) -> None:
        if not removals:
            removals.extend((tmp_path / "held").iterdir())
            removals[0].unlink()  # as the last holder does when it lets go
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    with holding.held(tmp_path / "held", "search") as one:
        assert removals
        with holding.held(tmp_path / "held", "search") as other:
            assert (one, other) == (True, False)

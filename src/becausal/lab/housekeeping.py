"""Lists and collects the workspaces in the cache, for `becausal doctor`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from becausal.lab.scan import digest, remove, scan
from becausal.lab.slot import Slot, lock


class WorkspaceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One workspace. `damaged`: its holder died or somebody changed it; the next lease repairs
    it."""

    path: str
    repository: str
    size: int
    state: Literal["leased", "free", "damaged"]
    last_used: float


def pool_report(cache: Path) -> tuple[WorkspaceReport, ...]:
    """Every workspace of every repository in the cache."""
    found = []
    for home, folder in _slots(cache):
        slot = Slot.take(folder, _name(folder), claim=False)
        try:
            found.append(_report(home, folder, slot))
        finally:
            if slot is not None:
                slot.give_up()
    return tuple(found)


def pool_clean(cache: Path, everything: bool = False) -> tuple[WorkspaceReport, ...]:
    """Remove workspaces that are free and hold nothing of anybody's; answers them.

    With `everything` also damaged ones, and what was captured of repositories that nobody works on:
    a recorded source cannot be run again then, until it is captured anew.
    """
    removed = []
    for home, folder in list(_slots(cache)):
        slot = Slot.take(folder, _name(folder), claim=False)
        if slot is None:
            continue
        try:
            report = _report(home, folder, slot)
            if report.state == "free" or everything:
                _remove_at_once(folder)
                removed.append(report)
        finally:
            slot.give_up()
    for home in _homes(cache):
        _sweep(home, everything)
    return tuple(removed)


def _homes(cache: Path) -> Iterator[Path]:
    pool = cache / "pool"
    if pool.is_dir():
        for stale in pool.glob(".gone-*"):
            remove(os.fsencode(stale))
        yield from sorted(pool.iterdir())


def _slots(cache: Path) -> Iterator[tuple[Path, Path]]:
    for home in _homes(cache):
        slots = home / "slots"
        if slots.is_dir():
            for folder in sorted(path for path in slots.iterdir() if path.name.isdigit()):
                yield home, folder


def _name(folder: Path) -> str:
    """How the workspace in a slot is called."""
    inside = folder / "at"
    names = sorted(os.listdir(inside)) if inside.is_dir() else []
    return names[0] if names else "none"


def _report(home: Path, folder: Path, slot: Slot | None) -> WorkspaceReport:
    """Without a slot, somebody holds it."""
    token = folder / "token"
    repository = home / "repository"
    return WorkspaceReport(
        path=str(folder / "at" / _name(folder)),
        repository=os.fsdecode(repository.read_bytes()) if repository.is_file() else "",
        size=_size(os.fsencode(folder)),
        state="leased" if slot is None else "free" if _is_clean(slot) else "damaged",
        last_used=token.stat().st_mtime if token.is_file() else folder.stat().st_mtime,
    )


def _is_clean(slot: Slot) -> bool:
    """Whether the workspace is what its last holder left."""
    state = slot.state()
    if state is None or not slot.workspace.is_dir():
        return False
    return digest(scan(os.fsencode(slot.workspace))) == state.marks


def _size(folder: bytes) -> int:
    """Bytes on disk; what vanishes meanwhile is not counted."""
    total = 0
    for here, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(here, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return total


def _remove_at_once(folder: Path) -> None:
    """Take a folder out of sight in one step; what a kill leaves of it is swept next time."""
    gone = folder.with_name(f".gone-{secrets.token_hex(4)}")
    os.rename(folder, gone)
    remove(os.fsencode(gone))


def _sweep(home: Path, everything: bool) -> None:
    """Remove what killed processes left; with `everything`, all of a repository nobody works on."""
    held = lock(home / "lock")
    if held is None:
        return
    try:
        for folder in (home / "scratch", home / "slots"):
            for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
                if folder.name == "scratch" or entry.name.startswith(".gone-"):
                    remove(os.fsencode(entry))
        if everything:
            _remove_at_once(home)
    finally:
        os.close(held)

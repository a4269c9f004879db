"""Ending processes until none is left: groups, orphans and daemons alike."""

from __future__ import annotations

import os
import signal
import time
from typing import Dict, List, Set

_PATIENCE = 10.0


def descendants(ancestor: int) -> List[int]:
    """Every living process below one, nearest first."""
    children: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = _parent(int(name))
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found = list(children.get(ancestor, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def kill_until_childless(spared: Set[int]) -> List[int]:
    """Kill all below this process but the spared ones; answers who could not be killed.

    This process is a subreaper: whoever loses its parent comes to it, so that in the end no
    descendant can hide. Most trials leave nobody, which one call finds out.
    """
    give_up = time.monotonic() + _PATIENCE
    while _reap(spared):
        for pid in descendants(os.getpid()):
            if pid not in spared:
                _kill(pid)
        if time.monotonic() > give_up:
            return [pid for pid in descendants(os.getpid()) if pid not in spared]
        _wait_for_one(0.02)
    return []


def _reap(spared: Set[int]) -> bool:
    """Collect the dead; True while anyone who is not spared is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return not spared or any(p not in spared for p in descendants(os.getpid()))
        spared.discard(pid)


def _wait_for_one(seconds: float) -> None:
    """Until a child ends, or a moment has passed: some are still being reparented to us."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    try:
        signal.sigtimedwait([signal.SIGCHLD], seconds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # gone already, or a set-user-id program: the caller reports who stays


def _parent(pid: int) -> "int | None":
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None  # it ended while we looked

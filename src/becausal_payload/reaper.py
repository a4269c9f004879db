"""Ending processes until none is left: groups, orphans and daemons alike."""

from __future__ import annotations

import os
import signal
import time
from typing import AbstractSet, Dict, List, Optional

_PATIENCE = 10.0
_MOMENT = 0.002


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


def kill_everyone() -> None:
    """The first process of a pid space ends all others in it, and collects them."""
    if os.getpid() != 1:
        raise RuntimeError("only the first process of a pid space may do this")
    _kill(-1)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def kill_until_childless(spared: AbstractSet[int] = frozenset()) -> List[int]:
    """Kill all below this process but the spared ones; answers who could not be killed.

    This process is a subreaper: whoever loses its parent comes to it, so that in the end no
    descendant can hide. Most trials leave nobody, which one call finds out.
    """
    give_up = time.monotonic() + _PATIENCE
    while _children_left(spared):
        left = [pid for pid in descendants(os.getpid()) if pid not in spared]
        for pid in left:
            _kill(pid)
        if time.monotonic() > give_up:
            return left
        time.sleep(_MOMENT)  # the dying come to us, or their children do
    return []


def _children_left(spared: AbstractSet[int]) -> bool:
    """Collect the dead; True while anyone who is not spared is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return any(p not in spared for p in descendants(os.getpid())) if spared else True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # gone already, or a set-user-id program: the caller reports who stays


def _parent(pid: int) -> Optional[int]:
    try:
        with open("/proc/%d/stat" % pid, "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return None  # it ended while we looked

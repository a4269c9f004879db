"""Throw-away folders: an overlay whose upper layer is memory, gone with the mount space."""

from __future__ import annotations

import os
from typing import AbstractSet, Dict, List, Sequence, Tuple

from becausal_payload import mounts

_SAFE = mounts.NOSUID | mounts.NODEV


def lay_all(folders: Sequence[str], options: str) -> None:
    """Cover folders, the outer ones first; what is mounted below them stays in view.

    One file system in memory holds all upper layers: making one costs as much as an overlay. It is
    mounted over the first folder, below the overlay, so that no mount point is needed elsewhere.
    The lower layer is reached through the working directory, which stands in the folder as it was.
    """
    wanted = sorted(folders, key=len)
    memory = -1
    for number, folder in enumerate(wanted):
        kept = _hold(folder, wanted)
        os.chdir(folder)
        if memory < 0:
            mounts.mount("tmpfs", folder, "tmpfs", _SAFE, "mode=0700")
            memory = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        own = "/proc/self/fd/%d/%d" % (memory, number)
        upper, work = own + "-upper", own + "-work"
        os.mkdir(upper)
        os.chmod(upper, os.stat(".").st_mode & 0o7777)
        os.mkdir(work)
        layers = "lowerdir=.,upperdir=%s,workdir=%s%s" % (upper, work, options)
        mounts.mount("overlay", folder, "overlay", _SAFE, layers)
        os.chdir("/")
        for place, fd in kept:
            mounts.mount("/proc/self/fd/%d" % fd, place, None, mounts.BIND | mounts.REC, None)
            os.close(fd)
    if memory >= 0:
        os.close(memory)


_hidden: Dict[Tuple[str, ...], List[str]] = {}


def look_below(folders: Sequence[str]) -> None:
    """Learn once, in the server, what each keeper would otherwise read from the mount table."""
    points = mounts.points()
    wanted = sorted(folders, key=len)
    for folder in wanted:
        _hidden[(folder, *wanted)] = _below(folder, {*points, *wanted})


def _hold(folder: str, wanted: Sequence[str]) -> List[Tuple[str, int]]:
    """Open what an overlay over `folder` would hide: mounts, and folders to be covered later."""
    places = _hidden.get((folder, *wanted))
    if places is None:
        places = _below(folder, {*mounts.points(), *wanted})
    return [(place, os.open(place, os.O_PATH | os.O_CLOEXEC)) for place in places]


def _below(folder: str, places: AbstractSet[str]) -> List[str]:
    start = folder.rstrip("/") + "/"
    inner = {place for place in places if place.startswith(start)}
    return sorted(place for place in inner if not any(place.startswith(p + "/") for p in inner))

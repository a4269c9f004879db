"""The C library's mount, and the table of what is mounted."""

from __future__ import annotations

import ctypes
import os
import re
from typing import List, Optional

NOSUID, NODEV, NOEXEC = 2, 4, 8
BIND, REC, PRIVATE = 0x1000, 0x4000, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def mount(
    source: Optional[str], target: str, kind: Optional[str], flags: int, options: Optional[str]
) -> None:
    names: List[Optional[bytes]] = [
        None if name is None else os.fsencode(name) for name in (source, target, kind, options)
    ]
    result = libc.mount(names[0], names[1], names[2], ctypes.c_ulong(flags), names[3])
    check(result, "mount of %s" % (kind or target))


def check(result: int, what: str) -> None:
    """Raise what the C library says went wrong."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))


def points() -> List[str]:
    """Where something is mounted, in this process's view."""
    with open("/proc/self/mountinfo", "rb") as table:
        raw = [line.split(b" ", 5)[4] for line in table]
    return [os.fsdecode(_OCTAL.sub(_plain, point)) for point in raw]


_OCTAL = re.compile(rb"\\([0-7]{3})")


def _plain(match: "re.Match[bytes]") -> bytes:
    return bytes([int(match.group(1), 8)])

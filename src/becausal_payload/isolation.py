"""What the kernel gives to keep a trial apart: namespaces, throw-away overlays, limits.

Nothing here is taken for granted: each means is tried once per server, and what does not work
is reported by name with the kernel's reason.
"""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from becausal_payload import mounts, overlays, wire

PID_NAMESPACE, OVERLAY = "pid-namespace", "overlay"
DIRECT = "direct"
PROCESS_GROUP, FILES_SHARED = "process-group", "files-shared"

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_CAPABILITY_VERSION_3 = 0x20080522


class Means(NamedTuple):
    """What works here; `reasons` tells why the rest does not."""

    user: bool
    """A user namespace is needed (and works) to be allowed the others."""
    overlay: str
    """Overlay options that work; empty: none do."""
    pids: bool
    direct: bool
    """The server itself may fork into a pid space: the keeper is the first process there."""
    reasons: Dict[str, str]


NOTHING = Means(user=False, overlay="", pids=False, direct=False, reasons={})


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    mounts.check(mounts.libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent() -> None:
    """SIGKILL when the parent ends. Only for single-threaded parents: a thread's end counts."""
    mounts.check(mounts.libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def limit_resources(memory: Optional[int]) -> None:
    """No core files; address space up to `memory`."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class PidSpace:
    """Forks the first process of a new pid space, and comes back.

    Cheaper than a process between keeper and trial, but only for those allowed to come back.
    """

    def __init__(self) -> None:
        self._home = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self, fork: Callable[[], int]) -> int:
        mounts.check(mounts.libc.unshare(_CLONE_NEWPID), "unshare")
        pid = -1
        try:
            pid = fork()
        finally:
            if pid != 0:
                mounts.check(mounts.libc.setns(self._home, _CLONE_NEWPID), "setns")
        return pid


def enter(means: Means, folders: Sequence[str]) -> None:
    """Move this process into its own mount space, with overlays; its children into a pid space."""
    if not (folders or means.pids):
        return
    apart = _CLONE_NEWPID if means.pids and not means.direct else 0
    unshare(_CLONE_NEWNS | apart, user=means.user)
    overlays.lay_all(folders, means.overlay)
    if means.direct:
        mount_proc()


def unshare(flags: int, *, user: bool) -> None:
    """Leave shared namespaces; with `user`, become able to by a user namespace of our own."""
    uid, gid = os.geteuid(), os.getegid()
    mounts.check(mounts.libc.unshare(flags | (_CLONE_NEWUSER if user else 0)), "unshare")
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
        _write("/proc/self/gid_map", "%d %d 1" % (gid, gid))
    if flags & _CLONE_NEWNS:
        mounts.mount(None, "/", None, mounts.REC | mounts.PRIVATE, None)


def mount_proc() -> None:
    """A /proc that shows the pid space this process is in."""
    mounts.mount("proc", "/proc", "proc", mounts.NOSUID | mounts.NODEV | mounts.NOEXEC, None)


def drop_capabilities() -> None:
    """A person who is not root has no capabilities; a trial of theirs must not have any either."""
    if os.geteuid() == 0:
        return
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    mounts.check(mounts.libc.capset(header, nothing), "capset")


_known: Dict[Tuple[str, ...], Means] = {}
_coverable: Dict[Tuple[str, ...], Tuple[str, ...]] = {}


def means(without: Sequence[str] = ()) -> Means:
    """What works here, tried once per server; `without` forbids means by name."""
    key = tuple(sorted(without))
    if key not in _known:
        _known[key] = _find(key)
    return _known[key]


def coverable(means: Means, folders: Sequence[str]) -> Tuple[str, ...]:
    """Those of the folders that take an overlay, tried once per server."""
    key = (means.overlay, *folders)
    if not means.overlay or not folders:
        return ()
    if key not in _coverable:
        wanted = tuple(folders)
        if attempt(lambda: _try_folders(means, wanted)):
            wanted = tuple(f for f in folders if not attempt(lambda: _try_folders(means, (f,))))  # noqa: B023
        _coverable[key] = wanted
        overlays.look_below(wanted)
    return _coverable[key]


def _find(without: Tuple[str, ...]) -> Means:
    reasons: Dict[str, str] = dict.fromkeys(without, "switched off")
    if PID_NAMESPACE in reasons and OVERLAY in reasons:
        return NOTHING._replace(reasons=reasons)
    user = bool(attempt(lambda: unshare(_CLONE_NEWNS, user=False)))
    refused = attempt(lambda: unshare(_CLONE_NEWNS, user=True)) if user else ""
    if refused:
        return NOTHING._replace(reasons={**{PID_NAMESPACE: refused, OVERLAY: refused}, **reasons})
    overlay = "" if OVERLAY in reasons else _find_overlay(user, reasons)
    pids = direct = False
    if PID_NAMESPACE not in reasons:
        refused = attempt(lambda: _try_pids(user))
        pids = not refused
        direct = pids and not user and DIRECT not in reasons and not attempt(_try_direct)
        if refused:
            reasons[PID_NAMESPACE] = refused
    return Means(user=user, overlay=overlay, pids=pids, direct=direct, reasons=reasons)


def _find_overlay(user: bool, reasons: Dict[str, str]) -> str:
    """The first set of options under which an overlay behaves like a folder."""
    for options in (",userxattr",) if user else (",redirect_dir=on", ",userxattr"):
        refused = attempt(lambda: _try_overlay(options, user))  # noqa: B023
        if not refused:
            return options
    reasons[OVERLAY] = refused
    return ""


def _try_overlay(options: str, user: bool) -> None:
    """A folder removed and made again needs extended attributes, which not every kernel gives.

    Tried on a file system in memory that only this attempt sees.
    """
    unshare(_CLONE_NEWNS, user=user)
    mounts.mount("tmpfs", "/tmp", "tmpfs", mounts.NOSUID | mounts.NODEV, "mode=0700")
    os.makedirs("/tmp/probe/was")
    overlays.lay_all(["/tmp/probe"], options)
    os.rmdir("/tmp/probe/was")
    os.mkdir("/tmp/probe/was")


def _try_folders(means: Means, folders: Tuple[str, ...]) -> None:
    unshare(_CLONE_NEWNS, user=means.user)
    overlays.lay_all(folders, means.overlay)
    for folder in folders:
        os.listdir(folder)


def _try_direct() -> None:
    space = PidSpace()
    for _ in range(2):
        pid = space.fork(os.fork)
        if pid == 0:
            os._exit(0 if os.getpid() == 1 else 1)
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError(0, "the first process is another")


def _try_pids(user: bool) -> None:
    unshare(_CLONE_NEWNS | _CLONE_NEWPID, user=user)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            mount_proc()
            code = 0 if os.readlink("/proc/self") == "1" else 2
        except OSError as refused:
            code = refused.errno or 1
        finally:
            os._exit(code)
    code = os.WEXITSTATUS(os.waitpid(pid, 0)[1])
    if code:
        raise OSError(code, "mount of /proc: %s" % os.strerror(code))


def attempt(step: Callable[[], None]) -> str:
    """Run a step in a child; empty when it works, else the reason."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            step()
            wire.write_all(write, b"works")
        except OSError as refused:
            wire.write_all(write, (refused.strerror or str(refused)).encode())
        finally:
            os._exit(0)
    os.close(write)
    answer = wire.read_to_end(read).decode()
    os.close(read)
    os.waitpid(pid, 0)
    return "" if answer == "works" else answer or "the attempt died"


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)

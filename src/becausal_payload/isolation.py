"""What the kernel gives to keep a trial apart: namespaces, throw-away overlays, limits.

Nothing here is taken for granted: each means is tried once per server, and what does not work
is reported by name with the kernel's reason.
"""

from __future__ import annotations

import ctypes
import os
import resource
import tempfile
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from becausal_payload import wire

PID_NAMESPACE, OVERLAY = "pid-namespace", "overlay"
PROCESS_GROUP, FILES_SHARED = "process-group", "files-shared"

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class Means(NamedTuple):
    """What works here; `reasons` tells why the rest does not."""

    user: bool
    """A user namespace is needed (and works) to be allowed the others."""
    overlay: str
    """Overlay options that work; empty: none do."""
    pids: bool
    reasons: Dict[str, str]


NOTHING = Means(user=False, overlay="", pids=False, reasons={})


def become_subreaper() -> None:
    """Orphans among the descendants become children of this process."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def die_with_parent() -> None:
    """SIGKILL when the parent ends. Only for single-threaded parents: a thread's end counts."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl")


def limit_resources(memory: Optional[int]) -> None:
    """No core files; address space up to `memory`."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def enter(means: Means, folders: Sequence[str], pids: bool) -> None:
    """Move this process into its own mount space, with overlays; its children into a pid space."""
    flags = (_CLONE_NEWNS if folders or pids else 0) | (_CLONE_NEWPID if pids else 0)
    if not flags:
        return
    unshare(flags, user=means.user)
    for folder in folders:
        lay_over(folder, means.overlay)


def unshare(flags: int, *, user: bool) -> None:
    """Leave shared namespaces; with `user`, become able to by a user namespace of our own."""
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(flags | (_CLONE_NEWUSER if user else 0)), "unshare")
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", "%d %d 1" % (uid, uid))
        _write("/proc/self/gid_map", "%d %d 1" % (gid, gid))
    if flags & _CLONE_NEWNS:
        _mount(None, "/", None, _MS_REC | _MS_PRIVATE, None)


def lay_over(folder: str, options: str) -> None:
    """Make a folder throw-away: writes go to memory, which goes with the mount space.

    The memory file system is mounted over the folder as well, below the overlay: no mount point
    is needed anywhere else. The lower layer is reached through the working directory, which
    still stands in the folder as it was.
    """
    os.chdir(folder)
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0700")
    upper, work = os.path.join(folder, "upper"), os.path.join(folder, "work")
    status = os.stat(".")
    os.mkdir(upper)
    os.chmod(upper, status.st_mode & 0o7777)
    os.mkdir(work)
    layers = "lowerdir=.,upperdir=%s,workdir=%s%s" % (_escape(upper), _escape(work), options)
    _mount("overlay", folder, "overlay", _MS_NOSUID | _MS_NODEV, layers)
    os.chdir("/")


def mount_proc() -> None:
    """A /proc that shows the pid space this process is in."""
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)


def drop_capabilities() -> None:
    """A person who is not root has no capabilities; a trial of theirs must not have any either."""
    if os.geteuid() == 0:
        return
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, nothing), "capset")


_known: Dict[Tuple[str, ...], Means] = {}


def means(without: Sequence[str] = ()) -> Means:
    """What works on this machine, tried once per server; `without` forbids means by name."""
    key = tuple(sorted(without))
    if key not in _known:
        _known[key] = _find(key)
    return _known[key]


def _find(without: Tuple[str, ...]) -> Means:
    reasons: Dict[str, str] = dict.fromkeys(without, "switched off")
    if PID_NAMESPACE in reasons and OVERLAY in reasons:
        return NOTHING._replace(reasons=reasons)
    user = False
    refused = _attempt(lambda: unshare(_CLONE_NEWNS, user=False))
    if refused:
        user = True
        refused = _attempt(lambda: unshare(_CLONE_NEWNS, user=True))
    if refused:
        for name in (PID_NAMESPACE, OVERLAY):
            reasons.setdefault(name, refused)
        return NOTHING._replace(reasons=reasons)
    overlay = "" if OVERLAY in reasons else _find_overlay(user, reasons)
    pids = False
    if PID_NAMESPACE not in reasons:
        refused = _attempt(lambda: _try_pids(user))
        pids = not refused
        if refused:
            reasons[PID_NAMESPACE] = refused
    return Means(user=user, overlay=overlay, pids=pids, reasons=reasons)


def _find_overlay(user: bool, reasons: Dict[str, str]) -> str:
    """The first set of options under which an overlay behaves like a folder."""
    for options in (",userxattr",) if user else (",redirect_dir=on", ",userxattr"):
        with tempfile.TemporaryDirectory(prefix="becausal-probe-") as folder:
            os.mkdir(os.path.join(folder, "was"))
            refused = _attempt(lambda: _try_overlay(folder, options, user))  # noqa: B023
        if not refused:
            return options
    reasons[OVERLAY] = refused
    return ""


def _try_overlay(folder: str, options: str, user: bool) -> None:
    """A folder removed and made again needs extended attributes, which not every kernel gives."""
    unshare(_CLONE_NEWNS, user=user)
    lay_over(folder, options)
    was = os.path.join(folder, "was")
    os.rmdir(was)
    os.mkdir(was)


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


def _attempt(step: Callable[[], None]) -> str:
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


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(",", "\\,")


def _mount(
    source: Optional[str], target: str, kind: Optional[str], flags: int, options: Optional[str]
) -> None:
    names: List[Optional[bytes]] = [
        None if name is None else os.fsencode(name) for name in (source, target, kind, options)
    ]
    result = _libc.mount(names[0], names[1], names[2], ctypes.c_ulong(flags), names[3])
    _check(result, "mount of %s" % (kind or target))


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)

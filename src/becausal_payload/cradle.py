"""The process between keeper and trial, and the trial's own first steps.

Where the keeper cannot be the first process of a pid space, the cradle is: the kernel spares that
one its children's signals, and kills everyone else when it ends. Without a pid space it is the
parent that a trial may kill: `kill -9 $PPID` hits the cradle, and the trial falls to the keeper.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import warnings
from typing import Any, Callable, Dict, NoReturn, Sequence

from becausal_payload import isolation, wire

Order = Dict[str, Any]
Start = Callable[[int], None]


def fork() -> int:
    """`os.fork` without Python's advice on threads: native ones are allowed by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def rock(
    order: Order, start: Start, stdio: Sequence[int], side: int, status: int, pids: bool
) -> NoReturn:
    """Fork the trial, wait for it and report how it ended; never returns."""
    try:
        isolation.die_with_parent()
        if pids:
            isolation.mount_proc()
        os.setsid()
        trial = fork()
        if trial == 0:
            become_trial(order, start, stdio, side, status)
        for fd in (*stdio, side):
            os.close(fd)
        ended = None
        while ended is None:
            # Only looked at, not collected: killed right here we would take its end with us.
            seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if seen is not None and seen.si_pid == trial:
                exited = seen.si_code == os.CLD_EXITED
                ended = seen.si_status << 8 if exited else seen.si_status
                wire.write_all(status, b"S%d\n" % ended)
            os.waitpid(-1 if seen is None else seen.si_pid, 0)
    except BaseException as failure:  # noqa: BLE001 - this process has nobody to raise to
        tell_obstacle(status, "trial-not-started", "the trial could not be started: %r" % failure)
    finally:
        os._exit(0)


def tell_obstacle(status: int, slug: str, what: str, hint: str = "") -> None:
    obstacle = {"slug": slug, "what": what, "hint": hint}
    wire.write_all(status, b"O" + json.dumps(obstacle).encode() + b"\n")


def become_trial(
    order: Order, start: Start, stdio: Sequence[int], side: int, status: int
) -> NoReturn:
    """Set the stage and hand over to `start`; never returns."""
    try:
        gc.enable()  # as the program expects it; the keeper had no use for it
        os.setsid()
        # Told by the trial, not by its parent: it may kill that one as its first act.
        wire.write_all(status, b"P%d\n" % os.getpid())
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        if _prepare(order, status):
            os.close(status)
            start(side)
    except BaseException as failure:  # noqa: BLE001 - a program ends by os._exit, not by raising
        os.write(2, ("becausal: the trial could not go on: %r\n" % failure).encode())
    finally:
        os._exit(127)


def _prepare(order: Order, status: int) -> bool:
    limits = order.get("limits") or {}
    try:
        os.chdir(order["cwd"])
    except OSError as refused:
        tell_obstacle(
            status,
            "folder-missing",
            "the folder %s cannot be entered: %s" % (order["cwd"], refused.strerror),
            "it is not part of the source under study; create it in a set-up step",
        )
        return False
    isolation.drop_capabilities()
    isolation.limit_resources(limits.get("memory"))
    _ordinary_signals()
    _change_environment(order["env"])
    return True


def _change_environment(wanted: Dict[str, str]) -> None:
    now = dict(os.environ)
    for name in now:
        if name not in wanted:
            del os.environ[name]
    for name, value in wanted.items():
        if now.get(name) != value:
            os.environ[name] = value


def _ordinary_signals() -> None:
    """Signals as a program finds them at its start, whatever the server made of them."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

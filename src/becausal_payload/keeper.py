"""Run one trial under a keeper: what a server calls."""

from __future__ import annotations

import os
import select
import signal
from typing import Any, Dict, List, Set

from becausal_payload import cradle, isolation, keeping, reaper, wire

Order = cradle.Order
Start = cradle.Start


def run_kept(order: Order, start: Start, control_fd: int) -> Dict[str, Any]:
    """Run `start` in a kept trial and say what became of it.

    While it runs the server listens on `control_fd`: its end means that nobody wants the answer,
    so everything is killed and the server exits; `{"cancel": ticket}` ends this trial only.
    """
    isolation.become_subreaper()
    means = isolation.means(order.get("without") or ())
    asked = [*(order.get("overlay") or ()), *(order.get("overlay_too") or ())]
    covered = isolation.coverable(means, asked)
    spared = set(reaper.descendants(os.getpid())) if order.get("spare") else set()
    report, report_w = os.pipe()
    leash_r, leash = os.pipe()
    keeper = _fork_keeper(means)
    if keeper == 0:
        for fd in (report, leash, control_fd):
            os.close(fd)
        keeping.keep(order, start, means, covered, report_w, leash_r)
    os.close(report_w)
    os.close(leash_r)
    cancelled = False
    parts: List[bytes] = []
    try:
        cancelled = _listen(order, report, control_fd, leash, parts)
    finally:
        if not cancelled:
            os.close(leash)
        os.close(report)
    return _conclude(keeper, b"".join(parts), cancelled, spared)


_pid_spaces: List[isolation.PidSpace] = []


def _fork_keeper(means: isolation.Means) -> int:
    if not means.direct:
        return cradle.fork()
    if not _pid_spaces:
        _pid_spaces.append(isolation.PidSpace())
    return _pid_spaces[0].fork(cradle.fork)


def end_everything() -> None:
    """Kill all that this server has started, however deep."""
    reaper.kill_until_childless()


def _listen(order: Order, report: int, control_fd: int, leash: int, parts: List[bytes]) -> bool:
    """Collect the report while heeding the control socket; True when cancelled."""
    cancelled = False
    poll = select.poll()
    poll.register(report, select.POLLIN)
    poll.register(control_fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == control_fd:
                message = wire.receive(control_fd)
                if message is None:
                    end_everything()
                    os._exit(0)
                if message.get("cancel") == order.get("ticket") and not cancelled:
                    cancelled = True
                    os.close(leash)
                continue
            part = os.read(report, 1 << 18)
            if not part:
                return cancelled
            parts.append(part)


def _conclude(keeper: int, data: bytes, cancelled: bool, spared: Set[int]) -> Dict[str, Any]:
    read = keeping.read_report(data)
    if read is None:
        # It was killed: its orphans have come to us.
        try:
            os.kill(keeper, signal.SIGKILL)
        except ProcessLookupError:
            read = None
        reaper.kill_until_childless(spared)
        return obstacle("keeper-killed", "the process that kept the trial was killed")
    os.waitpid(keeper, 0)
    header, pieces = read
    if not pieces:
        return obstacle("keeper-failed", header["obstacle"]["what"])
    for name, (head, tail) in (("stdout", (0, 1)), ("stderr", (2, 3))):
        header[name] = {
            "head_b64": wire.as_text(pieces[head]),
            "tail_b64": wire.as_text(pieces[tail]),
            "dropped": header.pop(name + "_dropped"),
        }
    header["side_b64"] = wire.as_text(pieces[4])
    if cancelled:
        header["obstacle"] = obstacle("cancelled", "the trial was cancelled")["obstacle"]
    return header


def obstacle(slug: str, what: str, hint: str = "") -> Dict[str, Any]:
    """The result of a trial that could not be run."""
    nothing = {"head_b64": "", "tail_b64": "", "dropped": 0}
    return {
        "exit_code": None,
        "signal": None,
        "timed_out": False,
        "obstacle": {"slug": slug, "what": what, "hint": hint},
        "stdout": dict(nothing),
        "stderr": dict(nothing),
        "seconds": 0.0,
        "cpu_seconds": 0.0,
        "max_rss": 0,
        "isolation": [],
        "side_b64": "",
    }

"""The keeper of one trial: starts it apart, captures it, stops it in time, leaves nobody behind."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import struct
import time
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

from becausal_payload import cradle, isolation, reaper, wire
from becausal_payload.capture import Capture

CAPTURE = 1 << 20
SIDE_LIMIT = 32 << 20
HEADER = struct.Struct(">I")


def keep(
    order: cradle.Order,
    start: cradle.Start,
    means: isolation.Means,
    covered: Sequence[str],
    report: int,
    leash: int,
) -> NoReturn:
    """The life of a keeper; what it saw goes to `report` as a header and raw bytes."""
    try:
        gc.disable()  # a collection here would copy the server's memory page by page
        os.setsid()
        isolation.become_subreaper()
        keeper = Keeper(order, means, covered)
        keeper.begin(start, report, leash)
        keeper.watch(leash)
        keeper.end()
        keeper.tell(report)
    except BaseException as failure:  # noqa: BLE001 - this process has nobody to raise to
        if os.getpid() == 1:
            reaper.kill_everyone()
        else:
            reaper.kill_until_childless()
        obstacle = {"slug": "keeper-failed", "what": repr(failure), "hint": ""}
        _send(report, {"obstacle": obstacle, "sizes": []}, [])
    finally:
        os._exit(0)


class Keeper:
    """Holds what is known of the trial while it runs."""

    def __init__(self, order: cradle.Order, means: isolation.Means, covered: Sequence[str]) -> None:
        self._order = order
        self._means = means
        self._covered = covered
        self._side: List[bytes] = []
        self._side_seen = 0
        self._words = b""
        self._cradle = 0
        self._trial = 0
        self._ended: Optional[int] = None
        self._obstacle: Optional[Dict[str, str]] = None
        self._timed_out = False
        self._survivors: List[int] = []

    def begin(self, start: cradle.Start, report: int, leash: int) -> None:
        """Go apart and fork the trial, in a cradle unless this is a first process itself."""
        order, means = self._order, self._means
        stdin = os.open(order.get("stdin") or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        self._side_fd, side_w = os.pipe()
        self._status_fd, status_w = os.pipe()
        self._wake_fd, wake_w = os.pipe()
        isolation.enter(means, self._covered)
        os.set_blocking(wake_w, False)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._started = time.monotonic()
        child = cradle.fork()
        if child == 0:
            for fd in (report, leash, out, err, self._side_fd, self._status_fd, self._wake_fd):
                os.close(fd)
            stdio = (stdin, out_w, err_w)
            if means.direct:
                cradle.become_trial(order, start, stdio, side_w, status_w)
            cradle.rock(order, start, stdio, side_w, status_w, means.pids)
        if means.direct:
            self._trial = child
        else:
            self._cradle = child
        for fd in (stdin, out_w, err_w, side_w, status_w):
            os.close(fd)
        limit = int(order.get("capture") or CAPTURE)
        self._out, self._err = Capture(out, limit), Capture(err, limit)
        for fd in (self._side_fd, self._status_fd, self._wake_fd):
            os.set_blocking(fd, False)

    def watch(self, leash: int) -> None:
        """Until the trial ends, its time is up, or the server lets go of the leash."""
        pumps = {
            self._out.fd: self._out.pump,
            self._err.fd: self._err.pump,
            self._side_fd: self._pump_side,
            self._status_fd: self._pump_status,
            self._wake_fd: self._collect,
        }
        poll = select.poll()
        for fd in (*pumps, leash):
            poll.register(fd, select.POLLIN)
        seconds = float((self._order.get("limits") or {}).get("seconds") or 0.0)
        deadline = self._started + seconds if seconds > 0 else None
        while self._ended is None and self._obstacle is None:
            for fd, _ in poll.poll(_patience(deadline)):
                if fd == leash:
                    return
                if not pumps[fd]():
                    poll.unregister(fd)
            late = deadline is not None and time.monotonic() >= deadline
            if late and self._ended is None and self._obstacle is None:
                self._timed_out = True
                return

    def end(self) -> None:
        """Kill whoever is left, then take what the pipes still hold."""
        self._seconds = time.monotonic() - self._started
        self._pump_status()
        if self._means.direct:
            reaper.kill_everyone()
        else:
            if self._cradle:
                os.kill(self._cradle, signal.SIGKILL)
                os.waitpid(self._cradle, 0)
            self._survivors = reaper.kill_until_childless()
        self._out.drain()
        self._err.drain()
        while self._pump_side():
            pass

    def tell(self, report: int) -> None:
        out, err = self._out.kept(), self._err.kept()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        header = self._outcome()
        header.update(
            seconds=self._seconds,
            cpu_seconds=used.ru_utime + used.ru_stime,
            max_rss=used.ru_maxrss * 1024,
            keeper_rss=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            isolation=self._isolation(),
            stdout_dropped=out[2],
            stderr_dropped=err[2],
            side_dropped=self._side_seen - sum(map(len, self._side)),
        )
        pieces: List[Sequence[Any]] = [out[0], out[1], err[0], err[1], self._side]
        header["sizes"] = [sum(map(len, parts)) for parts in pieces]
        _send(report, header, [part for parts in pieces for part in parts])

    def _outcome(self) -> Dict[str, Any]:
        code: Optional[int] = None
        number: Optional[int] = None
        if self._ended is not None:
            if os.WIFSIGNALED(self._ended):
                number = os.WTERMSIG(self._ended)
            else:
                code = os.WEXITSTATUS(self._ended)
        obstacle = self._obstacle
        if self._survivors and obstacle is None:
            what = "processes of the trial could not be killed: %s" % self._survivors
            hint = "they run as another user; end them by hand, or run in the sandbox"
            obstacle = {"slug": "process-survived", "what": what, "hint": hint}
        return {
            "exit_code": code,
            "signal": number,
            "timed_out": self._timed_out,
            "obstacle": obstacle,
        }

    def _isolation(self) -> List[str]:
        kept = [isolation.PID_NAMESPACE if self._means.pids else isolation.PROCESS_GROUP]
        meant = self._order.get("overlay")
        if meant:
            apart = set(meant) <= set(self._covered)
            kept.append(isolation.OVERLAY if apart else isolation.FILES_SHARED)
        return kept

    def _pump_side(self) -> bool:
        try:
            part = os.read(self._side_fd, 1 << 16)
        except BlockingIOError:
            return False
        room = SIDE_LIMIT - self._side_seen
        if room > 0:
            self._side.append(part[:room])
        self._side_seen += len(part)
        return bool(part)

    def _pump_status(self) -> bool:
        try:
            part = os.read(self._status_fd, 1 << 16)
        except BlockingIOError:
            return True
        self._words += part
        *lines, self._words = self._words.split(b"\n")
        for line in lines:
            if line[:1] == b"P":
                self._trial = self._trial or int(line[1:])
            elif line[:1] == b"S":
                self._ended = int(line[1:])
            else:
                self._obstacle = json.loads(line[1:].decode())
        return bool(part)

    def _collect(self) -> bool:
        """Children have ended: the trial, its cradle, or orphans that came to us."""
        os.read(self._wake_fd, 1 << 10)
        self._pump_status()
        while True:
            try:
                pid, ended = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return True
            if pid == self._cradle:
                self._cradle = 0
                self._pump_status()
                self._without_cradle()
            elif pid == self._trial and not (self._means.pids and not self._means.direct):
                self._pump_status()
                self._ended = ended

    def _without_cradle(self) -> None:
        """Without a pid space its trial has fallen to us and may go on; in one all is over."""
        if self._ended is None and (self._means.pids or not self._trial):
            what = "the process that held the trial was killed from outside"
            self._obstacle = {"slug": "keeper-killed", "what": what, "hint": ""}


def _patience(deadline: Optional[float]) -> Optional[float]:
    """Milliseconds to wait at most."""
    return None if deadline is None else max(0.0, (deadline - time.monotonic()) * 1000 + 1)


def _send(fd: int, header: Dict[str, Any], pieces: "List[Any]") -> None:
    body = json.dumps(header).encode()
    wire.write_all(fd, HEADER.pack(len(body)))
    wire.write_all(fd, body)
    for piece in pieces:
        wire.write_all(fd, piece)


def read_report(data: bytes) -> Optional[Tuple[Dict[str, Any], List[bytes]]]:
    """What `tell` wrote; None when the keeper died before it had said all."""
    if len(data) < HEADER.size:
        return None
    place = HEADER.size + HEADER.unpack_from(data)[0]
    if len(data) < place:
        return None
    header = json.loads(data[HEADER.size : place].decode())
    pieces = []
    for size in header.pop("sizes"):
        pieces.append(data[place : place + size])
        place += size
    return (header, pieces) if len(data) == place else None

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
    order: cradle.Order, start: cradle.Start, means: isolation.Means, report: int, leash: int
) -> NoReturn:
    """The life of a keeper; what it saw goes to `report` as a header and raw bytes."""
    try:
        gc.disable()  # a collection here would copy the server's memory page by page
        os.setsid()
        isolation.become_subreaper()
        keeper = Keeper(order, means)
        keeper.begin(start, report, leash)
        keeper.watch(leash)
        keeper.end()
        keeper.tell(report)
    except BaseException as failure:  # noqa: BLE001 - this process has nobody to raise to
        reaper.kill_until_childless(set())
        obstacle = {"slug": "keeper-failed", "what": repr(failure), "hint": ""}
        _send(report, {"obstacle": obstacle, "sizes": []}, [])
    finally:
        os._exit(0)


class Keeper:
    """Holds what is known of the trial while it runs."""

    def __init__(self, order: cradle.Order, means: isolation.Means) -> None:
        self._order = order
        self._means = means
        self._pids = means.pids
        self._folders = list(order.get("overlay") or []) if means.overlay else []
        self._side: List[bytes] = []
        self._side_seen = 0
        self._words = b""
        self._trial: Optional[int] = None
        self._ended: Optional[int] = None
        self._obstacle: Optional[Dict[str, str]] = None
        self._timed_out = False
        self._survivors: List[int] = []

    def begin(self, start: cradle.Start, report: int, leash: int) -> None:
        """Go apart and fork the cradle."""
        order = self._order
        stdin = os.open(order.get("stdin") or os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        out, out_w = os.pipe()
        err, err_w = os.pipe()
        self._side_fd, side_w = os.pipe()
        self._status_fd, status_w = os.pipe()
        isolation.enter(self._means, self._folders, self._pids)
        self._started = time.monotonic()
        self._cradle = cradle.fork()
        if self._cradle == 0:
            for fd in (report, leash, out, err, self._side_fd, self._status_fd):
                os.close(fd)
            cradle.rock(order, start, (stdin, out_w, err_w), side_w, status_w, self._pids)
        for fd in (stdin, out_w, err_w, side_w, status_w):
            os.close(fd)
        limit = int(order.get("capture") or CAPTURE)
        self._out, self._err = Capture(out, limit), Capture(err, limit)
        os.set_blocking(self._side_fd, False)

    def watch(self, leash: int) -> None:
        """Until the trial ends, its time is up, or the server lets go of the leash."""
        pumps = {
            self._out.fd: self._out.pump,
            self._err.fd: self._err.pump,
            self._side_fd: self._pump_side,
            self._status_fd: self._pump_status,
        }
        poll = select.poll()
        for fd in (*pumps, leash):
            poll.register(fd, select.POLLIN)
        seconds = float((self._order.get("limits") or {}).get("seconds") or 0.0)
        deadline = self._started + seconds if seconds > 0 else None
        while self._ended is None and self._obstacle is None:
            for fd, _ in poll.poll(self._patience(deadline)):
                if fd == leash:
                    return
                if not pumps[fd]():
                    poll.unregister(fd)
            if self._status_fd < 0 and self._ended is None:
                self._look_for_orphan()
            if deadline is not None and self._ended is None and time.monotonic() >= deadline:
                self._timed_out = True
                return

    def end(self) -> None:
        """Kill whoever is left, then take what the pipes still hold."""
        self._seconds = time.monotonic() - self._started
        if self._cradle:
            os.kill(self._cradle, signal.SIGKILL)
            os.waitpid(self._cradle, 0)
        self._survivors = reaper.kill_until_childless(set())
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
        kept = [isolation.PID_NAMESPACE if self._pids else isolation.PROCESS_GROUP]
        if self._order.get("overlay"):
            kept.append(isolation.OVERLAY if self._folders else isolation.FILES_SHARED)
        return kept

    def _patience(self, deadline: Optional[float]) -> Optional[float]:
        """Milliseconds to wait at most."""
        if self._status_fd < 0:
            return 20.0
        if deadline is None:
            return None
        return max(0.0, (deadline - time.monotonic()) * 1000 + 1)

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
        part = os.read(self._status_fd, 1 << 16)
        self._words += part
        *lines, self._words = self._words.split(b"\n")
        for line in lines:
            if line[:1] == b"P":
                self._trial = int(line[1:])
            elif line[:1] == b"S":
                self._ended = int(line[1:])
            else:
                self._obstacle = json.loads(line[1:].decode())
        if not part:
            self._status_fd = -1
        return bool(part)

    def _look_for_orphan(self) -> None:
        """The cradle is gone. Without a pid space its trial has fallen to us, and may go on."""
        if self._cradle:
            os.waitpid(self._cradle, 0)  # only when it is quite dead are its children ours
            self._cradle = 0
        if self._trial is None or self._pids:
            what = "the process that held the trial was killed from outside"
            self._obstacle = {"slug": "keeper-killed", "what": what, "hint": ""}
            return
        pid, ended = os.waitpid(self._trial, os.WNOHANG)
        if pid:
            self._ended = ended


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

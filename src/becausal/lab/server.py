"""A server of trials, as its owner sees it: start, ask, cancel, stop, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from becausal.domain.errors import CouldNotRun
from becausal_payload import wire

_TAIL = 64 << 10
_GRACE = 5.0
_MARGIN = 30.0
_MARK = "BECAUSAL_SERVER"

Message = dict[str, Any]


class ServerDied(CouldNotRun):
    """The server is gone (or was given up); the trial it ran says nothing."""

    def __init__(self, what: str, said: str) -> None:
        hint = f"It said last: {said}" if said else "It said nothing; was it killed for memory?"
        super().__init__("server-died", what, hint=hint)
        self.said = said


class Server:
    """One process of `becausal_payload` that runs one trial at a time.

    A socket joins us to it. When we end, however we end, the socket closes and the server kills all
    it started and exits: nothing here depends on our being alive to clean up.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str = "/",
        patience: float = 60.0,
        keep: Sequence[int] = (),
    ) -> None:
        """Start it (the socket's number is added to `argv`) and wait for its first word.

        `keep` are descriptors that it holds as long as it lives: the lock of a leased workspace.
        """
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._mark = secrets.token_hex(16)
        self._said: deque[bytes] = deque()
        self._sending = threading.Lock()
        try:
            self._process = subprocess.Popen(
                [*argv, str(theirs.fileno())],
                env={**env, _MARK: self._mark},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), *keep),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise ServerDied(f"The server cannot be started: {error}.", "") from error
        finally:
            theirs.close()
        self._reader = threading.Thread(target=self._listen, name="becausal-server", daemon=True)
        self._reader.start()
        try:
            self.hello = self._receive(time.monotonic() + patience)
        except BaseException:
            self.stop(grace=0.0)
            raise

    @property
    def pid(self) -> int:
        """Of the process we started: the server, or the sandbox around it."""
        return self._process.pid

    @property
    def said(self) -> str:
        """The end of what the server itself printed."""
        return b"".join(tuple(self._said)).decode("utf-8", "replace").strip()[-2000:]

    def run(self, order: Message, *, margin: float = _MARGIN) -> Message:
        """Run one trial. Past the trial's own limit and a margin the server is given up."""
        limit = float((order.get("limits") or {}).get("seconds") or 0.0)
        marked = {**order, "env": {**order["env"], _MARK: self._mark}}
        answer = self.ask({"run": marked}, patience=limit + margin if limit else None)
        ran = answer.get("ran")
        if not isinstance(ran, dict):
            raise self._given_up(f"The server answered something else: {sorted(answer)}.")
        return ran

    def ask(self, message: Message, *, patience: float | None) -> Message:
        """Send one message and wait for the answer to it."""
        self._send(message)
        return self._receive(None if patience is None else time.monotonic() + patience)

    def cancel(self, ticket: int) -> None:
        """End the trial with this ticket, from any thread; its run answers at once."""
        with contextlib.suppress(ServerDied):
            self._send({"cancel": ticket})

    def stop(self, *, grace: float = _GRACE) -> None:
        """Let it end everything by itself, then kill whatever is left. May be called twice."""
        family = _family(self._process)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if grace > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        _kill_all([*family, *_family(self._process)])
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join(_GRACE)
        self._socket.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _send(self, message: Message) -> None:
        try:
            with self._sending:
                wire.send(self._socket.fileno(), message)
        except OSError as error:
            raise self._given_up("The server has ended.") from error

    def _receive(self, deadline: float | None) -> Message:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poll.poll(left):
            raise self._given_up("The server does not answer.")
        try:
            message = wire.receive(self._socket.fileno())
        except (wire.BrokenFrame, ValueError, OSError) as error:
            raise self._given_up("The server ended in the middle of a word.") from error
        if message is None:
            raise self._given_up("The server has ended.")
        return message

    def _given_up(self, what: str) -> ServerDied:
        self.stop(grace=0.2)
        # Killed together with its keeper it could not clean up: what it started bears our mark.
        end = time.monotonic() + _GRACE
        while (left := _marked(self._mark)) and time.monotonic() < end:
            _kill_all(left)
        code = self._process.returncode
        return ServerDied(f"{what[:-1]} (exit code {code}).", self.said)

    def _listen(self) -> None:
        """Keep the end of what the server prints, however much that is."""
        assert self._process.stdout is not None
        kept = 0
        with self._process.stdout as stream:
            while part := os.read(stream.fileno(), 1 << 13):
                self._said.append(part)
                kept += len(part)
                while kept - len(self._said[0]) > _TAIL:
                    kept -= len(self._said.popleft())


def _family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    if process.poll() is not None:
        return []
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _marked(mark: str) -> list[psutil.Process]:
    """Living processes that were started with the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(_MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _kill_all(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL by identity: psutil compares start times, so that a reused number is spared."""
    alive = [process for process in processes if _lives(process)]
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + _GRACE
    while any(map(_lives, alive)) and time.monotonic() < deadline:
        time.sleep(0.002)


def _lives(process: psutil.Process) -> bool:
    """An ended process that nobody has waited for yet is as good as gone.

    The sandbox leaves its innermost process to the machine's init, which may take seconds.
    """
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

"""Warm trials: servers that have collected the tests, one per hash seed, forked for each trial."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from becausal.domain.recording import Obstacle, Recording
from becausal.lab.recognise import PytestCommand
from becausal.lab.redaction import Redactor
from becausal.lab.server import Server, ServerDied
from becausal.lab.stage import Stage
from becausal.ports.lab import Order, Warming
from becausal.probes.decode import decode
from becausal_payload import wire

_SCRIPT = ("becausal_payload", "warm.py")
# The interpreter must start in the command's folder: relative entries of PYTHONPATH mean that one.
_IN_FOLDER = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "becausal")
_COLLECTING = 300.0
_MARGIN = 30.0


class Place(Protocol):
    """The place that trials run in; the runner of cold trials made it, and keeps it."""

    stage: Stage
    home: Path
    scratch: Path

    @property
    def fence(self) -> int: ...

    def request(self, order: Order, folder: Path, input: bytes | None) -> wire.Message: ...


class WarmRunner:
    """Runs trials of one command warm, one at a time, with a server for each hash seed."""

    def __init__(
        self,
        place: Place,
        command: PytestCommand,
        *,
        servers: int = 3,
        collecting: float = _COLLECTING,
    ) -> None:
        self._place = place
        self._command = command
        self._most = servers
        self._collecting = collecting
        self._servers: dict[int, _Collected] = {}
        self._started = 0
        self._turn = threading.Lock()
        self._running: tuple[Server, int] | None = None

    def warming(self, order: Order) -> Warming:
        """Whether such orders can run warm; a server is started to know."""
        folder = self._folder()
        try:
            with self._turn:
                collected = self._collected(order, self._place.request(order, folder, None))
        except RefusedWarm as refused:
            return Warming(possible=False, reason=refused.reason)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return Warming(possible=True, tests=collected.tests)

    def run(
        self, order: Order, *, input: bytes | None = None, tests: Sequence[str] | None = None
    ) -> Recording:
        """One trial; `tests` names those to run and their order, all collected ones otherwise."""
        folder = self._folder()
        try:
            request = self._place.request(order, folder, input)
            request["seed"] = order.seed
            request["lines"] = order.condition.lines
            request["tests"] = None if tests is None else list(tests)
            recording = self._recording(order, request)
            return Redactor(request["env"]).redact_recording(recording)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def cancel(self) -> None:
        """End the trial that runs now, from any thread."""
        running = self._running
        if running is not None:
            running[0].cancel(running[1])

    def close(self) -> None:
        """End the servers and whatever they have started."""
        while self._servers:
            self._servers.popitem()[1].server.stop()

    def __enter__(self) -> WarmRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _folder(self) -> Path:
        folder = self._place.scratch / f"trial-{secrets.token_hex(6)}"
        folder.mkdir()
        return folder

    def _recording(self, order: Order, request: wire.Message) -> Recording:
        try:
            with self._turn:
                collected, answer = self._answer(order, request)
        except RefusedWarm as refused:
            return _not_run(order, "warm-refused", refused.reason, "run it cold")
        except ServerDied as died:
            self._servers.pop(order.hash_seed, None)
            return _not_run(order, died.slug, died.what, died.hint)
        if "stale" in answer:
            changed = ", ".join(answer["stale"][:3])
            return _not_run(order, "source-changes", f"files change while they run: {changed}", "")
        if "unknown" in answer:
            missing = ", ".join(answer["unknown"][:3])
            return _not_run(order, "test-not-found", f"not collected: {missing}", "")
        stage = self._place.stage
        recording = decode(answer["ran"], stage)
        return msgspec.structs.replace(
            recording,
            seed=order.seed,
            server=collected.name,
            notes=(*recording.notes, *collected.notes),
        )

    def _answer(self, order: Order, request: wire.Message) -> tuple[_Collected, wire.Message]:
        """Ask the server; when files were changed under it, a new one, once."""
        collected = self._collected(order, request)
        answer = self._ask(collected, request)
        if "stale" in answer:
            self._servers.pop(order.hash_seed).server.stop()
            collected = self._collected(order, request)
            answer = self._ask(collected, request)
        return collected, answer

    def _ask(self, collected: _Collected, request: wire.Message) -> wire.Message:
        limit = request["limits"]["seconds"]
        self._running = (collected.server, request["ticket"])
        try:
            patience = limit + _MARGIN if limit else None
            return collected.server.ask({"run": request}, patience=patience)
        finally:
            self._running = None

    def _collected(self, order: Order, request: wire.Message) -> _Collected:
        """The server of this hash seed; the one used longest ago makes room for a new one."""
        known = self._servers.pop(order.hash_seed, None)
        if known is None:
            while len(self._servers) >= self._most:
                self._servers.pop(next(iter(self._servers))).server.stop()
            known = self._start(order, request)
        self._servers[order.hash_seed] = known
        return known

    def _start(self, order: Order, request: wire.Message) -> _Collected:
        place, command = self._place, self._command
        script = os.path.join(place.home, *_SCRIPT)
        python = [place.stage.inside(command.interpreter), *command.flags, script]
        argv = [*place.stage.prefix, *_IN_FOLDER, request["cwd"], *python]
        opening = {
            "program": place.stage.inside(command.program),
            "module": command.module,
            "arguments": [place.stage.inside(word) for word in command.arguments],
        }
        try:
            server = Server(argv, env=request["env"], keep=(place.fence,))
            answer = server.ask({"open": opening}, patience=self._collecting)
        except ServerDied as died:
            raise RefusedWarm(f"the warm server ended while it collected. {died.hint}") from died
        if "refused" in answer:
            server.stop()
            raise RefusedWarm(answer["refused"]["what"])
        self._started += 1
        return _Collected(
            server=server,
            name=f"hash-seed-{order.hash_seed}-server-{self._started}",
            tests=int(answer["ready"]["tests"]),
            notes=tuple(answer["ready"]["notes"]),
        )


class RefusedWarm(Exception):
    """This command cannot be served warm; the reason is for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Collected(msgspec.Struct, frozen=True, kw_only=True):
    """A server that has collected its tests."""

    server: Server
    name: str
    tests: int
    notes: tuple[str, ...]


def _not_run(order: Order, slug: str, what: str, hint: str) -> Recording:
    return Recording(obstacle=Obstacle(slug=slug, what=what, hint=hint), seed=order.seed)

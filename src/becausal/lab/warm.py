"""Warm trials: servers that have collected the tests, one per hash seed, forked for each trial."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from becausal.domain.recording import Obstacle, Recording
from becausal.lab.recognise import PytestCommand
from becausal.lab.recording import Ground, decode
from becausal.lab.server import Server, ServerDied
from becausal.ports.lab import Order, Warming

_SCRIPT = ("becausal_payload", "warm.py")
# The interpreter must start in the command's folder: relative entries of PYTHONPATH mean that one.
_IN_FOLDER = ("/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "becausal")


class WarmPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the servers of one command on one source share; paths as trials name them."""

    command: PytestCommand
    prefix: tuple[str, ...] = ()
    """Of the stage, before the argv of a server."""
    payload_home: str
    cwd: str
    environment: Mapping[str, str]
    throwaway: tuple[str, ...] = ()
    throwaway_too: tuple[str, ...] = ()
    ground: Ground
    isolation: tuple[str, ...] = ()
    """What the stage adds to what the keeper says."""
    notes: tuple[str, ...] = ()
    collecting: float = 300.0
    """Seconds that import and collection may take."""


class WarmRunner:
    """Runs trials of one command warm. It belongs to one worker: one trial at a time."""

    def __init__(self, place: WarmPlace, *, servers: int = 3) -> None:
        self._place = place
        self._most = servers
        self._servers: dict[int, _Collected] = {}
        self._started = 0

    def warming(self, hash_seed: int = 0) -> Warming:
        """Whether trials can run warm; a server is started to know."""
        try:
            collected = self._collected(hash_seed)
        except RefusedWarm as refused:
            return Warming(possible=False, reason=refused.reason)
        return Warming(possible=True, tests=collected.tests)

    def run(
        self, order: Order, *, stdin: str | None = None, tests: Sequence[str] | None = None
    ) -> Recording:
        """One trial; `tests` names those to run and their order, all collected ones otherwise."""
        try:
            return self._run(order, stdin, tests)
        except RefusedWarm as refused:
            obstacle = Obstacle(slug="warm-refused", what=refused.reason, hint="run it cold")
            return Recording(obstacle=obstacle, seed=order.seed)
        except ServerDied as died:
            self._servers.pop(order.hash_seed, None)
            obstacle = Obstacle(slug=died.slug, what=died.what, hint=died.hint)
            return Recording(obstacle=obstacle, seed=order.seed)

    def cancel(self, ticket: int) -> None:
        """End the trial with this ticket, from any thread."""
        for collected in tuple(self._servers.values()):
            collected.server.cancel(ticket)

    def close(self) -> None:
        while self._servers:
            self._servers.popitem()[1].server.stop()

    def __enter__(self) -> WarmRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, order: Order, stdin: str | None, tests: Sequence[str] | None) -> Recording:
        for _ in range(2):
            collected = self._collected(order.hash_seed)
            answer = collected.run(self._message(order, stdin, tests))
            if "stale" not in answer:
                break
            # Its files were changed under it: what it has imported is no longer what is there.
            self._servers.pop(order.hash_seed).server.stop()
        if "stale" in answer:
            what = f"files change while they are tested: {', '.join(answer['stale'][:3])}"
            return Recording(obstacle=Obstacle(slug="source-changes", what=what), seed=order.seed)
        if "unknown" in answer:
            what = f"not collected: {', '.join(answer['unknown'][:3])}"
            return Recording(obstacle=Obstacle(slug="test-not-found", what=what), seed=order.seed)
        recording = decode(answer["ran"], self._place.ground, pytest=True)
        return msgspec.structs.replace(
            recording,
            seed=order.seed,
            server=collected.name,
            isolation=(*self._place.isolation, *recording.isolation),
            notes=(*self._place.notes, *collected.notes),
        )

    def _message(
        self, order: Order, stdin: str | None, tests: Sequence[str] | None
    ) -> dict[str, Any]:
        limits = order.condition.limits
        return {
            "ticket": order.ticket,
            "cwd": self._place.cwd,
            "env": self._environment(order.hash_seed),
            "stdin": stdin,
            "seed": order.seed,
            "limits": {"seconds": limits.seconds, "memory": limits.memory},
            "overlay": list(self._place.throwaway),
            "overlay_too": list(self._place.throwaway_too),
            "lines": order.condition.lines,
            "tests": None if tests is None else list(tests),
        }

    def _environment(self, hash_seed: int) -> dict[str, str]:
        return {**self._place.environment, "PYTHONHASHSEED": str(hash_seed)}

    def _collected(self, hash_seed: int) -> _Collected:
        """The server of this hash seed; the one used longest ago makes room for a new one."""
        known = self._servers.pop(hash_seed, None)
        if known is None:
            while len(self._servers) >= self._most:
                self._servers.pop(next(iter(self._servers))).server.stop()
            self._started += 1
            known = self._start(hash_seed)
        self._servers[hash_seed] = known
        return known

    def _start(self, hash_seed: int) -> _Collected:
        place, command = self._place, self._place.command
        script = os.path.join(place.payload_home, *_SCRIPT)
        argv = [*place.prefix, *_IN_FOLDER, place.cwd, command.interpreter, *command.flags, script]
        try:
            server = Server(argv, env=self._environment(hash_seed))
            answer = server.ask(
                {
                    "open": {
                        "program": command.program,
                        "module": command.module,
                        "arguments": list(command.arguments),
                        "roots": [
                            root for root in (place.ground.top, place.ground.original) if root
                        ],
                    }
                },
                patience=place.collecting,
            )
        except ServerDied as died:
            raise RefusedWarm(f"the warm server ended while it collected: {died.hint}") from died
        refused = answer.get("refused")
        if refused is not None:
            server.stop()
            raise RefusedWarm(refused["what"])
        ready = answer["ready"]
        return _Collected(
            server=server,
            name=f"warm-{Path(place.cwd).name}-{hash_seed}-{self._started}",
            tests=int(ready["tests"]),
            notes=tuple(ready["notes"]),
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

    def run(self, message: dict[str, Any]) -> dict[str, Any]:
        limit = message["limits"]["seconds"]
        return self.server.ask({"run": message}, patience=limit + 30.0 if limit else None)

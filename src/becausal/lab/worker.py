"""A worker of the local lab: one workspace, and the servers that run trials on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from becausal.domain.condition import Command, Condition, Source
from becausal.domain.identity import content_id
from becausal.domain.recording import Recording
from becausal.lab.cold import ColdRunner
from becausal.lab.pool import Pool
from becausal.lab.recognise import OtherCommand, recognise
from becausal.lab.stage import Bubblewrap
from becausal.lab.warm import WarmRunner
from becausal.lab.workspace import Lease
from becausal.ports.lab import Order, Warming

SERVERS = 4
"""Warm servers that one worker keeps: each holds the imports of the program under study."""
SHOWN_CHANGES = 3


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What a workspace is set up for; another scene means other servers."""

    source: Source
    command: Command
    network: bool


class LocalWorker:
    """Runs one order at a time, cold or warm, in the workspace it leased."""

    def __init__(
        self,
        pool: Pool,
        *,
        cache: Path,
        read: Callable[[str], bytes],
        environment: Mapping[str, str],
        bubblewrap: Bubblewrap,
    ) -> None:
        self._pool = pool
        self._cache = cache
        self._read = read
        self._environment = environment
        self._bubblewrap = bubblewrap
        self._lease: Lease | None = None
        self._scene: Scene | None = None
        self._notes: tuple[str, ...] = ()
        self._switched = False
        self._cold: ColdRunner | None = None
        self._warm: WarmRunner | None = None

    def run(self, order: Order) -> Recording:
        """Run one order; what it changed in a shared workspace is put back."""
        condition = order.condition
        cold = self.cold(condition)
        given = None if condition.input is None else self._read(condition.input)
        if condition.warmth == "cold":
            recording = cold.run(order, input=given)
        else:
            recording = self._warm_runner(condition).run(order, input=given)
        return self._tidied(recording)

    def warming(self, order: Order) -> Warming:
        """Whether such orders can run warm; the server that shows it stays for them."""
        self.cold(order.condition)
        return self._warm_runner(order.condition).warming(order)

    def recognised(self, condition: Condition) -> str:
        """Why this command is no pytest run; empty when it is one."""
        cold = self.cold(condition)
        found = recognise(condition.command.argv, cold.person, cold.cwd)
        return found.reason if isinstance(found, OtherCommand) else ""

    def cancel(self) -> None:
        """End the trial that runs now, from any thread."""
        cold, warm = self._cold, self._warm
        if cold is not None:
            cold.cancel()
        if warm is not None:
            warm.cancel()

    def close(self) -> None:
        """End all servers and give the workspace back."""
        self._leave()
        lease, self._lease = self._lease, None
        if lease is not None:
            if self._switched:
                # A warm server writes while it collects, where no trial's overlay is.
                lease.restore()
            lease.close()

    def cold(self, condition: Condition) -> ColdRunner:
        """The place set up for a condition."""
        scene = Scene(source=condition.source, command=condition.command, network=condition.network)
        if self._cold is not None and scene == self._scene:
            return self._cold
        self._leave()
        if self._lease is None:
            self._lease = self._pool.lease()
        self._notes = self._lease.switch(condition.source).notes
        self._switched = True
        self._cold = ColdRunner(
            self._lease,
            condition.command,
            source=content_id(condition.source),
            cache=self._cache,
            environment=self._environment,
            network=condition.network,
            bubblewrap=self._bubblewrap,
        )
        self._scene = scene
        return self._cold

    def _warm_runner(self, condition: Condition) -> WarmRunner:
        if self._warm is None:
            cold = self.cold(condition)
            found = recognise(condition.command.argv, cold.person, cold.cwd)
            assert not isinstance(found, OtherCommand), "asked before: warming says why not"
            self._warm = WarmRunner(cold, found, servers=SERVERS)
        return self._warm

    def _tidied(self, recording: Recording) -> Recording:
        """Put back what a trial changed where no overlay caught it, and say so."""
        notes = (*self._notes, *recording.notes)
        if "files-shared" in recording.isolation and self._lease is not None:
            changed = self._lease.restore()
            if changed:
                shown = ", ".join(changed[:SHOWN_CHANGES])
                more = (
                    f" and {len(changed) - SHOWN_CHANGES} more" if changed[SHOWN_CHANGES:] else ""
                )
                notes = (*notes, f"the trial changed files, put back after it: {shown}{more}")
        return msgspec.structs.replace(recording, notes=notes)

    def _leave(self) -> None:
        """End the servers of a scene."""
        warm, self._warm = self._warm, None
        cold, self._cold = self._cold, None
        self._scene = None
        if warm is not None:
            warm.close()
        if cold is not None:
            cold.close()

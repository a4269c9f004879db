"""The local lab: this machine runs the conditions, on as many workers as it has processors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

import psutil

from becausal.domain.condition import Condition
from becausal.domain.observation import Surroundings
from becausal.domain.recording import Recording
from becausal.lab.crew import Crew
from becausal.lab.folder import PlainFolder
from becausal.lab.pool import Pool
from becausal.lab.repository import GitRepository
from becausal.lab.stage import Bubblewrap, find_bubblewrap
from becausal.lab.surroundings import collect_surroundings
from becausal.lab.worker import LocalWorker
from becausal.ports.lab import Lab, Order, Warming
from becausal.ports.store import Artifacts


class LocalLab(Lab):
    """Workspaces of one repository, and workers that run trials in them."""

    def __init__(
        self,
        repository: GitRepository | PlainFolder,
        cache: Path,
        *,
        artifacts: Artifacts,
        width: int | None = None,
        environment: Mapping[str, str] | None = None,
        bubblewrap: Bubblewrap | None = None,
    ) -> None:
        self._repository = repository
        self._environment = dict(os.environ if environment is None else environment)
        found = find_bubblewrap() if bubblewrap is None else bubblewrap
        sweep_scratch(cache)
        pool = Pool(repository, cache, bound=bool(found.path))
        self._workers = [
            LocalWorker(
                pool,
                cache=cache,
                read=artifacts.get,
                environment=self._environment,
                bubblewrap=found,
            )
            for _ in range(width or processors())
        ]
        self._crew = Crew(self._workers)

    @property
    def width(self) -> int:
        return self._crew.width

    def warming(self, condition: Condition) -> Warming:
        """Whether a condition can run warm; the first worker keeps the server that shows it."""
        if self._repository.kind == "folder":
            return Warming(possible=False, reason="no repository: trials run in a copy")
        first = self._workers[0]
        reason = first.recognised(condition)
        if reason:
            return Warming(possible=False, reason=reason)
        hash_seed = int(dict(condition.environment).get("PYTHONHASHSEED") or 0)
        order = Order(ticket=0, condition=condition, seed=0, hash_seed=hash_seed)
        answer = first.warming(order)
        if answer.possible:
            self._crew.seat(0, order)
        return answer

    def run(self, orders: Sequence[Order]) -> Generator[tuple[Order, Recording], None, None]:
        yield from self._crew.run(orders)

    def surroundings(self, condition: Condition) -> Surroundings:
        cold = self._workers[0].cold(condition)
        return collect_surroundings(
            cold.person, cold.interpreter, declared=dict(condition.environment)
        )

    def close(self) -> None:
        self._crew.close()


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sweep_scratch(cache: Path) -> None:
    """Remove what killed commands left behind; each folder names the process that made it."""
    for folder in (cache / "scratch").glob("*-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)

"""A small project that is run warm and cold, on one place, with the real servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from becausal.domain.condition import Command, Condition, Limits, Source
from becausal.domain.recording import Recording
from becausal.lab.cold import ColdRunner
from becausal.lab.recognise import PytestCommand, recognise
from becausal.lab.stage import Bubblewrap, find_bubblewrap
from becausal.lab.warm import WarmRunner
from becausal.ports.lab import Order, Warming

INI = "[pytest]\naddopts = -p no:cacheprovider\nasyncio_mode = auto\n"
NO_SANDBOX = Bubblewrap(reason="not asked for")


class Lease:
    """A folder that nobody else has."""

    def __init__(self, folder: Path, top: Path) -> None:
        self.path, self.top = str(folder), str(top)
        self.links: tuple[tuple[str, str], ...] = ()
        self.objects: tuple[tuple[str, str], ...] = ()
        self.fence = os.open(folder, os.O_RDONLY)


class Served:
    """One command on the project, warm."""

    def __init__(self, project: Project, warm: WarmRunner, command: Command) -> None:
        self._project, self._warm, self._command = project, warm, command

    def run(
        self,
        *,
        seed: int = 1,
        hash_seed: int = 0,
        seconds: float = 60.0,
        lines: bool = False,
        input: bytes | None = None,
        tests: list[str] | None = None,
    ) -> Recording:
        order = self._project.order(self._command, seed, hash_seed, seconds, lines)
        return self._warm.run(order, input=input, tests=tests)

    def warming(self) -> Warming:
        return self._warm.warming(self._project.order(self._command))


class Project:
    """A folder with tests; `python` runs them."""

    def __init__(
        self, folder: Path, *, python: str = sys.executable, bubblewrap: Bubblewrap = NO_SANDBOX
    ) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.top = self.folder
        self.flags: tuple[str, ...] = ()
        """Of the interpreter."""
        self._base, self._python, self._bubblewrap = folder, python, bubblewrap
        self._runners: list[WarmRunner | ColdRunner] = []
        self._tickets = 0

    def write(self, files: Mapping[str, str]) -> Project:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def warm(self, *arguments: str, servers: int = 3, **more: str) -> Served:
        command = self._command(arguments)
        found = recognise(command.argv, os.environ, self.folder)
        assert isinstance(found, PytestCommand)
        runner = WarmRunner(self._place(command, more), found, servers=servers)
        self._runners.append(runner)
        return Served(self, runner, command)

    def cold(
        self,
        *arguments: str,
        seed: int = 1,
        lines: bool = False,
        input: bytes | None = None,
        **more: str,
    ) -> Recording:
        command = self._command(arguments)
        order = self.order(command, seed, 0, 120.0, lines)
        return self._place(command, more).run(order, input=input)

    def order(
        self,
        command: Command,
        seed: int = 1,
        hash_seed: int = 0,
        seconds: float = 60.0,
        lines: bool = False,
    ) -> Order:
        self._tickets += 1
        limits = Limits(seconds=seconds)
        condition = Condition(source=Source(), command=command, limits=limits, lines=lines)
        return Order(ticket=self._tickets, condition=condition, seed=seed, hash_seed=hash_seed)

    def close(self) -> None:
        for runner in reversed(self._runners):
            runner.close()

    def _command(self, arguments: tuple[str, ...]) -> Command:
        return Command(argv=(self._python, *self.flags, "-m", "pytest", *arguments))

    def _place(self, command: Command, more: Mapping[str, str]) -> ColdRunner:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        temp = self._base / "temp"
        temp.mkdir(exist_ok=True)
        # Sources change here within a second and keep their size: bytecode would be stale.
        plain = {"PYTHONDONTWRITEBYTECODE": "1"}
        if not self._bubblewrap.path:
            plain["TMPDIR"] = str(temp)
        place = ColdRunner(
            Lease(self.folder, self.top),
            command,
            source="source",
            cache=self._base / "cache",
            environment={**kept, **plain, **more},
            bubblewrap=self._bubblewrap,
        )
        self._runners.append(place)
        return place


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path).write({"pytest.ini": INI})
    yield made
    made.close()


@pytest.fixture
def boxed(tmp_path: Path) -> Iterator[Project]:
    """The project in a sandbox, its workspace shown at the place of the original."""
    found = find_bubblewrap()
    if not found.path:
        pytest.skip(found.reason)
    made = Project(tmp_path, bubblewrap=found)
    made.top = tmp_path / "original"
    made.top.mkdir()
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_project(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Project]]:
    """Projects for a whole module of tests."""
    made: list[Project] = []

    def make(files: Mapping[str, str], python: str = sys.executable) -> Project:
        made.append(Project(tmp_path_factory.mktemp("shared"), python=python).write(files))
        return made[-1]

    yield make
    for one in made:
        one.close()

"""A small project that is run warm and cold, with the real servers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from becausal.domain.condition import Command, Condition, Limits, Source
from becausal.domain.recording import Recording
from becausal.lab.payload_home import payload_home
from becausal.lab.recognise import PytestCommand
from becausal.lab.recording import Ground, decode
from becausal.lab.server import Server
from becausal.lab.warm import WarmPlace, WarmRunner
from becausal.ports.lab import Order

INI = "[pytest]\naddopts = -p no:cacheprovider\nasyncio_mode = auto\n"


class Project:
    """A folder with tests; `python` runs them."""

    def __init__(self, folder: Path, home: Path, python: str = sys.executable) -> None:
        self.folder, self._home, self._python = folder, home, python
        self._runners: list[WarmRunner] = []
        self._tickets = 0

    def write(self, files: Mapping[str, str]) -> Project:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return self

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        plain = {
            "PYTHONPATH": str(self._home),
            "TMPDIR": str(self._temp()),
            "PWD": str(self.folder),
        }
        plain["BECAUSAL_REPORT"] = str(self.folder.parent / "reports")
        plain["BECAUSAL_ROOTS"] = str(self.folder)
        plain["PYTHONDONTWRITEBYTECODE"] = "1"
        plain["PYTEST_PLUGINS"] = "becausal_payload.report_plugin"
        return {**kept, **plain, **more}

    def runner(self, *arguments: str, servers: int = 3, **more: str) -> WarmRunner:
        command = PytestCommand(
            interpreter=self._python, program="", module=True, arguments=arguments
        )
        place = WarmPlace(
            command=command,
            payload_home=str(self._home),
            cwd=str(self.folder),
            environment=self.environment(**more),
            throwaway=(str(self.folder),),
            ground=Ground(top=str(self.folder)),
        )
        self._runners.append(WarmRunner(place, servers=servers))
        return self._runners[-1]

    def order(
        self, seed: int = 1, hash_seed: int = 0, seconds: float = 60.0, lines: bool = False
    ) -> Order:
        self._tickets += 1
        condition = Condition(
            source=Source(),
            command=Command(argv=("pytest",)),
            warmth="warm",
            limits=Limits(seconds=seconds),
            lines=lines,
        )
        return Order(ticket=self._tickets, condition=condition, seed=seed, hash_seed=hash_seed)

    def cold(self, *arguments: str, **more: str) -> Recording:
        spawner = self._home / "becausal_payload" / "spawner.py"
        order: dict[str, Any] = {
            "ticket": 0,
            "argv": [self._python, "-m", "pytest", *arguments],
            "cwd": str(self.folder),
            "env": self.environment(PYTHONHASHSEED="0", **more),
            "limits": {"seconds": 120.0, "memory": None},
            "overlay": [str(self.folder)],
        }
        with Server([sys.executable, "-I", "-S", str(spawner)], env=order["env"]) as server:
            return decode(server.run(order), Ground(top=str(self.folder)), pytest=True)

    def close(self) -> None:
        for runner in self._runners:
            runner.close()

    def _temp(self) -> Path:
        temp = self.folder.parent / "temp"
        temp.mkdir(exist_ok=True)
        return temp


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return payload_home(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "project"
    folder.mkdir()
    made = Project(folder, home).write({"pytest.ini": INI})
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_project(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Mapping[str, str]], Project]]:
    """One project for a whole module of tests."""
    made: list[Project] = []

    def make(files: Mapping[str, str]) -> Project:
        folder = tmp_path_factory.mktemp("shared") / "project"
        folder.mkdir()
        made.append(Project(folder, home).write(files))
        return made[-1]

    yield make
    for one in made:
        one.close()

"""Every laboratory passes the same suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from becausal.domain.condition import Command, Condition, Limits, Source
from becausal.lab.local import LocalLab
from becausal.lab.process import run_tool
from becausal.lab.repository import open_repository
from becausal.lab.stage import Bubblewrap
from becausal.ports.lab import Lab
from becausal.testing.lab_conformance import Behaviour, LabFacts
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import SimulatedLab, Truth

TESTS = """
import time

def test_passes():
    pass

def test_fails():
    assert 1 + 1 == 3

def test_hangs():
    time.sleep(600)
"""


class TestSimulatedLab(LabFacts):
    TRUTHS = (
        (("passes",), Truth()),
        (("fails",), Truth(failing=1.0)),
        (("hangs",), Truth(timing_out=1.0)),
    )

    def make_lab(self) -> Lab:
        return SimulatedLab(dict(self.TRUTHS))

    def condition(self, lab: Lab, behaviour: Behaviour) -> Condition:
        return Condition(source=Source(), command=Command(argv=(behaviour,)))


class OnThisMachine(LabFacts):
    """The local lab, on a repository of three tests."""

    bubblewrap: Bubblewrap | None = None
    source: Source

    @pytest.fixture(autouse=True)
    def _folders(self, tmp_path: Path) -> None:
        self.top, self.cache = tmp_path / "project", tmp_path / "cache"
        self.top.mkdir()
        (self.top / "test_three.py").write_text(TESTS)
        run_tool(["git", "init", "--quiet"], cwd=self.top, check=True)

    def make_lab(self) -> Lab:
        repository = open_repository(self.top, self.cache)
        self.source = repository.snapshot().source
        return LocalLab(
            repository, self.cache, artifacts=MemoryStore(), width=2, bubblewrap=self.bubblewrap
        )

    def condition(self, lab: Lab, behaviour: Behaviour) -> Condition:
        test = f"test_three.py::test_{behaviour}"
        command = Command(argv=(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", test))
        limits = Limits(seconds=3.0 if behaviour == "hangs" else 120.0)
        return Condition(source=self.source, command=command, limits=limits)


class TestLocalLab(OnThisMachine):
    pass


class TestLocalLabWithoutSandbox(OnThisMachine):
    bubblewrap = Bubblewrap(reason="left out by the test")

"""Stages, leased workspaces and repositories for trials of whole processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from becausal.domain.condition import Command, Condition, Limits, Source
from becausal.lab.cold import ColdRunner
from becausal.lab.stage import Bubblewrap, find_bubblewrap
from becausal.ports.lab import Order


class FakeLease(msgspec.Struct, kw_only=True):
    """A workspace that nobody else wants; the pool has tests of its own."""

    path: str
    top: str
    fence: int
    links: tuple[tuple[str, str], ...] = ()
    objects: tuple[tuple[str, str], ...] = ()


class Ground:
    """A person's tree, a workspace with the same files, and cold runners on it."""

    def __init__(self, folder: Path, bubblewrap: Bubblewrap, without: tuple[str, ...]) -> None:
        self.top = folder / "person" / "tree"
        self.workspace = folder / "cache" / "pool" / "0"
        self.cache = folder / "cache"
        self.top.mkdir(parents=True)
        self.workspace.mkdir(parents=True)
        self.bubblewrap = bubblewrap
        self.without = without
        self.links: list[str] = []
        self.lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
        self.runners: list[ColdRunner] = []
        self.environment = dict(os.environ)
        self._ticket = 0

    @property
    def sandboxed(self) -> bool:
        return bool(self.bubblewrap.path)

    def write(self, name: str, person: str, workspace: str | None = None) -> None:
        for folder, text in ((self.top, person), (self.workspace, workspace or person)):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    def link(self, name: str) -> None:
        """Use a path of the person's in place, as the pool prepares it."""
        self.links.append(name)
        if self.sandboxed:
            (self.workspace / name).mkdir(parents=True)
        else:
            (self.workspace / name).symlink_to(self.top / name)

    def runner(self, *argv: str, source: str = "s1", network: bool = True) -> ColdRunner:
        pairs = tuple((str(self.workspace / link), str(self.top / link)) for link in self.links)
        lease = FakeLease(path=str(self.workspace), top=str(self.top), fence=self.lock, links=pairs)
        runner = ColdRunner(
            lease,
            Command(argv=argv),
            source=source,
            cache=self.cache,
            environment=self.environment,
            network=network,
            bubblewrap=self.bubblewrap,
            without=self.without,
        )
        self.runners.append(runner)
        return runner

    def order(self, *argv: str, seconds: float = 60.0, **changes: str | None) -> Order:
        self._ticket += 1
        condition = Condition(
            source=Source(),
            command=Command(argv=argv),
            environment=tuple(sorted(changes.items())),
            limits=Limits(seconds=seconds),
        )
        return Order(ticket=self._ticket, condition=condition, seed=11, hash_seed=7)

    def close(self) -> None:
        for runner in self.runners:
            runner.close()
        os.close(self.lock)


def _bubblewrap() -> Bubblewrap:
    found = find_bubblewrap()
    if not found.path:
        if os.environ.get("BECAUSAL_REQUIRE_ALL") == "1":
            pytest.fail(found.reason)
        pytest.skip(found.reason)
    return found


@pytest.fixture(params=["sandbox", "plain", "plain-without-namespaces"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ground]:
    bubblewrap = Bubblewrap(reason="switched off")
    without: tuple[str, ...] = ()
    if request.param == "sandbox":
        bubblewrap = _bubblewrap()
    elif request.param == "plain-without-namespaces":
        without = ("pid-namespace", "overlay")
    made = Ground(tmp_path, bubblewrap, without)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def venv(tmp_path: Path) -> Callable[[Path], Path]:
    """Makes a virtual environment without pip; answers its site-packages."""

    def make(folder: Path) -> Path:
        done = subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(folder)], capture_output=True
        )
        assert done.returncode == 0, done.stderr
        return next(folder.glob("lib/python*/site-packages"))

    return make


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], bool]:
    """Whether a condition comes true in time."""

    def wait(condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + 20
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    return wait

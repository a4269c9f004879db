"""Servers as the lab starts them, and a look at which processes are alive."""

from __future__ import annotations

import base64
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import becausal_payload
from becausal.lab.server import Server

SPAWNER = Path(becausal_payload.__file__).with_name("spawner.py")
EVERY_WAY = {
    "first-process": (),
    "cradle-in-pid-namespace": ("direct",),
    "overlay-only": ("pid-namespace",),
    "no-namespaces": ("pid-namespace", "overlay"),
}


def poll(condition: Callable[[], bool], ceiling: float = 15.0) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + ceiling
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def alive_with(marker: str) -> list[int]:
    """Living processes that have the marker in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path("/proc", name, "environ").read_bytes()
            state = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in environment and state != b"Z":
            found.append(int(name))
    return found


class Bench:
    """One server, and everything its trials start carries a marker."""

    def __init__(self, without: Sequence[str], folder: Path) -> None:
        self.marker = f"H5MARK_{secrets.token_hex(8)}"
        self.without = tuple(without)
        self.folder = folder
        env = {"PATH": os.environ["PATH"], "BECAUSAL_WITHOUT": " ".join(without)}
        self.lock = os.open(folder.parent / "lock", os.O_CREAT | os.O_RDWR)
        argv = [sys.executable, "-I", "-S", str(SPAWNER)]
        self.server = Server(argv, env=env, keep=(self.lock,))
        self._ticket = 0

    def order(self, *argv: str, **changes: Any) -> dict[str, Any]:
        self._ticket += 1
        env = {"PATH": os.environ["PATH"], "MARK": self.marker, **changes.pop("env", {})}
        order = {
            "ticket": self._ticket,
            "argv": list(argv),
            "cwd": str(self.folder),
            "env": env,
            "limits": {"seconds": 60.0},
            "overlay": [str(self.folder)],
        }
        return {**order, **changes}

    def run(self, *argv: str, **changes: Any) -> dict[str, Any]:
        return self.server.run(self.order(*argv, **changes))

    def sh(self, script: str, **changes: Any) -> dict[str, Any]:
        return self.run("sh", "-c", script, **changes)

    def left(self) -> list[int]:
        return alive_with(self.marker)

    def nothing_left(self) -> bool:
        return poll(lambda: not self.left())


def text(result: dict[str, Any], stream: str = "stdout") -> bytes:
    kept = result[stream]
    return base64.b64decode(kept["head_b64"]) + base64.b64decode(kept["tail_b64"])


@pytest.fixture(params=list(EVERY_WAY))
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """A server for each way of keeping trials apart; where all are due, a missing one fails."""
    folder = tmp_path / "work"
    folder.mkdir()
    made = Bench(EVERY_WAY[request.param], folder)
    try:
        means = made.server.hello["ready"]["means"]
        missing = [
            name
            for name in ("pid-namespace", "overlay")
            if name not in made.without and not means[name]
        ]
        if missing:
            said = f"no {missing}: {means['reasons']}"
            if os.environ.get("BECAUSAL_REQUIRE_ALL") == "1":
                pytest.fail(said)
            pytest.skip(said)
        yield made
    finally:
        made.server.stop()
        os.close(made.lock)


@pytest.fixture
def out() -> Callable[..., bytes]:
    return text


@pytest.fixture
def until() -> Callable[..., bool]:
    return poll

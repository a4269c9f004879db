"""A bench whose world is made up: the truth of the lab is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from becausal.casework.bench import Bench
from becausal.casework.request import Request
from becausal.domain.criterion import Criterion
from becausal.testing.fakes import FakeClock, FakeRepository, RememberedProgress
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import SimulatedLab, Truth

MakeBench = Callable[..., Bench]


@pytest.fixture(scope="session")
def make_bench() -> MakeBench:
    return bench_with


def bench_with(
    truth: Truth,
    *,
    store: MemoryStore | None = None,
    seed: int = 0,
    width: int = 2,
    entropy: int = 1,
) -> Bench:
    return Bench(
        store=store or MemoryStore(),
        lab=SimulatedLab(truth, seed=seed, width=width),
        repository=FakeRepository(),
        clock=FakeClock(),
        progress=RememberedProgress(),
        tool_version="test",
        entropy=entropy,
    )


@pytest.fixture
def request_() -> Request:
    return Request(argv=("pytest", "tests/test_simulated.py"), folder="/fake/project")


@pytest.fixture
def hang_request() -> Request:
    return Request(
        argv=("pytest", "tests/test_simulated.py"),
        folder="/fake/project",
        criterion=Criterion(fail_if="hang"),
    )

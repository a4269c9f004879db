"""Resume is replay: a run that dies anywhere goes on, repeats nothing and ends the same."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from becausal.casework.bench import Bench
from becausal.casework.reproduce import Reproduced, reproduce
from becausal.casework.request import Request
from becausal.domain.condition import Condition
from becausal.domain.observation import Surroundings
from becausal.domain.recording import Recording
from becausal.ports.lab import Lab, Order, Warming
from becausal.testing.fakes import FakeClock, FakeRepository, RememberedProgress
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import SimulatedLab, Truth

REQUEST = Request(argv=("pytest", "tests/test_simulated.py"), folder="/fake/project")


class Killed(BaseException):
    """The process is gone."""


class MortalLab(Lab):
    """A lab whose process dies after so many recordings."""

    def __init__(self, lab: SimulatedLab, lives: int) -> None:
        self._lab = lab
        self._lives = lives

    @property
    def width(self) -> int:
        return self._lab.width

    def warming(self, condition: Condition) -> Warming:
        return self._lab.warming(condition)

    def run(self, orders: Sequence[Order]) -> Generator[tuple[Order, Recording], None, None]:
        for answer in self._lab.run(orders):
            if self._lives == 0:
                raise Killed
            self._lives -= 1
            yield answer

    def surroundings(self, condition: Condition) -> Surroundings:
        return self._lab.surroundings(condition)

    def close(self) -> None:
        self._lab.close()


class MortalStore(MemoryStore):
    """A store whose process dies at its so-manyth write; what was written before stays."""

    writes_left = 10**9

    def record(self, *args: object, **more: object) -> None:  # type: ignore[override]
        self._live()
        super().record(*args, **more)  # type: ignore[arg-type]

    def append(self, *args: object, **more: object) -> None:  # type: ignore[override]
        self._live()
        super().append(*args, **more)  # type: ignore[arg-type]

    def _live(self) -> None:
        if self.writes_left == 0:
            raise Killed
        self.writes_left -= 1


def study(store: MemoryStore, lab: Lab, request: Request = REQUEST) -> Reproduced:
    bench = Bench(
        store=store,
        lab=lab,
        repository=FakeRepository(),
        clock=FakeClock(),
        progress=RememberedProgress(),
        tool_version="test",
        entropy=7,
    )
    return reproduce(bench, request)


TRUTHS = st.sampled_from(
    [
        Truth(failing=1.0),
        Truth(failing=0.3),
        Truth(failing=0.0),
        Truth(failing=0.2, otherwise=0.2, could_not_run=0.2),
        Truth(hash_seeds=0.5),
        Truth(failing=0.5, failing_warm=0.0),
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    truth=TRUTHS,
    seed=st.integers(0, 5),
    deaths=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    width=st.integers(1, 4),
)
@example(
    # Killed when a later trial had failed while an earlier one, which names the failure, still ran.
    truth=Truth(failing=0.2, otherwise=0.2, could_not_run=0.2),
    seed=1,
    deaths=[2],
    width=1,
)
def test_killed_while_running_it_goes_on_and_ends_the_same(
    truth: Truth, seed: int, deaths: list[int], width: int
) -> None:
    whole = study(MemoryStore(), SimulatedLab(truth, seed=seed, width=width))
    store = MemoryStore()
    for lives in deaths:
        try:
            study(store, MortalLab(SimulatedLab(truth, seed=seed, width=width), lives))
        except Killed:
            continue
        return  # it ended before the kill: nothing was interrupted
    done = study(store, SimulatedLab(truth, seed=seed, width=width))
    assert done.dossier.case == whole.dossier.case == "B-1"
    assert [_fact(t) for t in done.conducted.trials] == [_fact(t) for t in whole.conducted.trials]
    assert done.finding.verdict == whole.finding.verdict
    assert done.finding.strata == whole.finding.strata
    assert len({t.key for t in store.trials("B-1")}) == len(store.trials("B-1"))


@settings(max_examples=60, deadline=None)
@given(truth=TRUTHS, seed=st.integers(0, 3), writes=st.integers(1, 25))
def test_killed_at_any_write_it_goes_on_and_ends_the_same(
    truth: Truth, seed: int, writes: int
) -> None:
    whole = study(MemoryStore(), SimulatedLab(truth, seed=seed))
    store = MortalStore()
    store.writes_left = writes
    try:
        study(store, SimulatedLab(truth, seed=seed))
    except Killed:
        store.writes_left = 10**9
        done = study(store, SimulatedLab(truth, seed=seed))
        assert done.finding.strata == whole.finding.strata
        assert done.dossier.symptom == whole.dossier.symptom
        assert len(store.cases()) == 1


def _fact(trial: object) -> tuple[object, ...]:
    """What must be the same; names of searches and seeds are the same by construction."""
    return (
        trial.key.step,  # type: ignore[attr-defined]
        trial.key.condition,  # type: ignore[attr-defined]
        trial.key.repeat,  # type: ignore[attr-defined]
        trial.outcome,  # type: ignore[attr-defined]
        trial.seed,  # type: ignore[attr-defined]
    )


def test_a_new_case_that_was_interrupted_is_gone_on_with() -> None:
    store, truth = MemoryStore(), Truth(failing=0.3)
    study(store, SimulatedLab(truth))
    anew = replace(REQUEST, new=True)
    with pytest.raises(Killed):
        study(store, MortalLab(SimulatedLab(truth), 5), anew)
    assert len(store.cases()) == 2
    done = study(store, SimulatedLab(truth), anew)
    assert done.dossier.case == "B-2"
    assert len(store.cases()) == 2

"""The chapter of reproduction, in a simulated lab of known truth."""

from __future__ import annotations

from typing import Any

import pytest

from becausal.casework.bench import Bench
from becausal.casework.dossier import dossier
from becausal.casework.reproduce import Reproduced
from becausal.casework.reproduce import reproduce as run_chapter
from becausal.casework.request import Request
from becausal.domain.errors import BecausalError, WrongUse
from becausal.domain.journal import SearchAbandoned
from becausal.domain.trial import Outcome
from becausal.testing.fakes import FakeClock
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import Truth


def reproduce(bench: Bench, request: Request, **more: Any) -> Reproduced:
    """The chapter as a command runs it: to the end, its answer handed over."""
    done = run_chapter(bench, request, **more)
    done.deliver(bench)
    return done


def test_a_failure_that_always_shows_is_consistent(make_bench: Any, request_: Request) -> None:
    bench = make_bench(Truth(failing=1.0))
    done = reproduce(bench, request_)
    assert done.finding.verdict == "consistent"
    assert done.dossier.status == "reproduced"
    assert done.finding.signature is not None
    assert done.finding.signature == done.dossier.symptom
    assert done.finding.signature.kind == "AssertionError"


def test_the_finding_rests_on_every_trial_that_was_run(make_bench: Any, request_: Request) -> None:
    bench = make_bench(Truth(failing=0.3))
    done = reproduce(bench, request_)
    (established,) = done.dossier.findings
    recorded = bench.store.trials(done.dossier.case)
    assert sorted(established.rests_on) == sorted(t.key for t in recorded)
    assert len(bench.lab.orders) == len(recorded)
    assert done.finding.verdict == "intermittent"


def test_exactly_the_runs_asked_for_are_made(make_bench: Any, request_: Request) -> None:
    for runs in (1, 3, 4, 7, 50):
        bench = make_bench(Truth(failing=0.5))
        done = reproduce(bench, request_, runs=runs)
        assert len(done.conducted.trials) == runs
        assert len(bench.lab.orders) == runs


def test_a_finished_command_starts_a_new_series_when_repeated(
    make_bench: Any, request_: Request
) -> None:
    store = MemoryStore()
    first = reproduce(make_bench(Truth(failing=1.0), store=store), request_, runs=5)
    again = reproduce(make_bench(Truth(failing=1.0), store=store, entropy=2), request_, runs=5)
    assert again.dossier.case == first.dossier.case
    assert again.conducted.search != first.conducted.search
    assert len(store.trials(first.dossier.case)) == 10


def test_an_answer_that_nobody_got_is_given_again(make_bench: Any, request_: Request) -> None:
    store = MemoryStore()
    first = run_chapter(make_bench(Truth(failing=0.3), store=store), request_)
    bench = make_bench(Truth(failing=0.3), store=store, entropy=2)
    again = run_chapter(bench, request_)
    assert again.finding == first.finding
    assert again.conducted.trials == first.conducted.trials
    assert not bench.lab.orders


def test_the_same_command_with_another_failure_is_another_case(
    make_bench: Any, request_: Request
) -> None:
    store = MemoryStore()
    first = reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    other = reproduce(make_bench(Truth(otherwise=1.0), store=store), request_)
    assert other.dossier.case != first.dossier.case
    assert other.finding.verdict == "consistent"
    assert other.finding.signature is not None
    assert other.finding.signature.kind == "ConnectionError"
    events = [entry.event for entry in store.journal(first.dossier.case)]
    assert any(isinstance(event, SearchAbandoned) for event in events)


def test_a_failure_seen_before_is_found_again_in_its_own_case(
    make_bench: Any, request_: Request
) -> None:
    store = MemoryStore()
    first = reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    reproduce(make_bench(Truth(otherwise=1.0), store=store), request_)
    third = reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    assert third.dossier.case == first.dossier.case
    assert len(store.cases()) == 2


def test_a_named_case_counts_another_failure_as_otherwise(
    make_bench: Any, request_: Request
) -> None:
    from dataclasses import replace

    store = MemoryStore()
    first = reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    asked = replace(request_, case=first.dossier.case)
    done = reproduce(make_bench(Truth(otherwise=1.0), store=store), asked)
    assert done.dossier.case == first.dossier.case
    assert {t.outcome for t in done.conducted.trials} == {Outcome.FAILED_OTHERWISE}
    assert done.finding.verdict == "could-not-run"


def test_new_opens_a_case_though_one_exists(make_bench: Any, request_: Request) -> None:
    from dataclasses import replace

    store = MemoryStore()
    reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    done = reproduce(make_bench(Truth(failing=1.0), store=store), replace(request_, new=True))
    assert done.dossier.case == "B-2"


def test_case_and_new_together_are_refused(make_bench: Any, request_: Request) -> None:
    from dataclasses import replace

    store = MemoryStore()
    reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    with pytest.raises(BecausalError) as refused:
        reproduce(
            make_bench(Truth(failing=1.0), store=store), replace(request_, new=True, case="B-1")
        )
    assert refused.value.slug == "case-and-new"


def test_trials_that_could_not_run_are_never_the_failure(
    make_bench: Any, request_: Request
) -> None:
    done = reproduce(make_bench(Truth(could_not_run=1.0)), request_)
    assert done.finding.verdict == "could-not-run"
    assert done.dossier.symptom is None
    assert done.finding.main.failures == 0


def test_a_time_out_is_the_failure_when_the_case_is_about_a_hang(
    make_bench: Any, request_: Request, hang_request: Request
) -> None:
    plain = reproduce(make_bench(Truth(timing_out=1.0)), request_)
    assert plain.finding.verdict == "could-not-run"
    hang = reproduce(make_bench(Truth(timing_out=1.0)), hang_request)
    assert hang.finding.verdict == "consistent"
    assert hang.dossier.symptom is not None
    assert hang.dossier.symptom.kind == "hang"


def test_time_that_is_over_ends_the_series_with_what_is_known(
    make_bench: Any, request_: Request
) -> None:
    bench: Bench = make_bench(Truth(failing=0.3))
    done = reproduce(bench, request_, seconds=0.02)
    assert done.finding.stopped == "seconds"
    assert 0 < len(done.conducted.trials) < 60


def test_the_observation_is_collected_once_and_holds_the_exact_error(
    make_bench: Any, request_: Request
) -> None:
    store = MemoryStore()
    reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    reproduce(make_bench(Truth(failing=1.0), store=store), request_)
    view = dossier(store, "B-1")
    assert view.observation is not None
    assert "AssertionError: got" in view.observation.error
    assert view.observation.steps[-1] == "pytest tests/test_simulated.py"
    kinds = [type(entry.event).__name__ for entry in store.journal("B-1")]
    assert kinds.count("Observed") == 1


def test_a_fixed_hash_seed_is_every_trials_hash_seed(make_bench: Any, request_: Request) -> None:
    from dataclasses import replace

    bench = make_bench(Truth(failing=0.4))
    fixed = replace(request_, environment=(("PYTHONHASHSEED", "7"),))
    done = reproduce(bench, fixed, runs=40)
    assert {t.hash_seed for t in done.conducted.trials} == {7}
    assert len({t.key for t in done.conducted.trials}) == 40


def test_words_that_cannot_be_written_down_are_refused_before_anything_runs(
    make_bench: Any,
) -> None:
    bench = make_bench(Truth(failing=1.0))
    with pytest.raises(WrongUse) as refused:
        reproduce(bench, Request(argv=("cat", "\udcff"), folder="/fake/project"))
    assert refused.value.slug == "words-unreadable"
    assert bench.store.cases() == ()


def test_without_a_time_the_first_trials_are_run_however_long_they_take(
    make_bench: Any, request_: Request
) -> None:
    """Five minutes are enough where nobody says otherwise, but fewer than three runs are not."""
    from dataclasses import replace

    slow = replace(make_bench(Truth(failing=0.3)), clock=FakeClock(tick=1000.0))
    done = reproduce(slow, request_)
    assert done.finding.stopped == "seconds"
    assert len(done.conducted.trials) == 6
    assert done.finding.main.trials >= 3


def test_runs_that_were_asked_for_are_made_however_long_they_take(
    make_bench: Any, request_: Request
) -> None:
    from dataclasses import replace

    slow = replace(make_bench(Truth(failing=0.3)), clock=FakeClock(tick=1000.0))
    assert len(reproduce(slow, request_, runs=20).conducted.trials) == 20

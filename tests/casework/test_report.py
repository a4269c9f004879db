"""What a case looks like to those who read it."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from becausal.casework.dossier import dossier
from becausal.casework.report import report, shown_failure
from becausal.casework.reproduce import reproduce
from becausal.casework.reproduction_map import clip, percent, reproduction_map
from becausal.casework.request import Request
from becausal.casework.transfer import Exported, export
from becausal.domain.identity import bytes_id
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import Truth


def drawn(make_bench: Any, request: Request, truth: Truth) -> str:
    bench = make_bench(truth)
    done = reproduce(bench, request)
    raised = shown_failure(bench.store, done.conducted.trials)
    return reproduction_map(done.dossier, done.finding, raised)


def test_the_map_fits_seventy_columns_and_twenty_lines(make_bench: Any, request_: Request) -> None:
    for truth in (
        Truth(failing=1.0),
        Truth(failing=0.2),
        Truth(),
        Truth(could_not_run=1.0),
        Truth(failing=0.6, failing_warm=0.0, timing_out=0.1, otherwise=0.1),
    ):
        lines = drawn(make_bench, request_, truth).splitlines()
        assert len(lines) <= 20
        assert max(map(len, lines)) <= 70


def test_the_map_names_the_failure_and_its_own_frames(make_bench: Any, request_: Request) -> None:
    text = drawn(make_bench, request_, Truth(failing=1.0))
    assert "✗ AssertionError" in text
    assert "tests/test_simulated.py:4 test_it" in text
    assert "● consistent" in text


def test_a_disagreement_is_drawn(make_bench: Any, request_: Request) -> None:
    text = drawn(make_bench, request_, Truth(failing=1.0, failing_warm=0.0))
    assert "disagree" in text


@given(st.text(max_size=300))
def test_a_clipped_line_is_one_printable_line(line: str) -> None:
    clipped = clip(line)
    assert len(clipped) <= 70
    assert clipped.isprintable()


def test_a_rate_is_only_called_all_or_none_when_it_is() -> None:
    assert percent(0.0) == "0 %"
    assert percent(1.0) == "100 %"
    assert percent(0.999) == ">99 %"
    assert percent(0.001) == "<1 %"
    assert percent(0.333) == "33 %"


def test_the_report_of_a_failure_tells_trials_error_and_steps(
    make_bench: Any, request_: Request
) -> None:
    bench = make_bench(Truth(failing=1.0))
    done = reproduce(bench, request_)
    text = report(bench.store, done.dossier)
    assert f"rests on {len(done.conducted.trials)} trials" in text
    assert "AssertionError: got" in text
    assert "pytest tests/test_simulated.py" in text
    assert "Needed from a person" not in text


def test_without_a_reproduction_the_report_asks_the_person(
    make_bench: Any, request_: Request
) -> None:
    bench = make_bench(Truth())
    done = reproduce(bench, request_)
    assert "Needed from a person" in report(bench.store, done.dossier)


def test_an_exported_case_holds_every_artifact_it_cites(make_bench: Any, request_: Request) -> None:
    bench = make_bench(Truth(failing=0.5))
    bench.repository.patch = b"diff --git a/x b/x\n"
    source = msgspec.structs.replace(
        bench.repository.source, patch=bytes_id(b"diff --git a/x b/x\n")
    )
    bench.repository.source = source
    done = reproduce(bench, request_)
    text = msgspec.json.encode(export(bench.store, done.dossier.case, tool_version="1"))
    exported = msgspec.json.decode(text, type=Exported)
    cited = {d for trial in exported.trials for _, d in trial.artifacts} | {source.patch}
    assert cited == set(exported.artifacts)
    for digest, packed in exported.artifacts.items():
        assert bytes_id(base64.b64decode(packed)) == digest


def test_a_case_is_open_until_something_was_found(make_bench: Any, request_: Request) -> None:
    store = MemoryStore()
    bench = make_bench(Truth(could_not_run=1.0), store=store)
    reproduce(bench, request_)
    assert dossier(store, "B-1").status == "could-not-run"


def test_where_nothing_could_run_no_rate_is_drawn(make_bench: Any, request_: Request) -> None:
    text = drawn(make_bench, request_, Truth(could_not_run=1.0))
    assert "could not run" in text
    assert "0/0" not in text

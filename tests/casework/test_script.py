"""The reproduction script is inert: nothing of the program under study gets out of its literals."""

from __future__ import annotations

import ast
import base64
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becausal.casework.dossier import Dossier, dossier
from becausal.casework.reproduce import reproduce
from becausal.casework.request import Request
from becausal.casework.script import script
from becausal.domain.errors import WrongUse
from becausal.domain.identity import bytes_id
from becausal.domain.journal import SearchStarted
from becausal.domain.signature import Signature
from becausal.testing.memory_store import MemoryStore
from becausal.testing.simulated_lab import Truth

HOSTILE = (
    '"""; import os; os.system("x") #',
    "'''\\",
    "$facts ${blobs} $$ %s %(x)s {0}",
    "\n\r\x00\x1b[2J\u2028\u202e",
    "# -*- coding: utf-7 -*-",
)
words = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40))


def case(make_bench: Any, request: Request, truth: Truth | None = None) -> tuple[Any, Dossier]:
    bench = make_bench(truth or Truth(failing=1.0))
    done = reproduce(bench, request)
    return bench.store, done.dossier


def parts(text: str) -> tuple[ast.Module, dict[str, Any], dict[str, Any]]:
    """The script as Python 3.8 reads it, and its two literals."""
    module = ast.parse(text, feature_version=(3, 8))
    found = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return module, found["FACTS"], found["BLOBS"]


def skeleton(text: str) -> list[str]:
    """All its statements but what stands in the docstring and the two literals."""
    module, _, _ = parts(text)
    return [ast.dump(n) for n in module.body[1:] if not isinstance(n, ast.Assign)]


def with_words(store: MemoryStore, view: Dossier, word: str) -> tuple[MemoryStore, Dossier]:
    """The same case, with a hostile word wherever the program under study has one."""
    opened = msgspec.structs.replace(view.opened, project=word.replace("/", "") or "x")
    symptom = Signature(kind=word or "x", message=word)
    changed = msgspec.structs.replace(view, opened=opened, symptom=symptom)
    other = MemoryStore()
    other.open_case(opened, at=0.0)
    for entry in store.journal(view.case)[1:]:
        event = entry.event
        if isinstance(event, SearchStarted):
            conditions = tuple(
                msgspec.structs.replace(
                    condition,
                    command=msgspec.structs.replace(condition.command, argv=("x", word), cwd=word),
                    environment=((word, word), ("GONE", None)),
                )
                for condition in event.conditions
            )
            event = msgspec.structs.replace(event, conditions=conditions)
        other.append(view.case, [event], at=0.0)
    other.record(view.case, store.trials(view.case), at=0.0, artifacts=[])
    return other, changed


@pytest.fixture(scope="module")
def plain(make_bench: Any) -> tuple[Any, Dossier, str]:
    request = Request(argv=("pytest", "tests/test_simulated.py"), folder="/fake/project")
    store, view = case(make_bench, request)
    return store, view, script(store, view, tool_version="1")


@settings(deadline=None, max_examples=60)
@given(word=words)
def test_no_word_of_the_program_escapes(plain: tuple[Any, Dossier, str], word: str) -> None:
    store, view, calm = plain
    other, changed = with_words(store, view, word)
    other.get = store.get  # type: ignore[method-assign]

    text = script(other, changed, tool_version="1")

    _, facts, _ = parts(text)
    assert skeleton(text) == skeleton(calm)
    assert facts["argv"] == ["x", word]
    assert facts["environment"] == [[word, word], ["GONE", None]]
    compile(text, "script", "exec")


@given(data=st.binary(max_size=300))
@settings(deadline=None, max_examples=20)
def test_patch_and_input_come_out_as_they_went_in(make_bench: Any, data: bytes) -> None:
    bench = make_bench(Truth(failing=1.0))
    bench.repository.patch = data
    bench.repository.source = msgspec.structs.replace(bench.repository.source, patch=bytes_id(data))
    request = Request(argv=("pytest", "x.py"), folder="/fake/project", input=data[::-1])
    view = reproduce(bench, request).dossier

    _, facts, blobs = parts(script(bench.store, view, tool_version="1"))

    out = {name: zlib.decompress(base64.b85decode(text)) for name, text in blobs.items()}
    assert out == {"patch": data, "input": data[::-1]}
    assert facts["patched"]
    assert facts["fed"]


def test_a_failure_that_was_never_seen_has_no_script(make_bench: Any, request_: Request) -> None:
    store, view = case(make_bench, request_, Truth())
    with pytest.raises(WrongUse) as refused:
        script(store, view, tool_version="1")
    assert refused.value.slug == "not-reproduced-yet"


def test_a_rare_failure_gets_enough_runs(make_bench: Any, request_: Request) -> None:
    store, view = case(make_bench, request_, Truth(failing=0.2))
    _, facts, _ = parts(script(store, dossier(store, view.case), tool_version="1"))
    assert facts["runs"] >= 21
    assert 1 <= len(facts["hash_seeds"]) <= 10

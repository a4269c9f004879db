"""What the payload tells becomes a recording; a hostile trial's words break nothing."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from becausal.domain.recording import Recording
from becausal.probes.decode import decode
from becausal.probes.told import read_side


class Ground:
    """A workspace at /there whose person's tree is /home/p, with an environment in it."""

    isolation = ("sandbox",)
    notes = ("no network",)
    used_in_place = (".venv",)

    def relative(self, path: str) -> str | None:
        return path.removeprefix("/there/") if path.startswith("/there/") else None

    def original(self, path: str) -> str | None:
        return path.removeprefix("/home/p/") if path.startswith("/home/p/") else None


def answer(side: object = None, **more: Any) -> dict[str, Any]:
    data = side if isinstance(side, bytes) else json.dumps(side).encode()
    stream = {"head_b64": "", "tail_b64": "", "dropped": 0}
    whole = {
        "exit_code": 1,
        "signal": None,
        "timed_out": False,
        "obstacle": None,
        "stdout": {**stream, "head_b64": base64.b64encode(b"hello").decode()},
        "stderr": {**stream, "dropped": 7},
        "seconds": 0.5,
        "cpu_seconds": 0.25,
        "max_rss": 1024,
        "isolation": ["overlay"],
        "side_b64": base64.b64encode(b"" if side is None else data).decode(),
    }
    return {**whole, **more}


RAISED = {
    "kind": "ValueError",
    "message": "no",
    "frames": [
        {"file": "/there/a.py", "function": "f", "line": 3},
        {"file": "/there/.venv/lib/b.py", "function": "g", "line": 4},
        {"file": "/usr/lib/python3.11/json.py", "function": "h", "line": 5},
    ],
    "cause": {"kind": "KeyError", "message": "'x'", "frames": [], "cause": None},
}


def test_an_answer_without_a_side_is_a_recording() -> None:
    recording = decode(answer(), Ground())
    assert recording.stdout.joined() == b"hello"
    assert recording.stderr.dropped == 7
    assert recording.isolation == ("sandbox", "overlay")
    assert recording.notes == ("no network",)


def test_own_frames_are_those_below_the_top_and_not_installed() -> None:
    side = {"tests": [{"id": "t", "outcome": "failed", "raised": RAISED, "text": "E"}]}
    (report,) = decode(answer(side), Ground()).tests
    assert report.raised is not None
    assert [frame.own for frame in report.raised.frames] == [True, False, False]
    assert report.raised.frames[0].file == "a.py"
    assert report.raised.cause is not None


def test_the_persons_own_tree_is_no_workspace() -> None:
    side = {"processes": [{"pid": 1, "imported": ["/there/a.py", "/home/p/a.py"]}]}
    recording = decode(answer(side), Ground())
    assert recording.obstacle is not None
    assert recording.obstacle.slug == "ran-original-code"
    assert "/home/p/a.py" in recording.obstacle.what


def test_an_exception_of_a_test_run_is_told_by_its_tests_only() -> None:
    process = {"pid": 1, "imported": [], "raised": RAISED}
    assert decode(answer({"processes": [process]}), Ground()).raised is not None
    side = {"processes": [process], "tests": [{"id": "t", "outcome": "passed"}]}
    assert decode(answer(side), Ground()).raised is None


def test_pytest_that_found_no_such_test_is_an_obstacle() -> None:
    side = {"tests": [{"usage": "ERROR: not found: /there/t.py::nope"}]}
    recording = decode(answer(side, exit_code=4), Ground())
    assert recording.obstacle is not None
    assert recording.obstacle.slug == "test-not-found"
    side = {"tests": [{"collected": 0}]}
    recording = decode(answer(side, exit_code=5), Ground())
    assert recording.obstacle is not None
    assert recording.obstacle.slug == "no-tests"


def test_exit_codes_of_other_programs_are_no_words_of_pytest() -> None:
    for code in (4, 5):
        assert decode(answer(None, exit_code=code), Ground()).obstacle is None


def test_lines_are_kept_by_test_and_file_below_the_top() -> None:
    side = {"tests": [{"lines": {"t": {"/there/a.py": [1, 2], "/usr/x.py": [9]}}}]}
    assert decode(answer(side), Ground()).lines == {"t": {"a.py": [1, 2]}}


def test_one_bad_record_does_not_take_the_others_along() -> None:
    side = {
        "tests": [
            {"id": 7, "outcome": "passed"},
            {"id": "t", "outcome": "splendid"},
            {"id": "u", "outcome": "passed"},
            "nonsense",
        ],
        "processes": [{"pid": "x"}, {"pid": 2, "imported": ["/there/a.py"]}],
    }
    recording = decode(answer(side), Ground())
    assert [test.id for test in recording.tests] == ["u"]
    assert recording.imported == ("a.py",)
    assert sum(note.startswith("a report could not be read") for note in recording.notes) == 4


def test_names_that_are_no_utf8_can_be_kept() -> None:
    side = {"tests": [{"id": "t\udcff", "outcome": "failed", "text": "\ud800 and 😀"}]}
    (report,) = decode(answer(side), Ground()).tests
    assert report.id == "t\\udcff"
    assert "😀" in report.text
    msgspec.json.encode(report)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["tests", "processes", "unread", "id", "outcome", "raised", "lines", "cause"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_a_trial_tells_it_can_be_read(side: object) -> None:
    recording = decode(answer(side), Ground())
    assert isinstance(recording, Recording)
    msgspec.json.encode(recording)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_words_are_named(data: bytes) -> None:
    side = read_side(data)
    assert side.unread or not data or json.loads(data) is not None


def test_words_nested_too_deep_are_named() -> None:
    deep = b'{"tests": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert read_side(deep).unread

"""Signatures, from exceptions that really were raised."""

from __future__ import annotations

import linecache
import traceback
from pathlib import Path
from typing import Any

import pytest

from becausal.domain.criterion import Criterion
from becausal.domain.recording import Frame, Obstacle, Output, Raised, Recording
from becausal.domain.recording import TestReport as Report
from becausal.domain.signature import Signature
from becausal.inquiry.signature import own_file, place_of, signature_of, signature_of_raised
from becausal.inquiry.traceback_text import tracebacks

PLAIN = Criterion()


def printed(source: str, file: str) -> str:
    linecache.clearcache()
    names: dict[str, Any] = {"__name__": "app"}
    try:
        exec(compile(source, file, "exec"), names)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        trace = error.__traceback__
        assert trace is not None
        return "".join(traceback.format_exception(error.with_traceback(trace.tb_next)))
    raise AssertionError("the program was to fail")


def of(source: str, file: str = "src/pkg/mod.py") -> Signature:
    return signature_of_raised(tracebacks(printed(source, file), own_file)[-1])


def crashed(source: str, file: str = "/tmp/x/src/pkg/mod.py", **more: Any) -> Recording:
    return Recording(exit_code=1, stderr=Output(head=printed(source, file).encode()), **more)


BASE = "def f(x):\n    raise ValueError(f'got {x}')\ndef g(x):\n    f(x)\ng(97)\n"


def test_own_frames_are_named_by_module_and_function() -> None:
    assert of(BASE) == Signature(
        kind="ValueError",
        message="got #",
        frames=("pkg.mod.<module>", "pkg.mod.g", "pkg.mod.f"),
    )


def test_moved_lines_and_other_values_are_the_same_failure() -> None:
    assert of("\n\n# moved\n" + BASE.replace("97", "98")) == of(BASE)


def test_another_way_to_the_same_place_is_another_failure() -> None:
    assert of(BASE.replace("g(97)", "f(97)")) != of(BASE)


def test_another_exception_is_another_failure() -> None:
    assert of(BASE.replace("ValueError", "TypeError")) != of(BASE)


def test_depth_of_a_recursion_plays_no_part() -> None:
    deep = "def f(n):\n    if not n: raise ValueError('x')\n    g(n - 1)\ndef g(n): f(n)\nf({n})\n"
    assert of(deep.replace("{n}", "3")) == of(deep.replace("{n}", "30"))


def test_place_where_an_endless_recursion_ran_out_plays_no_part() -> None:
    source = "def h(): pass\ndef f():\n    g()\ndef g():\n    f()\n    h()\n{start}\n"
    frames = {of(source.replace("{start}", f"{name}()")).frames[1:] for name in ("f", "g")}
    assert frames == {("pkg.mod.f", "pkg.mod.g"), ("pkg.mod.g", "pkg.mod.f")}
    long = [Frame(file="m.py", function=n, line=1, own=True) for n in ["main", *["f", "g"] * 9]]
    for tail in ([], ["f"], ["f", "helper"], ["f", "g", "helper", "deeper"]):
        ends = [Frame(file="m.py", function=name, line=1, own=True) for name in tail]
        raised = Raised(kind="RecursionError", message="x", frames=(*long, *ends))
        assert signature_of_raised(raised).frames == ("m.main", "m.f", "m.g")


@pytest.mark.parametrize(
    "form", ["[f(x) for x in [0]]", "{f(x) for x in [0]}", "list(f(x) for x in [0])"]
)
def test_frames_that_only_some_pythons_have_play_no_part(form: str) -> None:
    source = f"def f(x): return 1 // x\ndef g():\n    return {form}\ng()\n"
    raised = tracebacks(printed(source, "m.py"), own_file)[-1]
    frames = list(raised.frames)
    # Python before 3.12 shows a frame of the comprehension; later ones do not.
    noise = Frame(file="m.py", function="<listcomp>", line=3, own=True)
    with_noise = Raised(
        kind=raised.kind, message=raised.message, frames=(*frames[:2], noise, *frames[2:])
    )
    assert signature_of_raised(with_noise) == signature_of_raised(raised)
    assert signature_of_raised(raised).frames == ("m.<module>", "m.g", "m.f")


def test_failure_in_a_library_alone_is_named_by_its_last_functions() -> None:
    frames = tuple(
        Frame(
            file=f"/v/lib/python3.11/site-packages/lib/{name}.py", function="f", line=1, own=False
        )
        for name in "abcde"
    )
    raised = Raised(kind="OSError", message="", frames=frames)
    assert signature_of_raised(raised).frames == ("lib.c.f", "lib.d.f", "lib.e.f")


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("src/pkg/mod.py", "pkg.mod.f"),
        ("pkg/__init__.py", "pkg.f"),
        ("./tests/test_a.py", "tests.test_a.f"),
        ("/home/someone/work/mod.py", "mod.f"),
        ("/home/someone/work/pkg/__init__.py", "pkg.f"),
        ("/usr/lib/python3.12/json/decoder.py", "json.decoder.f"),
        ("C:\\work\\mod.py", "mod.f"),
        ("<string>", "<string>.f"),
    ],
)
def test_places_do_not_tell_where_a_checkout_lies(file: str, place: str) -> None:
    assert place_of(Frame(file=file, function="f", line=1, own=True)) == place


def test_printed_traceback_and_reported_exception_agree() -> None:
    reported = Raised(
        kind="ValueError",
        message="got 3",
        frames=tuple(
            Frame(file="src/pkg/mod.py", function=name, line=9, own=True)
            for name in ("<module>", "g", "f")
        ),
    )
    by_report = signature_of(Recording(exit_code=1, raised=reported), PLAIN)
    by_text = signature_of(crashed(BASE, imported=("src/pkg/mod.py",)), PLAIN)
    assert by_text == by_report


def test_last_traceback_of_standard_error_is_the_failure() -> None:
    logged = printed("raise KeyError('logged')\n", "m.py")
    both = Output(head=(logged + printed(BASE, "m.py")).encode())
    elsewhere = Output(head=logged.encode())
    signature = signature_of(Recording(exit_code=1, stderr=both, stdout=elsewhere), PLAIN)
    assert signature is not None
    assert signature.kind == "ValueError"


@pytest.mark.parametrize(
    ("recording", "kind"),
    [
        (Recording(exit_code=3), "exit 3"),
        (Recording(signal=11), "signal SEGV"),
        (Recording(signal=63), "signal 63"),
        (Recording(exit_code=4, raised=Raised(kind="SystemExit", message="4")), "exit 4"),
    ],
)
def test_endings_without_exception_have_a_signature(recording: Recording, kind: str) -> None:
    assert signature_of(recording, PLAIN) == Signature(kind=kind)


@pytest.mark.parametrize(
    "recording",
    [
        Recording(exit_code=0),
        Recording(timed_out=True),
        Recording(obstacle=Obstacle(slug="x", what="y"), exit_code=1),
    ],
)
def test_runs_that_show_no_failure_have_no_signature(recording: Recording) -> None:
    assert signature_of(recording, PLAIN) is None


def test_hang_is_a_signature_where_it_is_asked_about() -> None:
    hang = Criterion(fail_if="hang")
    assert signature_of(Recording(timed_out=True), hang) == Signature(kind="hang")


def test_first_failing_test_is_the_main_failure() -> None:
    tests = (
        Report(id="a", outcome="passed"),
        Report(id="b", outcome="error", raised=Raised(kind="OSError", message="disk 1")),
        Report(id="c", outcome="failed", raised=Raised(kind="ValueError", message="")),
    )
    signature = signature_of(Recording(exit_code=1, tests=tests), PLAIN)
    assert signature == Signature(kind="OSError", message="disk #")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    x()\nE   ModuleNotFoundError: No module named 'q'\nt.py:1", "ModuleNotFoundError"),
        ("something odd 12", "test error"),
        ("", "test error"),
        (printed(BASE, "m.py"), "ValueError"),
    ],
)
def test_tests_without_a_reported_exception_are_told_by_their_text(
    text: str, expected: str
) -> None:
    tests = (Report(id="a", outcome="error", text=text),)
    signature = signature_of(Recording(exit_code=2, tests=tests), PLAIN)
    assert signature is not None
    assert signature.kind == expected


def test_main_program_and_builtins_are_not_part_of_a_kind() -> None:
    kinds = {signature_of_raised(Raised(kind=k, message="")).kind for k in ("__main__.Odd", "Odd")}
    assert kinds == {"Odd"}


def test_code_in_a_virtual_environment_is_not_own(tmp_path: Path) -> None:
    assert own_file(str(tmp_path / "pkg" / "mod.py"))
    assert not own_file(str(tmp_path / ".venv" / "bin" / "tool"))
    assert not own_file("/usr/lib/python3/dist-packages/x.py")
    assert not own_file("<frozen importlib._bootstrap>")

"""Tracebacks, read from what programs print."""

from __future__ import annotations

import time
import traceback
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becausal.domain.recording import Raised
from becausal.inquiry.traceback_text import tracebacks


def own(file: str) -> bool:
    return file.startswith("app")


def compiled(source: str, file: str = "app/main.py") -> CodeType:
    return compile(source, file, "exec")


def printed(source: str, file: str = "app/main.py") -> str:
    """What the interpreter prints when this program ends with an exception."""
    try:
        exec(compiled(source, file), {"__name__": "app.main"})
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
        trace = error.__traceback__
        assert trace is not None
        error = error.with_traceback(trace.tb_next)
        return "".join(traceback.format_exception(error))
    raise AssertionError("the program was to fail")


def one(text: str) -> Raised:
    (raised,) = tracebacks(text, own)
    return raised


def functions(raised: Raised) -> list[str]:
    return [frame.function for frame in raised.frames]


SIMPLE = "def f(x):\n    return 1 / x\ndef g():\n    f(0)\ng()\n"


def test_traceback_gives_kind_message_and_frames() -> None:
    raised = one(printed(SIMPLE))
    assert (raised.kind, raised.message) == ("ZeroDivisionError", "division by zero")
    assert [(f.file, f.line, f.function, f.own) for f in raised.frames] == [
        ("app/main.py", 5, "<module>", True),
        ("app/main.py", 4, "g", True),
        ("app/main.py", 2, "f", True),
    ]


def test_library_frames_are_told_apart() -> None:
    source = "import json\ndef f():\n    json.loads('{')\nf()\n"
    raised = one(printed(source))
    assert raised.kind == "json.decoder.JSONDecodeError"
    assert [f.own for f in raised.frames][:2] == [True, True]
    assert not raised.frames[-1].own


@pytest.mark.parametrize(
    "prefix", ["    ", "E   ", "web_1  | ", "2024-05-06 07:08:09,123 ERROR [worker] ", "\x1b[31m"]
)
def test_prefixed_lines_read_the_same(prefix: str) -> None:
    plain = one(printed(SIMPLE))
    text = "\n".join(prefix + line for line in printed(SIMPLE).splitlines())
    assert one("before\n" + text + "\nafter") == plain


def test_timestamps_that_differ_from_line_to_line_read_the_same() -> None:
    lines = printed(SIMPLE).splitlines()
    text = "\n".join(f"07:08:{n:02d} out: {line}" for n, line in enumerate(lines))
    assert one(text) == one(printed(SIMPLE))


def test_prefix_of_the_header_alone_reads_the_same() -> None:
    assert one("ERROR: " + printed(SIMPLE)) == one(printed(SIMPLE))


def test_colours_play_no_part() -> None:
    text = printed(SIMPLE).replace("ZeroDivisionError", "\x1b[1;35mZeroDivisionError\x1b[0m")
    text = text.replace('"app/main.py"', '\x1b[35m"app/main.py"\x1b[0m')
    assert one(text) == one(printed(SIMPLE))


def test_chain_is_one_failure_with_its_cause() -> None:
    source = "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('outer') from e\n"
    raised = one(printed(source))
    assert raised.kind == "ValueError"
    assert raised.cause is not None
    assert (raised.cause.kind, raised.cause.message) == ("KeyError", "'a'")


def test_failure_while_handling_is_chained() -> None:
    source = "try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('outer')\n"
    raised = one(printed(source))
    assert raised.cause is not None
    assert raised.cause.kind == "KeyError"


def test_separate_tracebacks_stay_separate() -> None:
    text = printed(SIMPLE) + "and later\n" + printed("raise ValueError('second')\n")
    first, second = tracebacks(text, own)
    assert (first.kind, second.kind) == ("ZeroDivisionError", "ValueError")
    assert second.cause is None


def test_group_is_told_by_its_first_exception() -> None:
    source = (
        "def f():\n    raise ValueError('a')\n"
        "found = []\n"
        "for _ in range(2):\n    try:\n        f()\n    except ValueError as e:\n"
        "        found.append(e)\n"
        "raise ExceptionGroup('many', found)\n"
    )
    raised = one(printed(source))
    assert raised.kind == "ValueError"
    assert raised.message == "a [first of ExceptionGroup: many (2 sub-exceptions)]"
    assert functions(raised) == ["<module>", "f"]


def test_endless_recursion_is_read() -> None:
    raised = one(printed("def f(n):\n    return f(n + 1)\nf(0)\n"))
    assert raised.kind == "RecursionError"
    assert functions(raised)[:2] == ["<module>", "f"]
    assert len(raised.frames) < 10, "repeats are counted by the interpreter, not listed"


def test_file_that_does_not_compile_is_read_with_and_without_header() -> None:
    try:
        compiled("x = (1,\ny = 2\n")
    except SyntaxError as error:
        bare = "".join(traceback.format_exception_only(error))
        whole = "".join(traceback.format_exception(error))
        said = str(error)
    assert one(bare).kind == "SyntaxError"
    assert one(bare).message == said
    assert one(whole).message == said


def test_message_that_begins_with_an_empty_line_is_found() -> None:
    raised = one(printed("raise AssertionError('\\nNot equal to tolerance\\nx')\n"))
    assert raised.message == "Not equal to tolerance"


def test_exception_without_message_is_read() -> None:
    assert one(printed("raise KeyboardInterrupt\n")).kind == "KeyboardInterrupt"


def test_traceback_cut_short_is_no_failure() -> None:
    text = "\n".join(printed(SIMPLE).splitlines()[:-1])
    assert tracebacks(text, own) == ()
    assert len(tracebacks(text + "\n" + printed(SIMPLE), own)) == 1


def test_pythons_before_the_markers_read_the_same() -> None:
    lines = [line for line in printed(SIMPLE).splitlines() if set(line.strip()) - set("^~")]
    assert one("\n".join(lines)) == one(printed(SIMPLE))


@given(st.text())
def test_any_text_is_read_without_error(text: str) -> None:
    tracebacks(text, own)


LINES = st.sampled_from(
    [
        *printed(SIMPLE).splitlines(),
        "",
        "  | Traceback (most recent call last):",
        "    +---- 1 ----",
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "a", line 1, in f',
        "During handling of the above exception, another exception occurred:",
        "SyntaxError: x",
        '  File "a", line 1',
        "  | ValueError: x",
        "Kind:",
        "    | KeyError: 1",
    ]
)


@given(st.lists(LINES))
def test_torn_tracebacks_are_read_without_error(lines: list[str]) -> None:
    found = tracebacks("\n".join(lines), own)
    assert len(found) <= len(lines)


def test_long_output_is_read_in_linear_time() -> None:
    text = "Traceback (most recent call last):\n" * 5_000 + 'x File "' * 50_000
    began = time.process_time()
    assert tracebacks(text, own) == ()
    assert time.process_time() - began < 2.0

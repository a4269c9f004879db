from __future__ import annotations

import sys
from types import CodeType

import pytest

from becausal_payload import raised


class Custom(Exception):
    pass


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


def caught(source: str, **names: object) -> raised.Record:
    code: CodeType = compile(source, "/where/it.py", "exec")
    with pytest.raises(BaseException) as info:  # noqa: PT011 - any exception is described
        exec(code, dict(names))
    return raised.describe(info.value, skip=(__file__,))


def test_builtin_kind_is_bare_and_others_are_dotted() -> None:
    assert caught("raise ValueError('x')")["kind"] == "ValueError"
    assert caught("raise Custom('x')", Custom=Custom)["kind"] == f"{__name__}.Custom"


def test_frames_are_outermost_first_with_file_function_and_line() -> None:
    record = caught("def f():\n    1 / 0\ndef g():\n    f()\ng()")
    seen = [(frame["file"], frame["function"], frame["line"]) for frame in record["frames"]]
    assert seen == [
        ("/where/it.py", "<module>", 5),
        ("/where/it.py", "g", 4),
        ("/where/it.py", "f", 2),
    ]


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("try:\n {}['k']\nexcept KeyError as e:\n raise OSError from e", ["OSError", "KeyError"]),
        ("try:\n {}['k']\nexcept KeyError:\n raise OSError", ["OSError", "KeyError"]),
        ("try:\n {}['k']\nexcept KeyError:\n raise OSError from None", ["OSError"]),
        (
            "a = OSError(); b = KeyError(); a.__cause__ = b; b.__cause__ = a; raise a",
            ["OSError", "KeyError"],
        ),
    ],
)
def test_causes_follow_python_and_cycles_end(source: str, kinds: list[str]) -> None:
    record, found = caught(source), []
    while record is not None:
        found.append(record["kind"])
        record = record["cause"]
    assert found == kinds


def test_message_that_cannot_be_read_is_said_so() -> None:
    record = caught("raise Unreadable()", Unreadable=Unreadable)
    assert record["message"] == "<message unreadable: its __str__ raised ValueError>"


def test_long_message_is_cut_between_characters() -> None:
    message = caught("raise ValueError('ü' * 10000)")["message"]
    assert len(message.encode()) <= raised.MESSAGE_BYTES + 3
    assert set(message[:-1]) == {"ü"}


def test_lone_surrogates_survive_as_escapes() -> None:
    assert caught("raise ValueError('\\udcff')")["message"] == "\\udcff"


def test_endless_recursion_keeps_both_ends() -> None:
    record = caught("def f(): f()\nf()")
    assert record["kind"] == "RecursionError"
    assert len(record["frames"]) == raised.FRAMES
    assert record["frames"][0]["function"] == "<module>"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no groups")
def test_group_is_told_by_its_first_leaf() -> None:
    inner = "ExceptionGroup('inner', [ValueError('deep')])"
    record = caught(f"raise ExceptionGroup('outer', [{inner}, KeyError('b')])")
    assert record["kind"] == "ValueError"
    assert record["message"] == "deep [first of ExceptionGroup: outer (2 sub-exceptions)]"
    assert record["frames"][0]["file"] == "/where/it.py"

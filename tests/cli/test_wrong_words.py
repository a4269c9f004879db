"""Wrong words: what is wrong, the offending value, what to write, and where more is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

MISSING = "put it after two dashes: becausal reproduce -- pytest tests/test_x.py"
TAKES = "becausal reproduce --help lists what it takes"

# words, slug, what, value, hint
WRONG = [
    (
        ("nosuch",),
        ("command-unknown", "there is no such command", "nosuch"),
        "there are reproduce, investigate, doctor, demo, case",
    ),
    (
        ("reproduse", "--", "true"),
        ("command-unknown", "there is no such command", "reproduse"),
        "did you mean reproduce?",
    ),
    (
        ("case", "lst"),
        ("command-unknown", "there is no such command", "lst"),
        "did you mean list?",
    ),
    (("reproduce",), ("command-missing-words", "no command was given", ""), MISSING),
    (("reproduce", "--"), ("command-missing-words", "no command was given", ""), MISSING),
    (
        ("reproduce", "pytest", "t.py"),
        ("dashes-missing", "these words are no options", "pytest t.py"),
        "write: becausal reproduce -- pytest t.py",
    ),
    (
        ("reproduce", "pytest", "--", "t.py"),
        ("dashes-missing", "these words are no options", "pytest"),
        "the command under study stands after the two dashes, all of it",
    ),
    (
        ("reproduce", "pytest", "-x", "t.py"),
        ("option-unknown", "there is no such option", "-x"),
        "if it belongs to the command under study: becausal reproduce -- COMMAND -x",
    ),
    (
        ("reproduce", "--run", "3", "--", "true"),
        ("option-unknown", "there is no such option", "--run"),
        "did you mean --runs?",
    ),
    (
        ("reproduce", "--no-json", "--", "true"),
        ("option-unknown", "there is no such option", "--no-json"),
        "did you mean --json?",
    ),
    (
        ("reproduce", "--runs"),
        ("word-missing", "an option lacks its value", "--runs"),
        TAKES,
    ),
    (
        ("reproduce", "--runs", "1", "--runs", "2", "--", "true"),
        ("option-repeated", "an option is given twice", "--runs"),
        TAKES,
    ),
    (
        ("case", "show"),
        ("word-missing", "a word is missing", "CASE"),
        "becausal case show --help lists what it takes",
    ),
    (
        ("case", "list", "B-1"),
        ("usage", "there are more words than the command takes", "B-1"),
        "becausal case list --help lists what it takes",
    ),
    (
        ("case", "show", "B-7"),
        ("case-unknown", "there are no cases here", "B-7"),
        "stand in the project, or open one: becausal reproduce -- COMMAND",
    ),
]

OUT_OF_RANGE = "leave it out for the default"
# option, its bad value, slug, what
VALUES = [
    ("--runs", "x", "option-value", "--runs takes a whole number"),
    ("--runs", "1.5", "option-value", "--runs takes a whole number"),
    ("--runs", "0", "not-positive", "--runs takes a number above zero"),
    ("--runs", "-3", "not-positive", "--runs takes a number above zero"),
    ("--jobs", "many", "option-value", "--jobs takes a whole number"),
    ("-j", "0", "not-positive", "--jobs takes a number above zero"),
    ("--timeout", "soon", "option-value", "--timeout takes a number"),
    ("--timeout", "0", "not-positive", "--timeout takes a number above zero"),
    ("--timeout", "inf", "not-positive", "--timeout takes a number above zero"),
    ("--timeout", "nan", "not-positive", "--timeout takes a number above zero"),
    ("--seconds", "-1", "not-positive", "--seconds takes a number above zero"),
    ("--fail-exit", "bad", "option-value", "--fail-exit takes a whole number"),
    ("--fail-when", "(", "fail-when-unreadable", "--fail-when is no regular expression: "),
    ("--fail-if", "slow", "fail-if-unreadable", "--fail-if does not say a measure and a limit"),
    ("--tree", "stash", "option-value", "--tree takes worktree or head"),
    ("--memory", "lots", "size-unreadable", "this is no amount of memory"),
    ("--env", "NAME", "environment-unreadable", "this is no change to the environment"),
    ("--env", "=x", "environment-unreadable", "this is no change to the environment"),
    ("--input", "absent", "input-unreadable", "the input cannot be read: "),
    ("--case", "B-9", "case-unknown", "there is no such case"),
]


@pytest.mark.parametrize(("words", "error", "hint"), WRONG, ids=lambda v: " ".join(v)[:40])
def test_wrong_words_are_named(
    prompt: Any, words: tuple[str, ...], error: tuple[str, str, str], hint: str
) -> None:
    slug, what, value = error
    said = prompt.run(*words)
    expected = [f"becausal: {what}", *([f"  value: {value}"] if value else [])]
    expected += [f"  hint:  {hint}", f"  more:  docs/messages.md#{slug}"]
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == expected


@pytest.mark.parametrize(("option", "value", "slug", "what"), VALUES)
def test_a_bad_value_is_named_in_one_object(
    prompt: Any, option: str, value: str, slug: str, what: str
) -> None:
    said = prompt.run("reproduce", "--json", f"{option}={value}", "--", "true")
    assert said.code == 2
    assert said.err == ""
    error = said.record["error"]
    assert set(said.record) == {"error"}
    assert set(error) == {"slug", "what", "value", "hint"}
    assert (error["slug"], error["value"]) == (slug, value)
    assert error["what"].startswith(what)
    assert error["hint"]


def test_two_rules_at_once_are_refused(prompt: Any) -> None:
    said = prompt.run("reproduce", "--fail-if", "hang", "--fail-exit", "3", "--", "true")
    assert said.code == 2
    assert "criterion-ambiguous" in said.err


def test_wrong_words_are_one_object_as_well(prompt: Any) -> None:
    said = prompt.run("reproduce", "--json", "--nope", "--", "true")
    assert said.code == 2
    assert said.record["error"]["slug"] == "option-unknown"


def test_options_of_the_command_under_study_are_not_ours(prompt: Any) -> None:
    said = prompt.run("nosuch", "--", "--json")
    assert said.out == ""
    assert "command-unknown" in said.err


def test_an_unknown_case_is_wrong_use_and_the_known_ones_are_told(with_case: Any) -> None:
    for command in ("show", "report", "export", "script"):
        said = with_case.run("case", command, "B-7", "--json")
        error = said.record["error"]
        assert said.code == 2
        assert (error["slug"], error["value"]) == ("case-unknown", "B-7")
        assert "B-1" in error["hint"]


def test_every_slug_leads_to_its_section() -> None:
    page = Path(__file__, "../../../docs/messages.md").resolve().read_text()
    slugs = {error[0] for _, error, _ in WRONG} | {slug for _, _, slug, _ in VALUES}
    assert [slug for slug in sorted(slugs) if f"## {slug}\n" not in page] == []

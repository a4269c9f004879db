"""What commands answer: contract keys, exit codes, widths, and nothing a terminal would obey."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

REPRODUCE = {
    "trials",
    "failures",
    "rate",
    "interval",
    "verdict",
    "signature",
    "clean_runs_for_gone",
    "mode",
    "cpu_seconds",
}
INVESTIGATE = {"case", "reproduction", "known", "findings", "hypotheses", "root_cause", "report"}

FIRST = """\
case B-1

sh fails.sh
│
╰─ cold  ████████████████████ 3/3 failed

● consistent: rate 100 %, between 25 % and 100 %
✗ exit 3

gone, 95 % sure: 11 clean runs in a row
gone, 99 % sure: 17 clean runs in a row
run cold: no repository: trials run in a copy

next: becausal case show B-1
"""

SHOWN = """\
B-1  reproduced

command  sh fails.sh
failure  exit 3
finding  consistent: 3 of 3 cold runs failed (100 %)
trials   3 failed

next: becausal case report B-1
"""


def test_reproduce_tells_this(prompt: Any) -> None:
    prompt.write("fails.sh", "exit 3\n")
    said = prompt.run("reproduce", "--runs", "3", "--", "sh", "fails.sh")
    assert (said.code, said.err) == (0, "")
    assert said.out == FIRST


def test_show_and_list_tell_this(with_case: Any) -> None:
    assert with_case.run("case", "show", "B-1").out == SHOWN
    listed = with_case.run("case", "list")
    assert (listed.code, listed.out, listed.err) == (0, "B-1    reproduced      exit 3\n", "")


def test_without_a_store_there_are_no_cases(prompt: Any) -> None:
    said = prompt.run("case", "list")
    assert (said.code, said.out, said.err) == (0, "no cases here yet\n", "")
    assert prompt.run("case", "list", "--json").record == {"cases": []}
    assert os.listdir(prompt.top) == []


def test_reproduce_gives_the_contract_as_one_object(prompt: Any) -> None:
    said = prompt.run("reproduce", "--json", "--runs", "3", "--", "sh", "-c", "exit 3")
    assert set(said.record) >= REPRODUCE
    assert said.record["verdict"] == "consistent"
    assert said.record["trials"] == said.record["failures"] == 3
    assert said.record["signature"]["kind"] == "exit 3"
    assert said.err == ""


def test_investigate_gives_the_contract_as_one_object(prompt: Any) -> None:
    said = prompt.run("investigate", "--json", "--", "sh", "-c", "echo no; exit 3")
    assert set(said.record) >= INVESTIGATE
    assert set(said.record["reproduction"]) >= REPRODUCE
    assert said.record["report"].startswith("# B-1: exit 3\n")
    assert said.record["observation"]["error"] == "no\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("sh", "-c", "exit 3"), 0),
        (("true",), 1),
        (("./absent",), 3),
    ],
)
def test_the_exit_code_is_the_answer(prompt: Any, words: tuple[str, ...], code: int) -> None:
    said = prompt.run("reproduce", "--runs", "2", "--json", "--", *words)
    assert said.code == code
    assert set(said.record) >= REPRODUCE


@pytest.mark.parametrize("as_json", [True, False])
def test_interrupted_says_how_to_go_on(
    prompt: Any, eventually: Callable[[Callable[[], bool]], bool], as_json: bool
) -> None:
    options = ["--json"] if as_json else []
    words = ("reproduce", *options, "--", "sh", "-c", "sleep 0.01; exit 3")
    process = prompt.start(*words, "--", "more")
    journal = prompt.top / ".becausal" / "journal.db"
    assert eventually(journal.exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    said = out if as_json else err
    assert b"run the same command again" in said
    assert (err if as_json else out) == b""


def test_people_read_at_most_seventy_columns(with_case: Any) -> None:
    long = "x" * 90
    for words in (
        ("reproduce", "--runs", "2", "--", "sh", "-c", f"echo {long}; exit 3"),
        ("reproduce", "--runs", "2", "--", "true", long),
        ("reproduce", "--runs", "2", "--", "./absent"),
        ("case", "list"),
        ("case", "show", "B-2"),
    ):
        said = with_case.run(*words)
        assert said.widest <= 70, said.out
    said = with_case.run("doctor")
    wide = [line for line in said.out.splitlines() if len(line) > 70]
    assert [line for line in wide if str(with_case.top.parent) not in line] == []


def test_no_escapes_where_there_is_no_terminal(with_case: Any) -> None:
    evil = "printf 'raise \\033[31mred\\033]0;title\\007\\r\\n' >&2; exit 3"
    with_case.env["CLICOLOR_FORCE"] = with_case.env["FORCE_COLOR"] = "1"
    for words in (
        ("investigate", "--", "sh", "-c", evil),
        ("case", "list"),
        ("case", "report", "B-2"),
        ("case", "show", "B-2"),
        ("reproduce", "--help"),
        ("doctor",),
    ):
        said = with_case.run(*words)
        controls = re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said.out + said.err)
        assert controls == [], said


def test_the_c_locale_gets_plain_signs(prompt: Any) -> None:
    prompt.env["LC_ALL"] = "C"
    said = prompt.run("reproduce", "--runs", "2", "--", "sh", "-c", "exit 3", "größe")
    assert said.out.isascii()
    assert "`- cold  #################### 2/2 failed" in said.out
    assert "* consistent" in said.out
    report = prompt.run("case", "report", "B-1")
    assert (report.code, report.out.isascii()) == (0, True)
    assert prompt.run("case", "list").out.isascii()


@pytest.mark.parametrize(
    "words", [("--help",), ("case", "report", "B-1"), ("case", "export", "B-1"), ("doctor",)]
)
def test_a_reader_that_has_seen_enough_is_no_error(with_case: Any, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    process = with_case.start(*words, stdout=writer)
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    assert err == b""


def test_documents_can_be_written_into_a_file(with_case: Any) -> None:
    for command, first in (("report", "# B-1"), ("export", "{"), ("script", "#!/usr/bin/env")):
        said = with_case.run("case", command, "B-1", "-o", "out")
        assert (said.code, said.out) == (0, "written: out\n")
        assert (with_case.top / "out").read_text().startswith(first)
    assert os.access(with_case.top / "out", os.X_OK)
    refused = with_case.run("case", "report", "B-1", "-o", "absent/out", "--json")
    assert refused.code == 3
    assert refused.record["error"]["slug"] == "output-unwritable"


def test_progress_is_for_terminals_and_for_long_commands(prompt: Any) -> None:
    slow = ("reproduce", "--runs", "4", "-j", "1", "--", "sh", "-c", "sleep 0.7; exit 3")
    code, shown, first = prompt.terminal(*slow)
    assert code == 0
    assert "reproducing" in shown
    assert first > 2.0
    assert shown.endswith("\r\x1b[K")
    for line in re.split(r"\r\x1b\[K", shown):
        assert len(line) <= 70
        assert line.isprintable()
    assert prompt.run(*slow).err == ""


def test_progress_draws_only_what_the_terminal_can_show(prompt: Any) -> None:
    prompt.env["LC_ALL"] = "C"
    slow = ("reproduce", "--runs", "4", "-j", "1", "--", "sh", "-c", "sleep 0.7; exit 3")
    code, shown, _ = prompt.terminal(*slow)
    assert code == 0
    assert shown.isascii()
    assert "#" in shown


def test_quick_commands_show_no_progress(prompt: Any) -> None:
    assert prompt.terminal("case", "list")[1] == ""


def test_who_asks_for_json_on_a_terminal_sees_progress_there(prompt: Any) -> None:
    words = ("reproduce", "--json", "--runs", "4", "-j", "1", "--", "sh", "-c", "sleep 0.7; exit 3")
    assert "fail so far" in prompt.terminal(*words)[1]


def test_a_lone_dash_is_standard_input(prompt: Any) -> None:
    words = ("reproduce", "--json", "--runs", "1", "--input", "-", "--", "grep", "-q", "given")
    process = prompt.start(*words, stdin=subprocess.PIPE)
    out, _ = process.communicate(b"it was given", timeout=120)
    assert json.loads(out)["reasons"] == {"passed: exit 0": 1}


def test_head_ends_a_report_quietly(with_case: Any) -> None:
    done = subprocess.run(
        ["sh", "-c", "becausal case report B-1 | head -1"],
        cwd=with_case.top,
        env=with_case.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("# B-1: exit 3\n", "")

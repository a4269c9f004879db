"""Help: what is said, word by word, and that it is quick to say."""

from __future__ import annotations

from typing import Any

import pytest

OVERVIEW = """\
usage: becausal COMMAND [OPTIONS]

Turns a failing command into a proven cause, by experiment.

  reproduce    Measure how often a command fails, and how sure that is.
  investigate  Open a case: observe, reproduce, report.
  doctor       Say what works here; list and clean workspaces.
  demo         Investigate a sample project, in a temporary folder.
  case         Read the cases of this project.

becausal COMMAND --help tells of one command.
"""

CASES = """\
usage: becausal case COMMAND [OPTIONS]

Read the cases of this project.

  list         List the cases of this project.
  show         Show what is known of a case.
  report       Write the report of a case in Markdown.
  export       Write a case with its artifacts as one JSON document.
  script       Write one file that shows the failure by itself.

becausal case COMMAND --help tells of one command.
"""

SCRIPT = """\
usage: becausal case script [OPTIONS] CASE

Write one file that shows the failure without becausal.

options:
  -o, --output FILE
      Write into this file instead of standard output.
  --json
      Print one JSON object on standard output.
"""

REPRODUCE = """\
usage: becausal reproduce [OPTIONS] -- COMMAND

Measure how often a command fails, and how sure that is.

    becausal reproduce -- pytest tests/test_cart.py::test_total

options:
  --runs N
      Exactly N new runs; without it, as many as the answer needs.
  --cold
      Only fresh processes: no warm ones.
  --fail-if RULE
      What counts as the failure: `hang`, or a measure beyond a limit,
      such as 'seconds > 2', 'max_rss > 500M' or
      'match(r"p95=(\\d+)") > 80'.
  --fail-when REGEX
      The command fails when its output has a match of this regular
      expression.
  --fail-exit CODE
      The command fails when it ends with this exit code.
  --tree worktree|head
      The code as it is now, uncommitted work included (the default),
      or as committed.
  --env CHANGE
      A change to the environment: NAME=value sets a variable,
      --env=-NAME takes one away. May be repeated.
  --input FILE
      What the command reads on standard input; - for ours. Without
      it, the input is empty.
  --no-network
      Run the command without network, where this machine's sandbox
      can.
  --timeout SECONDS
      Stop a single run after this time; 600 by default.
  --memory SIZE
      Memory that a single run may ask for, such as 2G.
  --case CASE
      Join this case, whatever the command.
  --new
      Open a new case, though there is one for this command.
  --seconds SECONDS
      Time for all runs together; 300 unless --runs is given.
  -j, --jobs N
      Runs at once; by default one for each processor.
  --json
      Print one JSON object on standard output.
"""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), OVERVIEW),
        (("--help",), OVERVIEW),
        (("-h",), OVERVIEW),
        (("case",), CASES),
        (("case", "--help"), CASES),
        (("case", "script", "--help"), SCRIPT),
        (("reproduce", "--help"), REPRODUCE),
        (("reproduce", "--help", "--", "pytest"), REPRODUCE),
    ],
)
def test_help_says_this(prompt: Any, words: tuple[str, ...], text: str) -> None:
    said = prompt.run(*words)
    assert (said.code, said.err) == (0, "")
    assert said.out == text


@pytest.mark.parametrize(
    "words",
    [
        ("investigate",),
        ("doctor",),
        ("demo",),
        ("case", "list"),
        ("case", "show"),
        ("case", "report"),
        ("case", "export"),
    ],
)
def test_every_command_has_calm_help(prompt: Any, words: tuple[str, ...]) -> None:
    said = prompt.run(*words, "--help")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(f"usage: becausal {' '.join(words)} ")
    assert said.widest <= 70
    assert said.out.isascii()
    assert "[default" not in said.out
    for option in (line for line in said.out.splitlines() if line.startswith("  -")):
        after = said.out.split(option + "\n")[1].splitlines()[0]
        assert after.startswith("      "), f"{option} is not explained"


def test_help_of_the_command_under_study_is_not_ours(prompt: Any) -> None:
    said = prompt.run("reproduce", "--runs", "1", "--json", "--", "sh", "-c", "exit 3", "--help")
    assert said.record["verdict"] == "consistent"


def test_the_version_is_told(prompt: Any) -> None:
    said = prompt.run("--version")
    assert (said.code, said.out.split()[0]) == (0, "becausal")


@pytest.mark.parametrize("words", [("--help",), ("case", "list"), ("case", "list", "--json")])
def test_what_is_asked_for_often_loads_no_parser(with_case: Any, words: tuple[str, ...]) -> None:
    with_case.env["PYTHONPROFILEIMPORTTIME"] = "1"
    said = with_case.run(*words)
    loaded = {line.split("|")[-1].strip() for line in said.err.splitlines()}
    assert "becausal.cli.door" in loaded
    assert loaded.isdisjoint({"cyclopts", "rich", "psutil", "asyncio", "becausal.lab.local"})

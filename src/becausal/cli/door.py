"""The one place where words become a command, and errors become text and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from becausal.domain.errors import DONE, INTERRUPTED, BecausalError, WrongUse

if TYPE_CHECKING:
    from cyclopts import App

HELP = "Turns a failing command into a proven cause, by experiment."

COMMANDS = {
    "reproduce": ("reproduce:reproduce", "Measure how often a command fails, and how surely."),
    "investigate": ("investigate:investigate", "Find out all one can about a failing command."),
    "doctor": ("doctor:doctor", "Say what works on this machine; list and clean workspaces."),
    "demo": ("demo:demo", "Investigate a sample project with a bug, in a temporary folder."),
}
CASE = "case"
CASE_HELP = "Read the cases of this project."
CASE_COMMANDS = {
    "list": ("cases:list_cases", "List all cases."),
    "show": ("cases:show", "Show what is known of a case."),
    "report": ("cases:show_report", "Write the report of a case in Markdown."),
    "export": ("cases:export_case", "Write a case with its artifacts as one document."),
    "script": ("cases:write_script", "Write one file that shows the failure without becausal."),
}


def application() -> App:
    """All commands; their modules are imported when they are run."""
    from cyclopts import App

    app = App(name="becausal", help=HELP, version=_version, help_format="plaintext")
    for name, (place, text) in COMMANDS.items():
        app.command(f"becausal.cli.{place}", name=name, help=text)
    case = App(name=CASE, help=CASE_HELP)
    for name, (place, text) in CASE_COMMANDS.items():
        case.command(f"becausal.cli.{place}", name=name, help=text)
    app.command(case)
    return app


def run(words: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code."""
    words = list(sys.argv[1:] if words is None else words)
    options = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in options
    try:
        code = _call(words)
        sys.stdout.flush()
        return code
    except BecausalError as error:
        return _tell(error, as_json=as_json)
    except KeyboardInterrupt:
        return _tell(_interrupted(), as_json=as_json)
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more while flushing at exit.
        sys.stdout = None
        return INTERRUPTED


def overview(words: Sequence[str]) -> str | None:
    """The help on commands, where that is all that is asked: read often, so it costs no import."""
    asked = [word for word in words if word not in ("--help", "-h")]
    if asked not in ([], [CASE]):
        return None
    commands = CASE_COMMANDS if asked else {**COMMANDS, CASE: ("", CASE_HELP)}
    usage = f"becausal {CASE} COMMAND" if asked else "becausal COMMAND"
    lines = [f"usage: {usage} [OPTIONS]", "", CASE_HELP if asked else HELP, ""]
    lines += [f"  {name:<12} {text}" for name, (_, text) in commands.items()]
    return "\n".join([*lines, "", f"{usage} --help tells of one; --version of this program."])


def _call(words: list[str]) -> int:
    text = overview(words)
    if text is not None:
        sys.stdout.write(text + "\n")
        return DONE
    from cyclopts import CycloptsError

    app = application()
    app.suppress_keyboard_interrupt = False
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise WrongUse(
            "usage", str(error), value=" ".join(words), hint="becausal --help lists the commands"
        ) from error
    return result if isinstance(result, int) else DONE


def _tell(error: BecausalError, *, as_json: bool) -> int:
    from becausal.cli.output import show_error

    show_error(error, as_json=as_json)
    return error.exit_code


def _interrupted() -> BecausalError:
    error = BecausalError(
        "interrupted",
        "interrupted; what ran so far is kept",
        hint="run the same command again and it goes on from there",
    )
    error.exit_code = INTERRUPTED
    return error


def _version() -> str:
    from importlib.metadata import version

    return version("becausal")

"""The one place where words become a command, and errors become text and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from becausal.cli.output import show_error
from becausal.domain.errors import INTERRUPTED, BecausalError, WrongUse

HELP = "Turns a failing command into a proven cause, by experiment."

COMMANDS = {
    "reproduce": (
        "reproduce:reproduce",
        "Measure how often a command fails, and how surely.",
    ),
    "investigate": (
        "investigate:investigate",
        "Find out all one can about a failing command.",
    ),
    "doctor": ("doctor:doctor", "Say what works on this machine; list and clean workspaces."),
    "demo": ("demo:demo", "Investigate a sample project with a bug, in a temporary folder."),
}
CASE_COMMANDS = {
    "list": ("cases:list_cases", "List all cases."),
    "show": ("cases:show", "Show what is known of a case."),
    "report": ("cases:show_report", "Write the report of a case in Markdown."),
    "export": ("cases:export_case", "Write a case with its artifacts as one document."),
    "script": ("cases:write_script", "Write one file that shows the failure without becausal."),
}


def application() -> App:
    """All commands; their modules are imported when they are run."""
    app = App(name="becausal", help=HELP, version=_version, help_format="plaintext")
    for name, (place, text) in COMMANDS.items():
        app.command(f"becausal.cli.{place}", name=name, help=text)
    case = App(name="case", help="Read the cases of this project.")
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
        show_error(error, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        interrupted = BecausalError(
            "interrupted",
            "interrupted; what ran so far is kept",
            hint="run the same command again and it goes on from there",
        )
        show_error(interrupted, as_json=as_json)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more while flushing at exit.
        sys.stdout = None
        return INTERRUPTED


def _call(words: list[str]) -> int:
    app = application()
    app.suppress_keyboard_interrupt = False
    try:
        result = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        raise WrongUse(
            "usage", str(error), value=" ".join(words), hint="becausal --help lists the commands"
        ) from error
    return result if isinstance(result, int) else 0


def _version() -> str:
    from importlib.metadata import version

    return version("becausal")

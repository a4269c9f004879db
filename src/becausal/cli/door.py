"""The one place where words become a command, and errors become text and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from becausal.domain.errors import DONE, INTERRUPTED, BecausalError, CouldNotRun

if TYPE_CHECKING:
    from cyclopts import App

HELP = "Turns a failing command into a proven cause, by experiment."

COMMANDS = {
    "reproduce": (
        "reproduce:reproduce",
        "Measure how often a command fails, and how sure that is.",
    ),
    "investigate": ("investigate:investigate", "Open a case: observe, reproduce, report."),
    "doctor": ("doctor:doctor", "Say what works here; list and clean workspaces."),
    "demo": ("demo:demo", "Investigate a sample project, in a temporary folder."),
}
CASE = "case"
HELP_FLAGS = frozenset({"--help", "-h"})
CASE_HELP = "Read the cases of this project."
CASE_COMMANDS = {
    "list": ("case_list:list_cases", "List the cases of this project."),
    "show": ("cases:show", "Show what is known of a case."),
    "report": ("cases:show_report", "Write the report of a case in Markdown."),
    "export": ("cases:export_case", "Write a case with its artifacts as one JSON document."),
    "script": ("cases:write_script", "Write one file that shows the failure by itself."),
}


def application() -> App:
    """All commands; their modules are imported when they are run."""
    from cyclopts import App, Parameter

    # What a parser says of itself comes from here and help.py: it shows neither help nor version.
    app = App(
        name="becausal",
        help_flags=(),
        version_flags=(),
        default_parameter=Parameter(negative=""),
    )
    for name, (place, _) in COMMANDS.items():
        app.command(f"becausal.cli.{place}", name=name)
    case = App(name=CASE, help_flags=(), version_flags=())
    for name, (place, _) in CASE_COMMANDS.items():
        case.command(f"becausal.cli.{place}", name=name)
    app.command(case)
    return app


def run(words: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit code."""
    own, studied = _divided(list(sys.argv[1:] if words is None else words))
    as_json = "--json" in own
    try:
        code = _call(own, studied)
        sys.stdout.flush()
        return code
    except BecausalError as error:
        return _tell(error, as_json=as_json)
    except KeyboardInterrupt:
        return _tell_interrupted(as_json=as_json)
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more while flushing at exit.
        sys.stdout = None
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # told in full; it must not look like an answer
        return _tell(_unforeseen(error), as_json=as_json)


def _divided(words: list[str]) -> tuple[list[str], list[str] | None]:
    """Our own words, and those after two dashes: the command under study."""
    if "--" not in words:
        return words, None
    place = words.index("--")
    return words[:place], words[place + 1 :]


def overview(own: Sequence[str]) -> str | None:
    """The help on commands, where that is all that is asked: read often, so it costs no import."""
    asked = [word for word in own if word not in HELP_FLAGS]
    if asked not in ([], [CASE]):
        return None
    commands = CASE_COMMANDS if asked else {**COMMANDS, CASE: ("", CASE_HELP)}
    usage = f"becausal {CASE} COMMAND" if asked else "becausal COMMAND"
    lines = [f"usage: {usage} [OPTIONS]", "", CASE_HELP if asked else HELP, ""]
    lines += [f"  {name:<12} {text}" for name, (_, text) in commands.items()]
    return "\n".join([*lines, "", f"{usage} --help tells of one command."])


def _call(own: list[str], studied: list[str] | None) -> int:
    """Run the command that our own words name, on the words after two dashes."""
    text = f"becausal {_version()}" if own == ["--version"] else overview(own)
    if text is not None:
        sys.stdout.write(text + "\n")
        return DONE
    if studied is None and own in ([CASE, "list"], [CASE, "list", "--json"]):
        # Asked for all the time, by people and programs: the parser would cost most of it.
        from becausal.cli.case_list import list_cases

        return list_cases(json="--json" in own)
    return _parsed(own, studied)


def _parsed(own: list[str], studied: list[str] | None) -> int:
    from cyclopts import CycloptsError

    from becausal.cli.misuse import misuse, require_dashes

    app = application()
    own = _standard_input_joined(own)
    words = own if studied is None else [*own, "--", *studied]
    try:
        if not HELP_FLAGS.isdisjoint(own):
            from becausal.cli.help import help_text

            wanted = [word for word in own if word not in HELP_FLAGS]
            sys.stdout.write(help_text(app, wanted) + "\n")
            return DONE
        command, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise misuse(error, words) from error
    require_dashes(bound.arguments.get("command", ()), studied or (), own[0])
    code: int = command(*bound.args, **bound.kwargs)
    return code


def _standard_input_joined(own: list[str]) -> list[str]:
    """`--input -` as one word: the parser takes a lone dash for an option."""
    joined: list[str] = []
    for word in own:
        if word == "-" and joined[-1:] == ["--input"]:
            joined[-1] = "--input=-"
        else:
            joined.append(word)
    return joined


def _tell(error: BecausalError, *, as_json: bool) -> int:
    from becausal.cli.output import show_error

    show_error(error, as_json=as_json)
    return error.exit_code


def _tell_interrupted(*, as_json: bool) -> int:
    from becausal.cli.output import answered

    return INTERRUPTED if answered() else _tell(_interrupted(), as_json=as_json)


def _unforeseen(error: Exception) -> BecausalError:
    """Python itself would end with 1, which is our word for no."""
    import traceback

    sys.stderr.write(traceback.format_exc())
    return CouldNotRun(
        "internal-error",
        f"becausal met what it was not prepared for: {error!r}",
        hint="what ran so far is kept; is a disk full, or a folder gone? Else report the trace",
    )


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

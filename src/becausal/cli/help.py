"""The help on one command: what it does, how it is called, its options; at most 70 columns."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument

WIDTH = 70
_QUOTED = re.compile(r"'[^']*'")
_TIE = "\0"
"""Holds what is quoted together on one line."""
STUDIED = "COMMAND"
"""Name of the words that stand after two dashes."""


def help_text(app: App, words: Sequence[str]) -> str:
    """The help on the command that the words name."""
    names, apps, _ = app.parse_commands(list(words))
    command = apps[-1]
    with app.app_stack(list(words)):  # where the settings of all commands are found
        found = command.assemble_argument_collection(parse_docstring=True)
    arguments = [argument for argument in found if argument.show]
    options = [a for a in arguments if a.name.startswith("-")]
    words_after = [_placeholder(a) for a in arguments if not a.name.startswith("-")]
    usage = ["becausal", *names, *(["[OPTIONS]"] if options else [])]
    usage += [f"-- {word}" if word == STUDIED else word for word in words_after]
    summary, examples = _told(command)
    lines = [f"usage: {' '.join(usage)}", "", *_wrapped(summary)]
    for example in examples:
        lines += ["", *(f"    {line}" for line in example.splitlines())]
    if options:
        lines += ["", "options:"]
    for option in options:
        lines.append("  " + _spelt(option))
        lines += _wrapped(str(option.parameter.help or ""), indent=6)
    return "\n".join(lines)


def _told(command: App) -> tuple[str, list[str]]:
    """What the docstring of a command says before it comes to parameters: a summary, examples."""
    function = command.default_command
    text = inspect.getdoc(function) or ""
    parts = text.partition("\n\nParameters\n---")[0].split("\n\n")
    examples = [part for part in parts[1:] if part.startswith("becausal ")]
    prose = [" ".join(part.split()) for part in parts if part not in examples]
    return "\n\n".join(prose), examples


def _spelt(option: Argument) -> str:
    names = sorted(option.names, key=lambda name: (name.startswith("--"), name))
    value = "" if option.hint is bool else f" {_placeholder(option)}"
    return ", ".join(names) + value


def _placeholder(argument: Argument) -> str:
    return argument.parameter.metavar or argument.name.lstrip("-").upper()


def _wrapped(text: str, *, indent: int = 0) -> list[str]:
    space = " " * indent
    return [
        line.replace(_TIE, " ")
        for part in text.split("\n\n")
        for line in textwrap.wrap(
            _QUOTED.sub(lambda quoted: quoted[0].replace(" ", _TIE), " ".join(part.split())),
            WIDTH,
            initial_indent=space,
            subsequent_indent=space,
            break_on_hyphens=False,
        )
        or [""]
    ]

"""What is wrong with the words of a command: the offending word, and what to write instead."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

from cyclopts import CoercionError, CycloptsError, UnknownCommandError, UnknownOptionError
from cyclopts.exceptions import MissingArgumentError, RepeatArgumentError

from becausal.domain.errors import WrongUse

_KINDS = {int: "a whole number", float: "a number"}


def misuse(error: CycloptsError, words: Sequence[str]) -> WrongUse:
    """The parser's complaint in our form."""
    command = " ".join(("becausal", *(error.command_chain or ())))
    help_hint = f"{command} --help lists what it takes"
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        known = [] if error.app is None else [n for n in error.app if not n.startswith("-")]
        word = error.unused_tokens[0]
        hint = _meant(word, known) or f"there are {', '.join(known)}"
        return WrongUse("command-unknown", "there is no such command", value=word, hint=hint)
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
        names = [name for argument in error.argument_collection for name in argument.names]
        hint = _meant(word, names) or help_hint
        if "--" not in words and "COMMAND" in names:
            hint = f"if it belongs to the command under study: {command} -- COMMAND {word}"
        return WrongUse("option-unknown", "there is no such option", value=word, hint=hint)
    if isinstance(error, CoercionError) and error.token is not None:
        name, value = error.token.keyword or "the argument", error.token.value
        kind = _kind(error.target_type)
        return WrongUse("option-value", f"{name} takes {kind}", value=value, hint=help_hint)
    if isinstance(error, RepeatArgumentError):
        name = error.token.keyword or error.token.value
        return WrongUse("option-repeated", "an option is given twice", value=name, hint=help_hint)
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.keyword or error.argument.name
        what = "an option lacks its value" if name.startswith("-") else "a word is missing"
        return WrongUse("word-missing", what, value=name, hint=help_hint)
    extra = shlex.join(error.unused_tokens or ())
    what = "there are more words than the command takes" if extra else str(error)
    return WrongUse("usage", what, value=extra or shlex.join(words), hint=help_hint)


def _kind(wanted: Any) -> str:
    """What an option of this type takes."""
    if get_origin(wanted) is Literal:
        return " or ".join(map(str, get_args(wanted)))
    kinds = [_KINDS[each] for each in (wanted, *get_args(wanted)) if each in _KINDS]
    return kinds[0] if kinds else "another value"


def require_dashes(command: Sequence[str], after: Sequence[str], name: str) -> None:
    """Refuse words of the command under study that stand before the two dashes."""
    stray = list(command[: len(command) - len(after)])
    if not stray:
        return
    if after:
        hint = "the command under study stands after the two dashes, all of it"
    else:
        hint = f"write: becausal {name} -- {shlex.join(stray)}"
    raise WrongUse(
        "dashes-missing", "these words are no options", value=shlex.join(stray), hint=hint
    )


def _meant(word: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(word.split("=")[0], list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""

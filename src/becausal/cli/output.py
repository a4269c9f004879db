"""Output: one JSON object for programs, calm text for people, nothing a terminal would obey."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

import msgspec

from becausal.domain.errors import BecausalError

_SIGNS = "●○✗█░├╰─│…×"
_PLAIN = str.maketrans(_SIGNS, "*ox#.|`-|~x")
"""What stands for each sign where it cannot be shown: as wide, so that drawings hold together."""


_answered = False


def emit(record: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the answer of a command on standard output: when this returns, it was handed over."""
    global _answered
    if as_json:
        _write_object(record)
    else:
        write(sys.stdout, text.rstrip("\n") + "\n")
    sys.stdout.flush()
    _answered = True


def answered() -> bool:
    """Whether the answer is out: then nothing else may follow it on standard output."""
    return _answered


def show_error(error: BecausalError, *, as_json: bool) -> None:
    """Print what happened, the offending value, what to do next, and the slug."""
    if as_json:
        told = {"slug": error.slug, "what": error.what, "value": error.value, "hint": error.hint}
        _write_object({"error": told})
        return
    lines = [f"becausal: {error.what}"]
    if error.value:
        lines.append(f"  value: {error.value}")
    if error.hint:
        lines.append(f"  hint:  {error.hint}")
    lines.append(f"  more:  docs/messages.md#{error.slug}")
    write(sys.stderr, "\n".join(lines) + "\n")


def _write_object(record: dict[str, Any]) -> None:
    """JSON may hold control characters above 127 as they are, and terminals obey those as well."""
    text = msgspec.json.encode(record).decode()
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    sys.stdout.write(text + "\n")


def write(stream: TextIO, text: str) -> None:
    """Print text that may hold words of the program under study."""
    encoding = encoding_of(stream)
    if not drawable(encoding):
        text = text.translate(_PLAIN)
    harmless = "".join(c if c.isprintable() or c in "\n\t" else _spelt(c) for c in text)
    stream.write(harmless.encode(encoding, "backslashreplace").decode(encoding))


def encoding_of(stream: TextIO) -> str:
    """What the reader of a stream understands; in the C locale Python writes UTF-8 all the same."""
    chosen = [os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if next(filter(None, chosen), "") in ("C", "POSIX"):
        return "ascii"
    return stream.encoding or "utf-8"


def drawable(encoding: str) -> bool:
    """Whether the signs of our drawings can be written in it."""
    try:
        _SIGNS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _spelt(character: str) -> str:
    """A control character as text: escape sequences of a hostile program stay visible and idle."""
    if character == "\r":
        return ""
    return f"\\x{ord(character):02x}" if ord(character) < 256 else f"\\u{ord(character):04x}"

"""Messages without what differs from run to run, so that equal failures read equal."""

from __future__ import annotations

import re

INPUT_LIMIT = 2_000
OUTPUT_LIMIT = 400
_LINES = 3
_PASSES = 4

_ASSERTIONS = ("AssertionError", "ComparisonFailure")
_LOOKUPS = (
    "KeyError",
    "AttributeError",
    "NameError",
    "UnboundLocalError",
    "ImportError",
    "ModuleNotFoundError",
    "LookupError",
    "IndexError",
)

# Placeholders come first, so that a normalised message is its own normal form.
_VARYING = re.compile(
    r"""
    (?P<done><(?:path|url|id|time)>(?:/[A-Za-z][A-Za-z_-]*(?:\.[A-Za-z]+)+)?|0x…)
  | (?P<url>\b[a-zA-Z][a-zA-Z+]{1,9}://[^\s'"<>)\]]+)
  | (?P<id>\b(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}
        |(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{7,})\b)
  | (?P<address>\b0[xX][0-9a-fA-F]+\b)
  | (?P<time>\bdatetime\.\w+\([^()]*\)
        |\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?:Z|[ ]?[+-]\d\d:?\d\d)?(?!\w)
        |\b\d{1,3}:\d\d:\d\d(?:[.,]\d+)?(?!\w))
  | (?P<path>(?<![\w./<>])(?:[A-Za-z]:)?[\\/](?:[\w.+@~$%=#-]+[\\/]+)*[\w.+@~$%=#-]+
        |(?<![\w./<>])(?:~|\.{1,2}|[\w.+@-]+)/(?:[\w.+@-]+/)*[\w+@-]*\.[A-Za-z]\w*)
  | (?P<number>(?:(?<![\w)\]])[-+])?(?<![\w.])\d+(?:[.,_]\d+)*\.?(?:[eE][-+]?\d+)?(?=\D|$))
    """,
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""(?<![\w\\])[bBrRuUfF]{0,2}(?P<mark>['"])(?P<inner>(?:(?!(?P=mark))[^\\]|\\.)*)(?P=mark)(?!\w)"""
)
_NAME_LIKE = re.compile(r"[\w.\-<>\[\]#/:…]{1,60}")
_STABLE_FILE = re.compile(r"[A-Za-z][A-Za-z_-]*(?:\.[A-Za-z]+)+")
_ADVICE = re.compile(r"[.;]? ?Did you (?:mean|forget to import)\b.*")
_NOT_FINITE = re.compile(r"(?<![\w.])[-+]?(?:nan|inf)(?!\w)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def normalise(message: str, kind: str) -> str:
    """The message of an exception of this kind, masked: `got 97` and `got 98` become `got #`.

    Assertions lose every value, because values are what a test compares. Lookups keep the quoted
    name, because the name is what tells two of them apart. The work is bounded on any input.
    """
    text = message[:INPUT_LIMIT].replace("\x00", " ")
    name = kind.rpartition(".")[2]
    for _ in range(_PASSES):
        before, text = text, _once(text, name)
        if text == before:
            break
    return text


def _once(text: str, name: str) -> str:
    if name.endswith(_ASSERTIONS):
        text = _mask_values(_statement(text))
    else:
        text = _ADVICE.sub("", _first_lines(text))
        if name == "RecursionError":
            # What was being called when the stack ran out is chance.
            text = text.partition(" exceeded")[0]
        text = _mask_quoted(text, keep_all=name.endswith(_LOOKUPS))
        text = _mask_literals(text)
    text = _VARYING.sub(_placeholder, text)
    return " ".join(text.split())[:OUTPUT_LIMIT].rstrip()


def _first_lines(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:_LINES])


def _statement(text: str) -> str:
    """The author's first line and the rewritten `assert …`; the diff below them is all values."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = lines[:1]
    if kept and not kept[0].startswith("assert "):
        kept += [line for line in lines[1:] if line.startswith("assert ")][:1]
    return " ".join(kept)


def _placeholder(match: re.Match[str]) -> str:
    group, text = match.lastgroup, match.group()
    if group == "done":
        return text
    if group == "number":
        return "#"
    if group == "address":
        return "0x…"
    if group == "path":
        last = re.split(r"[\\/]", text)[-1]
        stable = _STABLE_FILE.fullmatch(last) and not last.startswith("tmp")
        return f"<path>/{last}" if stable else "<path>"
    return f"<{group}>"


def _mask_quoted(text: str, *, keep_all: bool) -> str:
    def masked(match: re.Match[str]) -> str:
        inner = _VARYING.sub(_placeholder, match["inner"])
        if keep_all or _NAME_LIKE.fullmatch(inner):
            return f"'{inner}'"
        return "'…'"

    return _QUOTED.sub(masked, text)


def _mask_literals(text: str) -> str:
    """Lists and dictionaries quoted in a message: their length and content are data."""
    text = re.sub(r"\[[^\[\]]*,[^\[\]]*\]", "[…]", text)
    return re.sub(r"\{[^{}]*[,:][^{}]*\}", "{…}", text)


def _mask_values(text: str) -> str:
    """An assertion's text with every value masked, whatever container or call it sits in."""
    text = _NOT_FINITE.sub("#", _QUOTED.sub("'…'", text))
    closed = _closings(text)
    parts: list[str] = []
    at = 0
    while at < len(text):
        end = closed.get(at)
        if end is None or not _is_value(text, at, end):
            parts.append(text[at])
            at += 1
            continue
        parts.append(text[at] + "…" + _CLOSING[text[at]])
        at = end + 1
    return "".join(parts)


def _is_value(text: str, start: int, end: int) -> bool:
    """Parentheses that only group a comparison are read on; calls and containers are values."""
    if text[start] != "(":
        return True
    called = start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_]>")
    return called or "," in text[start:end]


def _closings(text: str) -> dict[int, int]:
    """Where each opened bracket ends, in one pass; what is never closed is left out.

    A shortened representation loses brackets in its middle; the closing one nearest in kind wins.
    """
    open_at: list[int] = []
    closed: dict[int, int] = {}
    for at, char in enumerate(text):
        if char in _CLOSING:
            open_at.append(at)
        elif char in ")]}":
            for depth in range(len(open_at) - 1, -1, -1):
                if _CLOSING[text[open_at[depth]]] == char:
                    closed[open_at[depth]] = at
                    del open_at[depth:]
                    break
    return closed

"""Python tracebacks, read from whatever a program printed around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from becausal.domain.recording import Frame, Raised

Own = Callable[[str], bool]

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_HEADER = "Traceback (most recent call last):"
_GROUP_HEADER = "Exception Group " + _HEADER
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9})(?:, in (?P<function>.+))?$')
_ENDING = re.compile(r"(?P<kind>[^\W\d][\w.]*(?:<locals>\.[\w.]+)*)(?:: ?(?P<message>.*))?$")
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_SYNTAX = ("SyntaxError", "IndentationError", "TabError")
_LINE_LIMIT = 4_000
_LOOK_AHEAD = 6


def tracebacks(text: str, own: Own) -> tuple[Raised, ...]:
    """All tracebacks in the order they were printed; a chain is one, its last link on top.

    `own` says whether a file belongs to the code under study. Of an exception group the first
    exception inside that is no group itself stands for all.
    """
    lines = [line[:_LINE_LIMIT].rstrip() for line in _ANSI.sub("", text).splitlines()]
    return tuple(_Reader(lines, own).read())


class _Link(msgspec.Struct):
    """One printed traceback, and the text around it that says how it hangs together."""

    raised: Raised
    group: bool
    depth: int
    """Column of the header: what is inside a group stands further right."""
    chained: bool


class _Reader:
    """Walks the lines once, from header to header."""

    def __init__(self, lines: Sequence[str], own: Own) -> None:
        self.lines = lines
        self.own = own
        self.at = 0
        self.chained = False

    def read(self) -> list[Raised]:
        links: list[_Link] = []
        while self.at < len(self.lines):
            link = self._link()
            if link is not None:
                links.append(link)
        return _joined(links)

    def _link(self) -> _Link | None:
        line = self.lines[self.at]
        group = _GROUP_HEADER in line
        column = line.find(_GROUP_HEADER if group else _HEADER)
        if column >= 0:
            self.at += 1
            raised = self._body(line[:column])
        elif line.startswith('  File "') and self._syntax_error_follows():
            column = 0
            raised = self._body("")
        else:
            self.chained = self.chained or line.endswith(_CHAINED)
            self.at += 1
            return None
        if raised is None:
            return None
        chained, self.chained = self.chained, False
        return _Link(raised=raised, group=group, depth=column, chained=chained)

    def _syntax_error_follows(self) -> bool:
        """A file that does not compile is reported without the usual first line."""
        match = _FRAME.search(self.lines[self.at])
        if match is None or match["function"] is not None:
            return False
        near = self.lines[self.at + 1 : self.at + _LOOK_AHEAD]
        return any(line.startswith(_SYNTAX) for line in near)

    def _body(self, prefix: str) -> Raised | None:
        """From the line after the header to the line that names the exception, and past it."""
        frames: list[Frame] = []
        place: tuple[str, int] | None = None
        cut = len(prefix)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if _HEADER in line:
                return None
            match = _FRAME.search(line)
            if match is not None:
                # The first level shows how wide the prefix of these lines really is.
                cut = cut if frames or place else max(match.start() - 2, 0)
                place = self._frame(match, frames)
                self.at += 1
                continue
            content = line[cut:]
            if content[:1].isspace() or not content:
                if not content and not frames and place is None:
                    return None
                self.at += 1
                continue
            self.at += 1
            return self._named(content, cut, frames, place)
        return None

    def _frame(self, match: re.Match[str], frames: list[Frame]) -> tuple[str, int] | None:
        file, line = match["file"], int(match["line"])
        if match["function"] is None:
            return file, line
        function = match["function"].strip()
        frames.append(Frame(file=file, function=function, line=line, own=self.own(file)))
        return None

    def _named(
        self,
        content: str,
        cut: int,
        frames: list[Frame],
        place: tuple[str, int] | None,
    ) -> Raised | None:
        match = _ENDING.match(content)
        if match is None:
            return None
        kind, message = match["kind"], match["message"] or ""
        if not message and match["message"] is not None:
            message = self._later_message(cut)
        if place is not None and kind.endswith(_SYNTAX):
            # As the exception itself would say it, so that both ways of seeing it agree.
            message = f"{message} ({place[0].rpartition('/')[2]}, line {place[1]})"
        return Raised(kind=kind, message=message, frames=tuple(frames))

    def _later_message(self, cut: int) -> str:
        """Some messages begin with an empty line; the next one with words says it."""
        for line in self.lines[self.at : self.at + 2]:
            content = line[cut:].strip()
            if content:
                return "" if _HEADER in content or content.endswith(_CHAINED) else content
        return ""


def _joined(links: Sequence[_Link]) -> list[Raised]:
    """Chains and groups put together: what is on top was raised last."""
    whole: list[Raised] = []
    at = 0
    while at < len(links):
        link = links[at]
        at += 1
        inside: list[_Link] = []
        while link.group and at < len(links) and links[at].depth > link.depth:
            inside.append(links[at])
            at += 1
        raised = _with_leaf(link.raised, inside) if inside else link.raised
        if link.chained and whole:
            raised = msgspec.structs.replace(raised, cause=whole.pop())
        whole.append(raised)
    return whole


def _with_leaf(group: Raised, inside: Sequence[_Link]) -> Raised:
    """The first exception within a group, saying of which group it is."""
    leaf = _joined(inside)[0]
    said = f"{leaf.message} [first of {group.kind}: {group.message}]"
    return msgspec.structs.replace(leaf, message=said, frames=leaf.frames or group.frames)

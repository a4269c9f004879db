"""Recordings: what the lab saw in one run, before anyone judges it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """One level of a traceback."""

    file: str
    """Relative to the top of the source when inside it, else as the program named it."""
    function: str
    line: int
    own: bool
    """In the code under study, not in a library or the interpreter."""


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """One exception as it surfaced; outermost frame first."""

    kind: str
    """Type name: bare for builtins (`ValueError`), dotted with its module otherwise."""
    message: str
    frames: tuple[Frame, ...] = ()
    cause: Raised | None = None
    """The exception it was raised from, or while handling."""


TestOutcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]


class TestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one test of a runner did. `error` is a failure outside the call: set-up, collection."""

    id: str
    outcome: TestOutcome
    seconds: float = 0.0
    raised: Raised | None = None
    text: str = ""
    """The runner's own words on the failure."""


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """A captured stream: its beginning, its end, and how much in between was only counted."""

    head: bytes = b""
    tail: bytes = b""
    dropped: int = 0

    def joined(self) -> bytes:
        if not self.dropped:
            return self.head + self.tail
        return self.head + b"\n[... %d bytes not kept ...]\n" % self.dropped + self.tail


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run says nothing about the failure: `could-not-run`, with advice."""

    slug: str
    what: str
    hint: str = ""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What the lab recorded of one run. Facts only; the outcome is judged from them."""

    exit_code: int | None = None
    """None when it did not end by itself."""
    signal: int | None = None
    timed_out: bool = False
    obstacle: Obstacle | None = None
    stdout: Output = Output()
    stderr: Output = Output()
    tests: tuple[TestReport, ...] = ()
    raised: Raised | None = None
    """The exception that ended a Python program that is no test run."""
    imported: tuple[str, ...] = ()
    """Files under the top of the source that the run imported, relative."""
    lines: dict[str, dict[str, list[int]]] = {}
    """Test id -> file -> lines run, when the condition asks for them."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    max_rss: int = 0
    seed: int = 0
    server: str = ""
    """Which warm server ran it; empty when cold."""
    isolation: tuple[str, ...] = ()
    """What kept it apart, e.g. `pid-namespace`, `overlay`, `files-shared`."""
    notes: tuple[str, ...] = ()
    """What a reader must know: options neutralised, choices made and why."""

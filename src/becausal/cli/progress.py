"""Progress for people: what is being learned, on standard error, only while it takes long."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from becausal.casework.reproduction_map import clip
from becausal.cli.output import write
from becausal.ports.progress import Progress

PATIENCE = 2.0
"""Seconds before anything is shown: quick commands stay silent."""
EVERY = 0.1
BAR = 24


class TerminalProgress(Progress):
    """One line that is rewritten; gone when the chapter ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._began = time.monotonic()
        self._shown_at = 0.0
        self._what = ""
        self._shown = False

    def begin(self, what: str) -> None:
        self._what = what
        self._show(f"{what} …", forced=True)

    def advance(self, done: int, total: int, learning: str) -> None:
        filled = BAR * done // total if total else 0
        bar = "█" * filled + "░" * (BAR - filled) if total else ""
        self._show(f"{self._what} {bar} {done}/{total}  {learning}", forced=done == total)

    def end(self) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
        self._shown = False

    def _show(self, line: str, *, forced: bool) -> None:
        now = time.monotonic()
        if now - self._began < PATIENCE or (now - self._shown_at < EVERY and not forced):
            return
        self._shown_at, self._shown = now, True
        self._stream.write("\r\x1b[K")
        write(self._stream, clip(line))
        self._stream.flush()


class NoProgress(Progress):
    """Nothing is shown: the reader is a program."""

    def begin(self, what: str) -> None: ...

    def advance(self, done: int, total: int, learning: str) -> None: ...

    def end(self) -> None: ...


def progress() -> Progress:
    """A moving line on a terminal; elsewhere none."""
    if not sys.stderr.isatty():
        return NoProgress()
    return TerminalProgress(sys.stderr)

"""Telling the person who waits what is being learned."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    def begin(self, what: str) -> None:
        """A chapter starts: `reproducing`, `preparing a workspace`, …"""

    def advance(self, done: int, total: int, learning: str) -> None:
        """So many of the trials asked for so far are in; `learning` says what they tell."""

    def end(self) -> None:
        """The chapter is over; nothing of it stays on the screen."""

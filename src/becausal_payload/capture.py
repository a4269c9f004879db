"""Bounded capture of a stream: its head and tail are kept, what lies between is counted."""

from __future__ import annotations

import mmap
import os
from typing import List, Optional, Tuple


class Capture:
    """Reads a pipe into fixed memory, however much comes through.

    The memory is mapped, not filled: a trial that prints little touches little of it.
    """

    def __init__(self, fd: int, limit: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._half = max(limit // 2, 1)
        self._head = memoryview(mmap.mmap(-1, self._half))
        self._ring: Optional[memoryview] = None
        self._seen = 0

    def pump(self) -> bool:
        """Take what the pipe holds now, at most once around; False once it has ended."""
        try:
            got = os.readv(self.fd, self._space())
        except BlockingIOError:
            return True
        self._seen += got
        return got > 0

    def drain(self) -> None:
        """Take all that is left; whoever wrote is gone."""
        while True:
            before = self._seen
            if not self.pump() or self._seen == before:
                return

    def kept(self) -> Tuple[List[memoryview], List[memoryview], int]:
        """Head and tail as pieces in order, and how many bytes between them were dropped."""
        head = [self._head[: min(self._seen, self._half)]]
        beyond = self._seen - self._half
        if beyond <= 0 or self._ring is None:
            return head, [], 0
        if beyond <= self._half:
            return head, [self._ring[:beyond]], 0
        place = beyond % self._half
        return head, [self._ring[place:], self._ring[:place]], beyond - self._half

    def _space(self) -> List[memoryview]:
        if self._seen < self._half:
            return [self._head[self._seen :]]
        if self._ring is None:
            self._ring = memoryview(mmap.mmap(-1, self._half))
        place = (self._seen - self._half) % self._half
        return [self._ring[place:], self._ring[:place]] if place else [self._ring]

"""The standard streams of a warm server, and how each trial gets its own in their place."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import List, Tuple

from becausal_payload import wire


class Spoken:
    """What was printed up to the collected tests: every trial says it again first.

    From here on the server's own streams are nameless files. Descriptors that code duplicated
    from them meanwhile (capture and faulthandler do) are found by the file they lead to, and lead
    to the trial's streams in the trial.
    """

    def __init__(self) -> None:
        self._files = [_nameless() for _ in range(3)]
        for number, fd in enumerate(self._files):
            os.dup2(fd, number)
        self._texts: Tuple[bytes, bytes] = (b"", b"")
        self._copies: List[Tuple[int, int]] = []
        self._no_input = False

    def end(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._texts = (self._read(1), self._read(2))
        marks = [_mark(fd) for fd in self._files]
        self._no_input = _mark(0) != marks[0]
        own = {0, 1, 2, *self._files}
        for fd in open_descriptors():
            if fd not in own and _mark(fd) in marks:
                self._copies.append((fd, marks.index(_mark(fd))))

    def again(self) -> None:
        """In a trial, whose own streams are in place already."""
        for fd, stream in self._copies:
            os.dup2(stream, fd, inheritable=False)
        if self._no_input:
            # pytest had closed standard input to the tests.
            os.dup2(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), 0)
        for number, text in enumerate(self._texts, 1):
            wire.write_all(number, text)

    def tail(self) -> str:
        """The last words, for the reason of a refusal."""
        sys.stdout.flush()
        sys.stderr.flush()
        return (self._read(1) + self._read(2))[-4096:].decode("utf-8", "replace")

    def _read(self, stream: int) -> bytes:
        fd = self._files[stream]
        return os.pread(fd, os.fstat(fd).st_size, 0)


def renew(fd: int) -> None:
    """Put a new empty file where one was open that all trials would share."""
    new = _nameless()
    os.dup2(new, fd, inheritable=False)
    os.close(new)


def open_descriptors() -> List[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # that of the listing itself
        found.append(int(name))
    return found


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("becausal")
    fd, path = tempfile.mkstemp()
    os.unlink(path)
    return fd


def _mark(fd: int) -> Tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino

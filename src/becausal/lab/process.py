"""The one boundary for short tool processes: argv, cwd, scrubbed environment, timeout, group
kill."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from becausal.domain.errors import CouldNotRun

MOST_OUTPUT = 256 * 1024 * 1024
"""Bytes kept of each stream; a tool that writes more is read to its end, but only counted."""

_PIECE = 1 << 16


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that ended by itself."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes
    dropped: int = 0
    """Bytes that were written beyond what is kept."""

    def complaint(self, most: int = 600) -> str:
        """The end of what it said on stderr, fit for an error message."""
        return self.stderr.decode("utf-8", "replace").strip()[-most:]


def clean_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The person's environment without `GIT_*`: a hook or alias that started us must not steer
    us."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept.update(changes or {})
    return kept


def run_tool(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    timeout: float = 600.0,
    input: bytes | None = None,
    check: bool = False,
    most: int = MOST_OUTPUT,
    keep: Sequence[int] = (),
) -> Completed:
    """Run one tool to its end and answer what it wrote.

    It gets a session of its own, and everything left in it is killed when the tool ends, when time
    is up, or when we are interrupted. `env` holds changes to the cleaned environment; `keep` are
    file descriptors that it inherits (a lease's lock, so that a tool which outlives us still
    fences).
    """
    if not Path(cwd).is_dir():
        raise CouldNotRun("folder-missing", "The folder to run in does not exist.", value=str(cwd))
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=clean_environment(env),
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=tuple(keep),
        )
    except FileNotFoundError as error:
        raise CouldNotRun(
            "tool-missing",
            f"The program {argv[0]} is not installed.",
            value=argv[0],
            hint="Install it, or put its folder on PATH.",
        ) from error
    except OSError as error:
        raise CouldNotRun("tool-failed", f"{argv[0]} cannot be started: {error}.") from error
    try:
        streams, dropped = _converse(process, argv, input, time.monotonic() + timeout, most)
    finally:
        _end(process)
    completed = Completed(
        argv=tuple(argv),
        exit_code=process.returncode,
        stdout=streams[0],
        stderr=streams[1],
        dropped=dropped,
    )
    if check and completed.exit_code != 0:
        raise CouldNotRun(
            "tool-failed",
            f"{argv[0]} ended with exit code {completed.exit_code}: {completed.complaint()}",
            value=" ".join(argv),
        )
    return completed


def _converse(
    process: subprocess.Popen[bytes],
    argv: Sequence[str],
    input: bytes | None,
    deadline: float,
    most: int,
) -> tuple[tuple[bytes, bytes], int]:
    """Feed and read until both streams end; a tool past its deadline is given up."""
    assert process.stdout is not None
    assert process.stderr is not None
    kept = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    dropped = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE)
        rest = memoryview(input or b"")
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise _late(argv)
            ready = selector.select(min(left, 0.5))
            if not ready and process.poll() is not None:
                break  # the tool has ended; a leftover child holds its streams open
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    rest = _feed(process.stdin, rest, selector)
                    continue
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                    continue
                room = max(0, most - len(kept[key.fd]))
                kept[key.fd] += piece[:room]
                dropped += max(0, len(piece) - room)
    try:
        process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise _late(argv) from error
    out, err = (bytes(kept[stream.fileno()]) for stream in (process.stdout, process.stderr))
    return (out, err), dropped


def _late(argv: Sequence[str]) -> CouldNotRun:
    return CouldNotRun("tool-timed-out", f"{argv[0]} did not end in time.", value=" ".join(argv))


def _feed(
    stdin: IO[bytes] | None, rest: memoryview, selector: selectors.BaseSelector
) -> memoryview:
    """Write what fits; the stream is closed when all is written or nobody reads any more."""
    assert stdin is not None
    try:
        rest = rest[os.write(stdin.fileno(), rest[:_PIECE]) :] if rest else rest
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        rest = rest[:0]
    if not rest:
        selector.unregister(stdin)
        with contextlib.suppress(BrokenPipeError):
            stdin.close()
    return rest


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the tool's session leader and group, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()

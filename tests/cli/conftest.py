"""A person at a command line: real processes in a home of their own, with or without a terminal."""

from __future__ import annotations

import errno
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

PROGRAM = Path(sys.executable).with_name("becausal")
CEILING = 120.0


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> Any:
        """Its one JSON object."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def widest(self) -> int:
        return max(map(len, self.out.splitlines()), default=0)


class Prompt:
    """Where the person stands, and what is set there."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "project"
        self.top.mkdir()
        (folder / "home").mkdir()
        self.env = {
            "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "BECAUSAL_CACHE": str(folder / "cache"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TERM": "xterm-256color",
        }

    def write(self, name: str, text: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *words: str, **changed: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(PROGRAM), *words],
            cwd=self.top,
            env=self.env,
            start_new_session=True,
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **changed,
            },
        )

    def run(self, *words: str) -> Said:
        process = self.start(*words)
        out, err = process.communicate(timeout=CEILING)
        return Said(code=process.returncode, out=out.decode(), err=err.decode())

    def terminal(self, *words: str) -> tuple[int, str, float]:
        """Run with standard error on a terminal: its code, what was shown, when it first was."""
        ours, theirs = pty.openpty()
        began = time.monotonic()
        process = self.start(*words, stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        shown, first = b"", 0.0
        while time.monotonic() - began < CEILING:
            if select.select([ours], [], [], 0.5)[0]:
                try:
                    data = os.read(ours, 65536)
                except OSError as error:
                    if error.errno == errno.EIO:  # nobody holds the other end any more
                        break
                    raise
                first = first or time.monotonic() - began
                shown += data
        os.close(ours)
        return process.wait(CEILING), shown.decode(), first


@pytest.fixture
def prompt(tmp_path: Path) -> Prompt:
    return Prompt(tmp_path)


@pytest.fixture
def with_case(prompt: Prompt) -> Prompt:
    """The same, in a project with one case that fails each time."""
    prompt.write("fails.sh", "echo some words; exit 3\n")
    done = prompt.run("reproduce", "--runs", "3", "--", "sh", "fails.sh")
    assert done.code == 0, done
    return prompt


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], bool]:
    """Whether a condition comes true in time."""

    def wait(condition: Callable[[], bool]) -> bool:
        end = time.monotonic() + CEILING
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    return wait

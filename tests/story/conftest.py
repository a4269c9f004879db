"""A person at a desk: a repository in the middle of work, the program itself, and who is alive."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from becausal.lab.stage import find_bubblewrap
from becausal.store.folder import open_store

PROGRAM = Path(sys.executable).with_name("becausal")
CEILING = 240.0
"""Seconds after which a run of the program hangs."""


class Ended:
    """What a finished run of the program left: its exit code and what it said."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def record(self) -> dict[str, Any]:
        """Its one JSON object."""
        (line,) = self.out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    def __repr__(self) -> str:
        return f"exit code {self.code}\n{self.out.decode()}\n{self.err.decode()}"


class Run:
    """The program while it runs, in a session of its own."""

    def __init__(self, argv: list[str], cwd: Path, env: Mapping[str, str], folder: Path) -> None:
        name = secrets.token_hex(4)
        self._out, self._err = folder / f"{name}-out", folder / f"{name}-err"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def dies_at(self, seconds: float, number: int = signal.SIGKILL) -> bool:
        """Send the signal at this moment of its life; False when it had ended before."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(number)
            return True
        return False

    def said_something(self) -> bool:
        return self._out.stat().st_size > 0

    def end(self, seconds: float = CEILING) -> Ended:
        """Wait for its end."""
        try:
            self.process.wait(seconds)
        finally:
            self.process.kill()
            self.process.wait()
        return Ended(self.process.returncode, self._out.read_bytes(), self._err.read_bytes())


class Desk:
    """A person's home, their repository, and the folders that becausal may use."""

    def __init__(self, folder: Path, top: Path | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.top = top or folder / "project"
        self.top.mkdir(parents=True, exist_ok=True)
        self.cache = folder / "cache"
        self.mark = secrets.token_hex(12)
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "BECAUSAL_CACHE": str(self.cache),
            "STORY_MARK": self.mark,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        self._below: tuple[str, ...] = ()
        self._runs: list[Run] = []

    @property
    def store(self) -> Path:
        return self.top / ".becausal"

    def write(self, files: Mapping[str, str | bytes]) -> Desk:
        for name, text in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self

    def git(self, *words: str, cwd: Path | None = None, check: bool = True) -> str:
        who = ["-c", "user.name=Mate", "-c", "user.email=mate@harbour.example"]
        who += ["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
        done = subprocess.run(
            ["git", *who, *words], cwd=cwd or self.top, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str | bytes], message: str = "work") -> Desk:
        """Write files and commit everything, in a repository made when there is none."""
        if not (self.top / ".git").exists():
            self.git("init", "--quiet")
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self

    def start(self, *words: str, cwd: Path | None = None, **env: str | None) -> Run:
        changed = {**self.env, **env}
        kept = {name: value for name, value in changed.items() if value is not None}
        argv = [*self._below, str(PROGRAM), *words]
        run = Run(argv, cwd or self.top, kept, self.folder)
        self._runs.append(run)
        return run

    def run(self, *words: str, cwd: Path | None = None, **env: str | None) -> Ended:
        return self.start(*words, cwd=cwd, **env).end()

    def reproduce(self, *words: str, cwd: Path | None = None, **env: str | None) -> Ended:
        """`becausal reproduce --json` to its end; nobody may be left of it."""
        ended = self.run("reproduce", "--json", *words, cwd=cwd, **env)
        assert self.nobody_left(), (ended, self.alive())
        return ended

    def python(self, *words: str) -> tuple[str, ...]:
        """A command under study: this interpreter with these words."""
        return ("--", sys.executable, *words)

    def pytest(self, *words: str) -> tuple[str, ...]:
        return self.python("-m", "pytest", "-p", "no:cacheprovider", *words)

    def shell(self, script: str) -> tuple[str, ...]:
        return ("--", "sh", "-c", script)

    def below(self, *words: str) -> Desk:
        """Start the program by another one, which is given its words."""
        self._below = words
        return self

    def without_bubblewrap(self) -> Desk:
        """A bubblewrap that does not work is found first."""
        folder = self.folder / "bin"
        folder.mkdir()
        fake = folder / "bwrap"
        fake.write_text("#!/bin/sh\necho 'bwrap: not permitted' >&2\nexit 1\n")
        fake.chmod(0o755)
        self.env["PATH"] = f"{folder}{os.pathsep}{self.env['PATH']}"
        return self

    def without_namespaces(self) -> Desk:
        """As in a container that forbids them: no rights, and no user namespace to get them in."""
        script = (
            "echo 0 >/proc/sys/user/max_user_namespaces &&"
            ' exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
        )
        return self.below("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")

    def artifact(self, trial: Any, name: str) -> bytes:
        """What was kept of a trial under this name."""
        store = open_store(self.store, readonly=True)
        try:
            return store.get(dict(trial.artifacts)[name])
        finally:
            store.close()

    def close(self) -> None:
        """End what a failed test left running."""
        for run in self._runs:
            run.process.kill()
            run.process.wait()
        assert self.nobody_left(), self.alive()

    def alive(self) -> list[str]:
        """Processes of ours: they bear our mark, or name our folders."""
        found = []
        for process in psutil.process_iter():
            try:
                words = shlex.join(process.cmdline())
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                marked = process.environ().get("STORY_MARK") == self.mark
                if marked or str(self.cache) in words:
                    found.append(f"{process.pid} {words}")
            except psutil.Error:
                continue
        return found

    def nobody_left(self, seconds: float = 20.0) -> bool:
        """Whether all processes of ours end in time."""
        return eventually(lambda: not self.alive(), seconds)

    def fingerprint(self, folder: Path | None = None) -> dict[str, tuple[Any, ...]]:
        """Every file but our own store: bytes, mode, and the times of change that no call resets.

        The top itself only with its mode: making `.becausal` in it moves its time.
        """
        top = folder or self.top
        found: dict[str, tuple[Any, ...]] = {"": (os.lstat(top).st_mode,)}
        for here, folders, files in os.walk(top):
            if here == str(top) and ".becausal" in folders:
                folders.remove(".becausal")
            for name in (*folders, *files):
                path = os.path.join(here, name)
                found[os.path.relpath(path, top)] = _state(path)
        return found

    def trials(self) -> dict[Any, Any]:
        """The recorded trials by their place: case and key."""
        if not (self.store / "journal.db").exists():
            return {}
        store = open_store(self.store)
        try:
            return {(case, t.key): t for case in store.cases() for t in store.trials(case)}
        finally:
            store.close()

    def journal(self) -> list[Any]:
        """All events of all cases."""
        if not (self.store / "journal.db").exists():
            return []
        store = open_store(self.store)
        try:
            return [entry.event for case in store.cases() for entry in store.journal(case)]
        finally:
            store.close()


def _state(path: str) -> tuple[Any, ...]:
    state = os.lstat(path)
    content = ""
    if stat.S_ISLNK(state.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(state.st_mode):
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    times = (state.st_mtime_ns, state.st_ctime_ns)
    if "/objects/" in path and stat.S_ISREG(state.st_mode):
        # git marks an object as fresh when a capture needs the same one: only its times move.
        times = (0, 0)
    return (state.st_mode, *times, state.st_ino, content)


def eventually(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., bool]:
    """Whether a condition comes true in time."""
    return eventually


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "desk")
    yield made
    made.close()


@pytest.fixture
def make_desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    """Desks at chosen places."""
    made: list[Desk] = []

    def make(top: str = "desk/project") -> Desk:
        made.append(Desk(tmp_path / "desk", tmp_path / top))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def sandboxed() -> bool:
    """Whether the sandbox works here; to be required where all must."""
    found = find_bubblewrap()
    if not found.path and os.environ.get("BECAUSAL_REQUIRE_ALL") == "1":
        pytest.fail(found.reason)
    return bool(found.path)

"""Cold trials: any command, each in a fresh process of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from becausal.domain.condition import Command
from becausal.domain.recording import Obstacle, Recording
from becausal.lab.environment import Injection, person_environment, trial_environment
from becausal.lab.interpreter import Interpreter, editable_folders, find_interpreter
from becausal.lab.payload_home import payload_home, spawner_argv
from becausal.lab.pyc import pyc_folder
from becausal.lab.recognise import PytestCommand, recognise
from becausal.lab.redaction import Redactor
from becausal.lab.server import Server, ServerDied
from becausal.lab.stage import Bubblewrap, Grounds, build_stage
from becausal.ports.lab import Order
from becausal.probes.decode import decode
from becausal_payload import wire


class Leased(Protocol):
    """What is needed of a leased workspace."""

    path: str
    top: str

    @property
    def fence(self) -> int: ...

    @property
    def links(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def objects(self) -> tuple[tuple[str, str], ...]: ...


class ColdRunner:
    """Runs orders on one workspace as it is now, one at a time; made anew when its source changes.

    `source` names the content of the workspace: bytecode is kept by it. Where trials cannot be kept
    from changing files, the recording's isolation says `files-shared`, and the caller restores.
    """

    def __init__(
        self,
        lease: Leased,
        command: Command,
        *,
        source: str,
        cache: Path,
        environment: Mapping[str, str] | None = None,
        network: bool = True,
        bubblewrap: Bubblewrap | None = None,
        without: tuple[str, ...] = (),
    ) -> None:
        self._lease = lease
        self.person = person_environment(environment)
        self._cache = cache.absolute()
        self._without = without
        self.home = payload_home(self._cache)
        self.scratch = self._cache / "scratch" / f"cold-{os.getpid()}-{secrets.token_hex(4)}"
        self.scratch.mkdir(parents=True)
        (self._cache / "pyc").mkdir(exist_ok=True)
        self.cwd = os.path.normpath(os.path.join(lease.top, command.cwd))
        found = recognise(command.argv, self.person, self.cwd)
        self._deaf = isinstance(found, PytestCommand) and not found.reads_environment
        self.interpreter = find_interpreter(command.argv, self.person, self.cwd)
        self.stage = build_stage(self._grounds(command), network=network, bubblewrap=bubblewrap)
        self._injection = self._inject(source)
        self._server: Server | None = None
        self._running: int | None = None
        self._turn = threading.Lock()
        self._closed = False

    def run(self, order: Order, *, input: bytes | None = None) -> Recording:
        """Run one order. A server that dies is an obstacle of this trial; the next gets another."""
        folder = self.scratch / f"trial-{secrets.token_hex(6)}"
        folder.mkdir()
        try:
            request = self.request(order, folder, input)
            redactor = Redactor(request["env"])
            try:
                answer = self._ask(request)
            except ServerDied as death:
                obstacle = Obstacle(slug=death.slug, what=death.what, hint=death.hint)
                recording = Recording(obstacle=obstacle, seed=order.seed, notes=self.stage.notes)
                return redactor.redact_recording(recording)
            recording = decode(answer, self.stage)
            recording = msgspec.structs.replace(recording, seed=order.seed)
            return redactor.redact_recording(recording)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def cancel(self) -> None:
        """End the trial that runs now, from any thread."""
        server, ticket = self._server, self._running
        if server is not None and ticket is not None:
            server.cancel(ticket)

    def close(self) -> None:
        """End the server and whatever it has started."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> ColdRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, request: wire.Message) -> wire.Message:
        with self._turn:
            if self._server is None:
                self._server = self._start()
            self._running = request["ticket"]
            try:
                return self._server.run(request)
            except ServerDied:
                self._server = None
                raise
            finally:
                self._running = None

    def _start(self) -> Server:
        env = {"PATH": self.person.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        if self._without:
            env["BECAUSAL_WITHOUT"] = " ".join(self._without)
        return Server(
            [*self.stage.prefix, *spawner_argv(self.home)],
            env=env,
            keep=(self.fence,),
        )

    @property
    def fence(self) -> int:
        """Open file of the lease: who inherits it keeps the workspace from being given away."""
        return self._lease.fence

    def request(self, order: Order, folder: Path, input: bytes | None) -> wire.Message:
        """What a server is asked; `folder` is the trial's alone, for its input and its reports."""
        condition = order.condition
        stage = self.stage
        cwd = os.path.normpath(os.path.join(stage.top, condition.command.cwd))
        report = folder / "report"
        env = trial_environment(
            self.person,
            stage=stage,
            cwd=cwd,
            declared=condition.environment,
            injection=msgspec.structs.replace(self._injection, report=str(report)),
            hash_seed=order.hash_seed,
            seed=order.seed,
        )
        if condition.lines:
            env["BECAUSAL_LINES"] = "1"
        if self._deaf:
            # With -I or -E it would not find the plugin on PYTHONPATH, and would end for that.
            env["PYTEST_PLUGINS"] = self.person.get("PYTEST_PLUGINS", "")
        stdin = None
        if input is not None:
            stdin = str(folder / "input")
            Path(stdin).write_bytes(input)
        return {
            "ticket": order.ticket,
            "argv": [stage.inside(word) for word in condition.command.argv],
            "cwd": cwd,
            "env": env,
            "stdin": stdin,
            "limits": {"seconds": condition.limits.seconds, "memory": condition.limits.memory},
            "overlay": list(stage.throwaway),
            "overlay_too": list(stage.throwaway_too),
            "without": list(self._without),
        }

    def _grounds(self, command: Command) -> Grounds:
        lease = self._lease
        python = os.path.realpath(sys.executable)
        interpreter = () if self.interpreter is None else self.interpreter.folders
        searched = [
            path
            for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
            for path in self.person.get(name, "").split(os.pathsep)
            if os.path.isabs(path)
        ]
        named = [word for word in command.argv if os.path.isabs(word)]
        real = [os.path.realpath(path) for path in (python, *interpreter)]
        return Grounds(
            top=lease.top,
            workspace=lease.path,
            links=tuple(os.path.relpath(person, lease.top) for _, person in lease.links),
            borrowed=lease.objects,
            writable=(str(self.scratch), str(self._cache / "pyc")),
            readable=(str(self._cache), sys.base_prefix, *real, *interpreter, *searched, *named),
        )

    def _inject(self, source: str) -> Injection:
        python = self.interpreter
        stage = self.stage
        roots = [stage.top, os.path.realpath(stage.top)]
        ahead: list[str] = []
        if not stage.sandboxed:
            roots += [stage.grounds.top, os.path.realpath(stage.grounds.top)]
            folders = () if python is None else editable_folders(python.packages, self._lease.top)
            ahead = [os.path.normpath(os.path.join(stage.top, folder)) for folder in folders]
        return Injection(
            payload_home=str(self.home),
            pyc=str(self._pyc(source, python)),
            report="",
            roots=tuple(dict.fromkeys(roots)),
            ahead=tuple(ahead),
        )

    def _pyc(self, source: str, python: Interpreter | None) -> Path:
        if python is None:
            return pyc_folder(self._cache, source, (), "")
        start = self.stage.grounds.top.rstrip("/") + "/"
        links = tuple(start + link for link in self.stage.grounds.links)
        shared = [
            folder
            for folder in (*python.library, *python.packages)
            if not folder.startswith(start) or folder.startswith(links)
        ]
        return pyc_folder(self._cache, source, shared, python.executable + python.version)

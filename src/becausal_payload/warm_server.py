"""What the warm server does once it can import its own package."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import types
from typing import Any, Dict, List, NoReturn

from becausal_payload import fork_safety, imports, keeper, spawner, streams, warm_trial, wire
from becausal_payload.freshness import Freshness
from becausal_payload.pytest_session import OpenSession, Refused

_REPORTER = "becausal_payload.report_plugin"


def serve(fd: int) -> NoReturn:
    """Collect as told, then run orders until nobody is left to give one."""
    os.set_inheritable(fd, False)
    wire.send(fd, {"hello": {"pid": os.getpid(), "python": sys.version.split()[0]}})
    message = wire.receive(fd)
    if message is None:
        os._exit(0)
    spoken = streams.Spoken()
    try:
        server = _Server(fd, message["open"], spoken)
    except Refused as no:
        refused = {"slug": no.slug, "what": no.what, "hint": no.hint, "said": spoken.tail()}
        wire.send(fd, {"refused": refused})
        keeper.end_everything()
        os._exit(0)
    wire.send(fd, {"ready": server.greeting()})
    while True:
        message = wire.receive(fd)
        if message is None:
            server.close()
            keeper.end_everything()
            os._exit(0)
        if "run" in message:  # else it cancels a trial that had ended when the word came
            wire.send(fd, server.answer(message["run"]))


class _Server:
    """An open session and all that its trials share."""

    def __init__(self, fd: int, opening: Dict[str, Any], spoken: streams.Spoken) -> None:
        self._fd = fd
        self._roots = imports.given_roots()
        self._environment = dict(os.environ)
        _become_pytest(opening["program"], opening["module"], opening["arguments"])
        self._session = OpenSession(opening["arguments"])
        objection = fork_safety.find_objection((fd,))
        if objection is not None:
            raise Refused(*objection)
        self._spoken = spoken
        self._spoken.end()
        self._last_import = imports.last_import()
        self._imported = imports.imported_files(self._roots)
        inipath = getattr(self._session.config, "inipath", None)
        self._fresh = Freshness(self._imported + ([str(inipath)] if inipath else []))
        self._scratch = tempfile.mkdtemp(prefix="becausal-warm-")
        self._changes = {
            name: value
            for name, value in os.environ.items()
            if self._environment.get(name) != value
        }
        self._removed = set(self._environment) - set(os.environ)
        # Children must not copy the heap page by page for the collector's marks.
        gc.collect()
        gc.freeze()

    def greeting(self) -> Dict[str, Any]:
        notes = list(self._session.notes)
        threads = fork_safety.native_threads()
        if threads:
            notes.append("%d threads of a numeric library are left out of trials" % threads)
        return {
            "tests": len(self._session.session.items),
            "notes": notes,
        }

    def answer(self, order: Dict[str, Any]) -> Dict[str, Any]:
        stale = self._fresh.changed()
        if stale:
            return {"stale": stale[:20]}
        unknown = self._session.unknown(order.get("tests") or ())
        if unknown:
            return {"unknown": unknown}
        temp = os.path.join(self._scratch, "trial-%d" % order["ticket"])
        order = dict(order, env=self._with_changes(order["env"]))
        trial = warm_trial.WarmTrial(
            order, self._session, self._spoken, temp, self._roots, self._last_import
        )
        sys.stdout.flush()
        sys.stderr.flush()
        result = keeper.run_kept(order, trial.start, self._fd)
        _remove(temp)
        told = warm_trial.gathered(result["side_b64"], self._imported)
        told["processes"] += spawner.gather(order)["processes"]
        result["side_b64"] = wire.as_text(json.dumps(told).encode())
        return {"ran": result}

    def close(self) -> None:
        _remove(self._scratch)

    def _with_changes(self, env: Dict[str, str]) -> Dict[str, str]:
        """The trial's environment, with what conftests and plugins did to it at import."""
        env = {name: value for name, value in env.items() if name not in self._removed}
        env.update(self._changes)
        env.pop("BECAUSAL_SEED", None)
        return env


def _become_pytest(program: str, module: bool, arguments: List[str]) -> None:
    """Look like the process that the command would have started."""
    sys.argv[:] = [program, *arguments]
    names = os.environ.get("PYTEST_PLUGINS", "").split(",")
    left = ",".join(name for name in names if name and name != _REPORTER)
    os.environ.pop("PYTEST_PLUGINS", None)
    if left:
        os.environ["PYTEST_PLUGINS"] = left
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        folder = os.getcwd() if module else os.path.dirname(os.path.realpath(program))
        sys.path.insert(0, folder)
    if module:
        found = importlib.util.find_spec("pytest")
        if found is None or found.origin is None:
            raise Refused("pytest-missing", "this Python has no pytest: %s" % sys.executable)
        program = sys.argv[0] = os.path.join(os.path.dirname(found.origin), "__main__.py")
    main = types.ModuleType("__main__")
    main.__file__ = program
    main.__dict__["__builtins__"] = __builtins__
    if module:
        # What multiprocessing asks when it has to import the main module again in a child.
        main.__spec__ = importlib.util.spec_from_file_location("pytest.__main__", program)
    sys.modules["__main__"] = main


def _remove(folder: str) -> None:
    """A test may leave folders that even their owner cannot list."""
    if not os.path.lexists(folder):
        return
    os.chmod(folder, 0o700)
    for path, folders, _ in os.walk(folder):
        for name in folders:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(folder)

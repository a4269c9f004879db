"""One warm trial: what its process does between the fork and its end."""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import threading
from typing import Any, Dict, List, NoReturn

from becausal_payload import imports, seeds, wire
from becausal_payload.lines import Lines, LinesOfTests
from becausal_payload.pytest_session import OpenSession
from becausal_payload.streams import Spoken


class WarmTrial:
    """Prepares the forked process and runs the session's second half in it."""

    def __init__(
        self,
        order: Dict[str, Any],
        session: OpenSession,
        spoken: Spoken,
        temp: str,
        roots: List[str],
        last_import: str,
    ) -> None:
        self._order = order
        self._session = session
        self._spoken = spoken
        self._temp = temp
        self._roots = roots
        self._last_import = last_import
        self._tmpdir = os.environ.get("TMPDIR")
        self._side = -1
        self._pid = 0

    def start(self, side: int) -> NoReturn:
        self._side, self._pid = side, os.getpid()
        self._spoken.again()
        # Exit functions of the server's imports belong to the server; the trial's own will run.
        atexit._clear()
        if os.environ.get("TMPDIR") != self._tmpdir:
            tempfile.tempdir = None
        seeds.reseed(int(self._order["seed"]))
        if hasattr(sys, "monitoring"):
            sys.monitoring.restart_events()
        if self._order.get("lines"):
            self._session.config.pluginmanager.register(LinesOfTests(self._roots, self._tell_lines))
        code = self._session.run(self._order, self._temp, self._tell_test)
        self._tell({"imported": imports.imported_files(self._roots, self._last_import)})
        # As at the end of an interpreter: threads that are no daemons are waited for.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def _tell_test(self, record: Dict[str, Any]) -> None:
        self._tell(record)

    def _tell_lines(self, test: str, lines: Lines) -> None:
        self._tell({"lines": {test: lines}})

    def _tell(self, record: Dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            return  # a child that a test forked and that runs on as if it were the session
        data = json.dumps(record).encode() + b"\n"
        try:
            wire.write_all(self._side, data)
        except OSError as broken:
            # A test closed what it did not open; without its reports the trial must not pass.
            os.write(2, ("becausal: the test closed the report's pipe: %s\n" % broken).encode())
            os._exit(3)


def gathered(side_b64: str, imported: List[str]) -> Dict[str, Any]:
    """The records of a trial as one object, with the files that the server imported for it."""
    tests: List[Any] = []
    found = set(imported)
    for line in wire.as_bytes(side_b64).split(b"\n"):
        if not line:
            continue
        try:
            record = json.loads(line.decode())
        except ValueError:
            continue  # cut short by the end of the trial; what came before stands
        if "imported" in record:
            found.update(record["imported"])
        else:
            tests.append(record)
    processes = [{"imported": sorted(found), "raised": None}]
    return {"processes": processes, "tests": tests}

"""Commands that cannot be served warm are refused, with a reason that a person can act on."""

from __future__ import annotations

from typing import Any

import pytest

PASSES = "def test_it(): pass\n"


@pytest.mark.parametrize(
    ("conftest", "reason"),
    [
        (
            "import threading\n"
            "threading.Thread(target=threading.Event().wait, name='poller', daemon=True).start()\n",
            "starts threads at import: poller",
        ),
        (
            "import subprocess, sys\n"
            "child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n",
            "child processes",
        ),
        ("import asyncio\nloop = asyncio.new_event_loop()\n", "event loop is open"),
        ("import socket\npair = socket.socketpair()\n", "opens a socket"),
        ("import sys, types\nsys.modules['grpc._cython.cygrpc'] = types\n", "grpc"),
        ("raise LookupError('no luck')\n", "no luck"),
        ("import pytest\npytest.exit('stop here')\n", "stop here"),
        ("raise SystemExit(3)\n", "3"),
        ("import os\nos._exit(4)\n", "ended while it collected"),
        ("import ctypes\nctypes.string_at(0)\n", "ended while it collected"),
    ],
)
def test_conftest_that_cannot_be_forked_is_refused(
    project: Any, conftest: str, reason: str
) -> None:
    project.write({"conftest.py": conftest, "test_a.py": PASSES})
    warming = project.warm().warming()
    assert not warming.possible
    assert reason in warming.reason


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("test_broken.py",), "cannot be collected"),
        (("test_none.py",), "collects no test"),
        (("test_a.py::test_missing",), "not found"),
        (("--no-such-option",), "--no-such-option"),
        (("--collect-only",), "something else than a run"),
        (("--pdb",), "waits for a person"),
    ],
)
def test_command_that_is_no_run_is_refused(
    project: Any, arguments: tuple[str, ...], reason: str
) -> None:
    project.write(
        {"test_a.py": PASSES, "test_broken.py": "import no_such_module\n", "test_none.py": ""}
    )
    runner = project.warm(*arguments)
    warming = runner.warming()
    assert not warming.possible
    assert reason in warming.reason
    obstacle = runner.run().obstacle
    assert obstacle is not None
    assert (obstacle.slug, obstacle.what) == ("warm-refused", warming.reason)


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("test_none.py",), "no-tests"),
        (("test_a.py::test_missing",), "test-not-found"),
        (("test_missing.py",), "test-not-found"),
        (("--no-such-option",), "pytest-usage"),
    ],
)
def test_cold_run_of_nothing_is_an_obstacle(
    project: Any, arguments: tuple[str, ...], slug: str
) -> None:
    project.write({"test_a.py": PASSES, "test_none.py": ""})
    obstacle = project.cold(*arguments).obstacle
    assert obstacle is not None
    assert obstacle.slug == slug


@pytest.mark.parametrize(
    ("files", "test", "kind"),
    [
        ({"test_b.py": "import no_such\n"}, "test_b.py", "ModuleNotFoundError"),
        ({"test_b.py": "def (\n"}, "test_b.py", "SyntaxError"),
        ({"conftest.py": "1 / 0\n", "test_b.py": PASSES}, "conftest.py", "ZeroDivisionError"),
    ],
)
def test_cold_run_that_cannot_collect_has_failed(
    project: Any, files: dict[str, str], test: str, kind: str
) -> None:
    recording = project.write(files).cold()
    assert recording.obstacle is None
    assert recording.tests[0].id.endswith(test)
    assert recording.tests[0].outcome == "error"
    assert recording.tests[0].raised is not None
    assert recording.tests[0].raised.kind == kind

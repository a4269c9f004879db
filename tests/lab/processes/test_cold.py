"""Cold trials on a workspace: the right code runs, and the person's tree is untouched."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

PROGRAM = "import where\nprint(where.NAME)\n"


def test_the_workspaces_code_runs_where_the_person_has_theirs(ground: Any) -> None:
    ground.write("where.py", "NAME = 'person'\n", "NAME = 'workspace'\n")
    ground.write("program.py", PROGRAM)
    argv = (sys.executable, "program.py")
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert (ran.exit_code, ran.obstacle, ran.stdout.head) == (0, None, b"workspace\n")
    assert set(ran.imported) >= {"where.py"}


def test_absolute_paths_of_the_person_lead_to_the_workspace(ground: Any) -> None:
    ground.write("where.py", "NAME = 'person'\n", "NAME = 'workspace'\n")
    ground.write("program.py", PROGRAM)
    ground.environment["PYTHONPATH"] = str(ground.top)
    argv = (sys.executable, str(ground.top / "program.py"))
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert (ran.obstacle, ran.stdout.head) == (None, b"workspace\n")


@pytest.mark.parametrize("style", ["path", "finder"])
def test_editable_install_runs_the_workspaces_code(
    ground: Any, venv: Callable[[Path], Path], style: str
) -> None:
    ground.write("src/pack/__init__.py", "NAME = 'person'\n", "NAME = 'workspace'\n")
    packages = venv(ground.top / ".venv")
    if style == "path":
        (packages / "pack.pth").write_text(f"{ground.top}/src\n")
    else:
        finder = (
            "import sys, importlib.machinery\n"
            f"MAPPING = {{'pack': '{ground.top}/src/pack'}}\n"
            "class Finder:\n"
            "    @staticmethod\n"
            "    def find_spec(name, path=None, target=None):\n"
            "        if name in MAPPING:\n"
            "            from importlib.util import spec_from_file_location\n"
            "            place = MAPPING[name] + '/__init__.py'\n"
            "            return spec_from_file_location(name, place)\n"
            "def install(): sys.meta_path.append(Finder)\n"
        )
        (packages / "__editable___pack_finder.py").write_text(finder)
        hook = "import __editable___pack_finder; __editable___pack_finder.install()\n"
        (packages / "__editable__.pack.pth").write_text(hook)
    ground.link(".venv")
    argv = (str(ground.top / ".venv/bin/python"), "-c", "import pack; print(pack.NAME)")
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert (ran.obstacle, ran.stdout.head) == (None, b"workspace\n"), ran.stderr
    assert ran.imported == ("src/pack/__init__.py",)


def test_code_of_the_persons_tree_makes_no_trial(ground: Any) -> None:
    ground.write("src/pack.py", "NAME = 'person'\n", "NAME = 'workspace'\n")
    place = str(ground.top / "src")
    code = f"import sys; sys.path.insert(0, {place!r}); import pack; print(pack.NAME)"
    argv = (sys.executable, "-c", code)
    ran = ground.runner(*argv).run(ground.order(*argv))
    if ground.sandboxed:
        assert (ran.obstacle, ran.stdout.head) == (None, b"workspace\n")
    else:
        assert ran.obstacle.slug == "ran-original-code"
        assert "src/pack.py" in ran.obstacle.what


def test_quick_same_size_changes_never_run_stale_bytecode(ground: Any) -> None:
    ground.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ground.write("program.py", PROGRAM)
    argv = (sys.executable, "program.py")
    for turn in range(6):
        source, name = f"s{turn % 2}", "ab"[turn % 2]
        ground.write("where.py", f"NAME = '{name}'\n")
        os.utime(ground.workspace / "where.py", (1_700_000_000, 1_700_000_000))
        with ground.runner(*argv, source=source) as runner:
            assert runner.run(ground.order(*argv)).stdout.head == f"{name}\n".encode()
    assert list((ground.cache / "pyc").rglob("where.*.pyc"))  # bytecode was written at all


def test_bytecode_of_the_library_is_shared_between_sources(ground: Any) -> None:
    ground.environment.pop("PYTHONDONTWRITEBYTECODE", None)
    argv = (sys.executable, "-c", "import xml.dom.pulldom")
    for source in ("one", "two"):
        with ground.runner(*argv, source=source) as runner:
            assert runner.run(ground.order(*argv)).exit_code == 0
    files = [p for p in (ground.cache / "pyc").rglob("pulldom.*.pyc") if "env-" in str(p)]
    assert len(files) == 1


def test_the_persons_tree_is_untouched_and_home_too(ground: Any) -> None:
    ground.write("file", "as it was")
    argv = ("sh", "-c", "echo new > file; echo more > other; cat file")
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert ran.stdout.head == b"new\n"
    assert (ground.top / "file").read_text() == "as it was"
    assert not (ground.top / "other").exists()
    shared = "files-shared" in ran.isolation
    assert (ground.workspace / "other").exists() is shared


def test_private_temp_is_empty_in_every_trial_of_the_sandbox(ground: Any) -> None:
    if not ground.sandboxed:
        pytest.skip("only the sandbox has a private /tmp")
    argv = ("sh", "-c", "test ! -e /tmp/mine && echo x > /tmp/mine")
    runner = ground.runner(*argv)
    assert [runner.run(ground.order(*argv)).exit_code for _ in range(2)] == [0, 0]
    assert not Path("/tmp/mine").exists()


def test_a_file_named_below_the_private_temp_can_be_read(ground: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("the input")
    argv = ("cat", str(data))
    assert ground.runner(*argv).run(ground.order(*argv)).stdout.head == b"the input"


def test_network_can_be_taken_away(ground: Any) -> None:
    argv = ("sh", "-c", "cat /proc/net/dev | wc -l")
    ran = ground.runner(*argv, network=False).run(ground.order(*argv))
    if ground.sandboxed:
        assert "no-network" in ran.isolation
        assert int(ran.stdout.head) <= 12
        shown = ("cat", "/proc/net/route")
        with ground.runner(*shown, network=False) as runner:
            assert len(runner.run(ground.order(*shown)).stdout.head.splitlines()) <= 1
    else:
        assert any("network" in note for note in ran.notes)


def test_exception_of_a_program_is_recorded_with_its_own_frames(ground: Any) -> None:
    ground.write("broken.py", "import json\ndef fall():\n    json.loads('{')\nfall()\n")
    argv = (sys.executable, "broken.py")
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert ran.raised.kind == "json.decoder.JSONDecodeError"
    own = [(frame.file, frame.function) for frame in ran.raised.frames if frame.own]
    assert own == [("broken.py", "<module>"), ("broken.py", "fall")]


def test_pytest_run_cold_reports_its_tests(ground: Any) -> None:
    ground.write("test_it.py", "def test_good(): pass\ndef test_bad(): assert 1 == 2\n")
    argv = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_it.py")
    ran = ground.runner(*argv).run(ground.order(*argv))
    assert ran.exit_code == 1, ran.stderr
    assert {t.id: t.outcome for t in ran.tests} == {
        "test_it.py::test_good": "passed",
        "test_it.py::test_bad": "failed",
    }
    assert "test_it.py" in ran.imported


def test_hash_seed_and_declared_changes_reach_the_program(ground: Any) -> None:
    ground.environment["GONE"] = "1"
    ground.environment["GIT_DIR"] = "/nowhere"
    code = (
        "from os import environ as e\n"
        "print(e['PYTHONHASHSEED'], e['NEW'], 'GONE' in e, 'GIT_DIR' in e)\n"
    )
    argv = (sys.executable, "-c", code)
    ran = ground.runner(*argv).run(ground.order(*argv, NEW="x", GONE=None))
    assert ran.stdout.head == b"7 x False False\n"
    assert ran.seed == 11


def test_input_is_given_and_secrets_are_masked(ground: Any) -> None:
    ground.environment["API_TOKEN"] = "hush-hush-123"
    argv = ("sh", "-c", "cat; echo $API_TOKEN >&2")
    ran = ground.runner(*argv).run(ground.order(*argv), input=b"a\xffb")
    assert ran.stdout.head == b"a\xffb"
    assert ran.stderr.head == b"[secret:API_TOKEN]\n"


def test_dead_server_is_an_obstacle_and_the_next_trial_runs(
    ground: Any, until: Callable[[Callable[[], bool]], bool]
) -> None:
    import threading

    argv = ("sh", "-c", "setsid sleep 300 & sleep 300")
    runner = ground.runner(*argv)
    answers: list[Any] = []
    order = ground.order(*argv, MARK=f"cold-{os.getpid()}-{id(runner)}")
    thread = threading.Thread(target=lambda: answers.append(runner.run(order)))
    thread.start()
    server: list[psutil.Process] = []

    def asleep() -> bool:
        family = psutil.Process().children(recursive=True)
        server[:] = [p for p in family if _is_spawner(p)]
        return sum(_named(p) == "sleep" for p in family) >= 2

    assert until(asleep)
    family = server[0].children(recursive=True)
    server[0].send_signal(signal.SIGKILL)
    thread.join(30)
    assert answers[0].obstacle.slug == "server-died"
    assert until(lambda: not any(_living(p) for p in family))
    assert runner.run(ground.order("true")).exit_code == 0


def _is_spawner(process: psutil.Process) -> bool:
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return len(line) > 3 and line[1] == "-I" and line[3].endswith("spawner.py")


def _named(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _living(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_program_in_the_private_folder_of_temporary_files_is_found(
    ground: Any, tmp_path: Path
) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    ran = ground.runner(str(tool)).run(ground.order(str(tool)))
    assert (ran.exit_code, ran.obstacle) == (3, None)

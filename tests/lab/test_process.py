"""The boundary for tool processes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from becausal.domain.errors import CouldNotRun
from becausal.lab.process import clean_environment, run_tool


def test_answers_output_and_exit_code(tmp_path: Path) -> None:
    done = run_tool(["sh", "-c", "cat; echo no >&2; exit 3"], cwd=tmp_path, input=b"yes")
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"yes", b"no\n")


def test_checked_failure_tells_what_the_tool_said(tmp_path: Path) -> None:
    with pytest.raises(CouldNotRun, match="no such thing") as refused:
        run_tool(["sh", "-c", "echo no such thing >&2; exit 1"], cwd=tmp_path, check=True)
    assert refused.value.slug == "tool-failed"


def test_without_input_the_tool_reads_nothing(tmp_path: Path) -> None:
    assert run_tool(["cat"], cwd=tmp_path, timeout=20).stdout == b""


def test_large_input_to_a_tool_that_does_not_read_is_no_error(tmp_path: Path) -> None:
    assert run_tool(["true"], cwd=tmp_path, input=b"x" * 10_000_000).exit_code == 0


def test_flood_is_counted_and_not_kept(tmp_path: Path) -> None:
    done = run_tool(["head", "-c", "5000000", "/dev/zero"], cwd=tmp_path, most=1000)
    assert (len(done.stdout), done.dropped) == (1000, 4_999_000)


def test_tool_past_its_time_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "child"
    script = f"sleep 600 & echo $! > {note}; wait"
    with pytest.raises(CouldNotRun) as refused:
        run_tool(["sh", "-c", script], cwd=tmp_path, timeout=1.0)
    assert refused.value.slug == "tool-timed-out"
    assert _gone(int(note.read_text()))


def test_leftover_child_does_not_hold_up_and_is_killed(tmp_path: Path) -> None:
    start = time.monotonic()
    done = run_tool(["sh", "-c", "sleep 600 & echo $!"], cwd=tmp_path)
    assert time.monotonic() - start < 30
    assert _gone(int(done.stdout))


def test_git_variables_are_kept_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("KEPT", "1")
    assert "GIT_DIR" not in clean_environment()
    done = run_tool(["sh", "-c", "echo $GIT_DIR$KEPT$ADDED"], cwd=tmp_path, env={"ADDED": "2"})
    assert done.stdout == b"12\n"


def test_only_kept_descriptors_are_inherited(tmp_path: Path) -> None:
    program = "import os; print(*os.listdir('/proc/self/fd'))"
    with open(tmp_path / "kept", "w") as kept, open(tmp_path / "other", "w") as other:
        os.set_inheritable(other.fileno(), True)
        done = run_tool([sys.executable, "-c", program], cwd=tmp_path, keep=(kept.fileno(),))
        seen = {int(number) for number in done.stdout.split()}
        assert kept.fileno() in seen
        assert other.fileno() not in seen


def test_missing_program_and_missing_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CouldNotRun) as refused:
        run_tool(["no-such-program-here"], cwd=tmp_path)
    assert refused.value.slug == "tool-missing"
    with pytest.raises(CouldNotRun) as refused:
        run_tool(["true"], cwd=tmp_path / "nowhere")
    assert refused.value.slug == "folder-missing"


def _gone(pid: int) -> bool:
    """Ended, or only waiting for its parent to notice."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
    return False

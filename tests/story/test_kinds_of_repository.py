"""Every kind of repository: the code that is there now runs, and nothing of it is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Fails with 7 where the work of this minute is seen, with 5 where another state is.
SEES = 'test "$(cat {}value.txt)" = now && exit 7; exit 5'
THREE = ("--runs", "3")


def runs_the_work_of_now(desk: Any, *, cwd: Path | None = None, inside: str = "") -> dict[str, Any]:
    """Three runs see the uncommitted work; the repository stays as it is."""
    before = desk.fingerprint()
    ended = desk.reproduce(*THREE, *desk.shell(SEES.format(inside)), cwd=cwd)
    assert ended.code == 0, ended
    assert ended.record["reasons"] == {"failed: exit 7": 3}
    assert desk.fingerprint() == before
    found: dict[str, Any] = ended.record
    return found


def test_submodule_with_work_in_it(desk: Any) -> None:
    other = desk.folder / "other"
    other.mkdir()
    desk.git("init", "--quiet", cwd=other)
    (other / "value.txt").write_text("then")
    desk.git("add", "--all", cwd=other)
    desk.git("commit", "--quiet", "-m", "first", cwd=other)
    desk.commit({"outer.txt": "outer\n"})
    desk.git("submodule", "--quiet", "add", str(other), "inner")
    desk.git("commit", "--quiet", "-m", "with a submodule")
    desk.write({"inner/value.txt": "now"})
    runs_the_work_of_now(desk, inside="inner/")


def test_shallow_clone(make_desk: Callable[..., Any]) -> None:
    desk = make_desk("desk/shallow")
    origin = desk.folder / "origin"
    origin.mkdir()
    desk.git("init", "--quiet", cwd=origin)
    for text in ("long ago", "then"):
        (origin / "value.txt").write_text(text)
        desk.git("add", "--all", cwd=origin)
        desk.git("commit", "--quiet", "-m", text, cwd=origin)
    desk.git("clone", "--quiet", "--depth", "1", f"file://{origin}", str(desk.top))
    assert (desk.top / ".git" / "shallow").exists()
    desk.write({"value.txt": "now"})
    runs_the_work_of_now(desk)


def test_detached_head(desk: Any) -> None:
    desk.commit({"value.txt": "long ago"}).commit({"value.txt": "then"})
    desk.git("checkout", "--quiet", "--detach", "HEAD~1")
    desk.write({"value.txt": "now"})
    runs_the_work_of_now(desk)


def test_no_commit_yet(desk: Any) -> None:
    desk.git("init", "--quiet")
    desk.write({"value.txt": "now"})
    runs_the_work_of_now(desk)
    ended = desk.run("reproduce", "--json", "--tree", "head", "--", "true")
    assert (ended.code, ended.record["error"]["slug"]) == (3, "no-commit")


def test_no_repository_at_all(desk: Any) -> None:
    desk.write({"value.txt": "now"})
    assert runs_the_work_of_now(desk)["mode"] == "cold"
    desk.write({"test_one.py": "def test_one():\n    assert open('value.txt').read() != 'now'\n"})
    record = desk.reproduce(*THREE, *desk.pytest("test_one.py")).record
    assert (record["verdict"], record["mode"]) == ("consistent", "cold")
    assert "no repository" in record["cold_only_because"]


@pytest.mark.parametrize("name", ["two words", "-x", 'it\'s "so"\n$(x) `y` * grüße 港'])
def test_path_with_odd_characters(make_desk: Callable[..., Any], name: str) -> None:
    desk = make_desk(f"desk/{name}")
    desk.commit({"value.txt": "then", "test_one.py": TEST_ONE}).write({"value.txt": "now"})
    runs_the_work_of_now(desk)
    if "\n" in name:
        ended = desk.reproduce("--runs", "6", *desk.pytest("test_one.py"))
        assert ended.record["reasons"] == {"failed: test_one.py::test_one: failed": 6}, ended
        assert [s["trials"] for s in ended.record["strata"]] == [3, 3]


TEST_ONE = "def test_one():\n    assert open('value.txt').read() != 'now'\n"


def test_linked_worktree_and_a_folder_below_the_top(make_desk: Callable[..., Any]) -> None:
    desk = make_desk("desk/linked")
    main = desk.folder / "main"
    main.mkdir()
    desk.git("init", "--quiet", cwd=main)
    (main / "below").mkdir()
    (main / "below" / "value.txt").write_text("then")
    desk.git("add", "--all", cwd=main)
    desk.git("commit", "--quiet", "-m", "first", cwd=main)
    desk.top.rmdir()
    desk.git("worktree", "add", "--quiet", "-b", "side", str(desk.top), cwd=main)
    desk.write({"below/value.txt": "now"})
    before = desk.fingerprint(main)
    runs_the_work_of_now(desk, cwd=desk.top / "below")
    assert desk.fingerprint(main) == before
    assert not (main / ".becausal").exists()


@pytest.mark.parametrize("place", ["inside", "outside"])
@pytest.mark.parametrize("means", ["sandbox", "without bubblewrap"])
def test_editable_install_runs_the_workspace(desk: Any, place: str, means: str) -> None:
    """The environment leads to the person's tree; what runs is the revision that was asked for."""
    if means == "without bubblewrap":
        desk.without_bubblewrap()
    environment = desk.top / ".venv" if place == "inside" else desk.folder / "venv"
    check = "import sys, pack\nsys.exit(pack.VALUE)\n"
    desk.commit({"src/pack/__init__.py": "VALUE = 5\n", "check.py": check, ".gitignore": ".venv\n"})
    made = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(made, check=True, env=desk.env)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "pack.pth").write_text(f"{desk.top}/src\n")
    desk.write({"src/pack/__init__.py": "VALUE = 7\n"})
    before = desk.fingerprint()
    command = ("--", str(environment / "bin" / "python"), "check.py")
    now = desk.reproduce(*THREE, *command)
    assert now.record["reasons"] == {"failed: exit 7": 3}, now
    head = desk.reproduce(*THREE, "--new", "--tree", "head", *command)
    assert head.record["reasons"] == {"failed: exit 5": 3}, head
    assert desk.fingerprint() == before


@pytest.mark.parametrize("warm", [True, False])
def test_a_change_of_the_same_size_and_time_runs_the_new_code(desk: Any, warm: bool) -> None:
    """Neither git's nor Python's shortcuts may take the old code for the new one."""
    test = "from pack import VALUE\n\ndef test_value():\n    assert VALUE == 1\n"
    desk.commit({"pack.py": "VALUE = 1\n", "test_pack.py": test})
    runs = ("--runs", "6" if warm else "3")
    when = os.stat(desk.top / "pack.py").st_mtime_ns
    for value, verdict in ((1, "not-reproduced"), (2, "consistent"), (1, "not-reproduced")):
        desk.write({"pack.py": f"VALUE = {value}\n"})
        os.utime(desk.top / "pack.py", ns=(when, when))
        ended = desk.reproduce(*runs, *desk.pytest("test_pack.py"))
        assert ended.record["verdict"] == verdict, ended
        assert len(ended.record["strata"]) == (2 if warm else 1)

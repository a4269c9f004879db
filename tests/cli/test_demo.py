"""The demonstration: it shows the failure, and works where pytest is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SITE = Path(pytest.__file__).parents[1]
SOURCE = Path(__file__).resolve().parents[2] / "src"
PYTHON = Path(sys.base_prefix, "bin", "python3")
MOST_LINES = 100


def test_the_demo_shows_an_intermittent_failure(prompt: Any) -> None:
    said = prompt.run("demo")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("A small harbour gives ships their berths.")
    assert "● intermittent" in said.out
    assert "harbour.plan.NoBerth" in said.out
    assert len(said.out.splitlines()) <= MOST_LINES
    assert os.listdir(prompt.top) == []


def test_the_demo_keeps_its_project_only_in_a_new_folder(prompt: Any) -> None:
    prompt.write("mine/file", "precious")
    said = prompt.run("demo", "--keep", "mine", "--json")
    assert said.code == 2
    assert said.record["error"]["slug"] == "folder-exists"
    assert os.listdir(prompt.top / "mine") == ["file"]


def test_the_demo_works_without_pytest(prompt: Any, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for each in SITE.iterdir():
        if "pytest" not in each.name and each.suffix != ".pth":
            (packages / each.name).symlink_to(each)
    path = [str(packages), str(SOURCE)]
    program = f"import sys; sys.path += {path}; from becausal.cli import main; main()"
    done = subprocess.run(
        [str(PYTHON), "-S", "-c", program, "demo"],
        cwd=prompt.top,
        env=prompt.env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "-m unittest tests.test_plan" in done.stdout
    assert "● intermittent" in done.stdout
    assert "warm" not in done.stdout.split("```")[1]

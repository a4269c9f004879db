"""A copy of the house in which a test may break a rule."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]

Checker = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def top() -> Path:
    return TOP


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Source and papers of the house, in a repository of their own."""
    house = tmp_path / "house"
    shutil.copytree(TOP / "src", house / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(TOP / "docs", house / "docs")
    for name in (".importlinter", "CHANGELOG.md"):
        shutil.copy(TOP / name, house / name)
    subprocess.run(["git", "init", "-q", str(house)], check=True, env=_quiet_git(tmp_path))
    return house


@pytest.fixture
def walls() -> Checker:
    """The import contracts, or one of them, over a copy."""

    def check(house: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
        # The console script: `python -m importlinter.cli` runs nothing.
        argv = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
        if contract:
            argv += ["--contract", contract]
        return _run(argv, house, house / "src")

    return check


@pytest.fixture
def rules() -> Checker:
    """The rules of tools/house over a copy."""

    def check(house: Path) -> subprocess.CompletedProcess[str]:
        return _run([sys.executable, "-m", "house", str(house)], house, TOP / "tools")

    return check


def _run(argv: list[str], cwd: Path, import_from: Path) -> subprocess.CompletedProcess[str]:
    environment = {**_quiet_git(cwd), "PYTHONPATH": str(import_from)}
    return subprocess.run(
        argv, cwd=cwd, env=environment, check=False, capture_output=True, text=True, timeout=120
    )


def _quiet_git(home: Path) -> dict[str, str]:
    """This process's environment, with no settings of the person who runs the tests in reach."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**mine, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

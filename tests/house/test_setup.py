"""What `tools/setup` says on machines where something is missing. Nothing is installed here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

GOOD_PYTHON = """#!/bin/sh
case "$2" in
    *version_info\\ *) exit 0 ;;
    *print*) echo 3.11 ;;
    *ensurepip*) exit {ensurepip} ;;
    *) exit 0 ;;
esac
"""
OLD_PYTHON = "#!/bin/sh\nexit 1\n"
PRESENT = "#!/bin/sh\nexit 0\n"


def run_setup(
    top: Path, tmp_path: Path, programs: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run it where only these programs exist, as someone who is not root."""
    path = tmp_path / "bin"
    path.mkdir()
    for name, text in {"id": "#!/bin/sh\necho 1000\n", **programs}.items():
        (path / name).write_text(text)
        (path / name).chmod(0o755)
    sh = shutil.which("sh")
    assert sh is not None
    return subprocess.run(
        [sh, str(top / "tools/setup"), "venv"],
        cwd=tmp_path,
        env={"PATH": str(path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("manager", "line"),
    [("apt-get", "sudo apt-get install -y git"), ("dnf", "sudo dnf install -y git")],
)
def test_missing_git_is_named_with_the_line_that_installs_it(
    top: Path, tmp_path: Path, manager: str, line: str
) -> None:
    python = GOOD_PYTHON.format(ensurepip=0)
    done = run_setup(top, tmp_path, {manager: PRESENT, "python3": python})

    assert done.returncode == 1
    assert "git is missing" in done.stderr
    assert line in [said.strip() for said in done.stderr.splitlines()]


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "sudo apt-get install -y python3.11-venv"),
        ("dnf", "sudo dnf install -y python3.11"),
    ],
)
def test_missing_venv_is_named_with_the_line_that_installs_it(
    top: Path, tmp_path: Path, manager: str, line: str
) -> None:
    python = GOOD_PYTHON.format(ensurepip=1)
    done = run_setup(top, tmp_path, {manager: PRESENT, "git": PRESENT, "python3": python})

    assert done.returncode == 1
    assert "the venv module of Python 3.11 is missing" in done.stderr
    assert line in [said.strip() for said in done.stderr.splitlines()]
    assert not (tmp_path / "venv").exists()


def test_old_python_is_passed_over_and_named_when_it_is_all_there_is(
    top: Path, tmp_path: Path
) -> None:
    done = run_setup(top, tmp_path, {"git": PRESENT, "python3": OLD_PYTHON})

    assert done.returncode == 1
    assert "Python 3.11 or newer is missing" in done.stderr


def test_newer_python_beside_an_old_one_is_found(top: Path, tmp_path: Path) -> None:
    newer = GOOD_PYTHON.format(ensurepip=1)
    done = run_setup(top, tmp_path, {"git": PRESENT, "python3": OLD_PYTHON, "python3.12": newer})

    assert "the venv module of Python 3.11 is missing" in done.stderr


def test_lock_names_no_place_and_hashes_everything(top: Path) -> None:
    lock = (top / "requirements.lock").read_text()
    entries = lock.replace("\\\n", " ").splitlines()
    pinned = [entry for entry in entries if entry and not entry.lstrip().startswith("#")]

    assert len(pinned) > 20
    assert [entry for entry in pinned if "--hash=sha256:" not in entry] == []
    assert "//" not in lock
    assert "hatchling==" in lock

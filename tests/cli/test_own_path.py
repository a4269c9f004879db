"""The program under study cannot replace what becausal itself imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_library_under_study_does_not_replace_the_one_becausal_uses(tmp_path: Path) -> None:
    for name in ("attr", "attrs", "msgspec", "cyclopts", "rich", "zstandard"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('this one is under study')\n")
    for path in (str(tmp_path), "."):
        done = subprocess.run(
            [Path(sys.executable).with_name("becausal"), "case", "list", "--json"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, '{"cases":[]}\n', "")

"""Does a quick switch between revisions ever run stale code?

    python bench/stale [--switches N] [--json FILE]

Two revisions differ in one character of one module, so that size and, within the second, time are
the same. Each trial prints what it ran. Beside it, the same with `git checkout` in one folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from becausal.domain.condition import Command, Condition, Source
from becausal.lab.local import LocalLab
from becausal.lab.repository import open_repository
from becausal.ports.lab import Order
from becausal.testing.memory_store import MemoryStore

PRINTS = [sys.executable, "-c", "import value; print(value.NAME)"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--switches", type=int, default=1000)
    parser.add_argument("--json")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder, "project")
        revisions = make_project(top)
        table = {
            "switches": options.switches,
            "becausal, stale runs": in_workspaces(top, Path(folder), revisions, options.switches),
            "git checkout in one folder, stale runs": in_place(top, revisions, options.switches),
        }
    for name, count in table.items():
        print(f"{name:<42} {count:>6}")
    if options.json:
        Path(options.json).write_text(json.dumps(table, indent=1))
    return 0


def make_project(top: Path) -> dict[str, str]:
    """What a revision prints, by revision."""
    top.mkdir()
    git(top, "init", "--quiet")
    revisions = {}
    for name in ("a", "b"):
        (top / "value.py").write_text(f'NAME = "{name}"\n')
        git(top, "add", "value.py")
        git(top, "commit", "--quiet", "--message", name)
        revisions[git(top, "rev-parse", "HEAD")] = name
    return revisions


def in_workspaces(top: Path, folder: Path, revisions: dict[str, str], switches: int) -> int:
    lab = LocalLab(
        open_repository(top, folder / "cache"), folder / "cache", artifacts=MemoryStore(), width=1
    )
    conditions = {
        Condition(source=Source(revision=revision), command=Command(argv=tuple(PRINTS))): name
        for revision, name in revisions.items()
    }
    stale = 0
    try:
        for number in range(switches):
            condition, name = list(conditions.items())[number % 2]
            order = Order(ticket=number, condition=condition, seed=0)
            ((_, recording),) = lab.run([order])
            stale += recording.stdout.joined().decode().strip() != name
    finally:
        lab.close()
    return stale


def in_place(top: Path, revisions: dict[str, str], switches: int) -> int:
    stale = 0
    for number in range(switches):
        revision, name = list(revisions.items())[number % 2]
        git(top, "checkout", "--quiet", "--force", revision)
        done = subprocess.run(PRINTS, cwd=top, capture_output=True, text=True, check=True)
        stale += done.stdout.strip() != name
    return stale


def git(top: Path, *words: str) -> str:
    named = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    done = subprocess.run(
        ["git", *named, *words], cwd=top, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

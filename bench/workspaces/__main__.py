"""How fast a workspace switches, against `git worktree add`, on a repository of 8,000 files.

Run: python bench/workspaces [--json] [--files N] [--turns N] [--folder DIR]
The goal is a ratio of at least 8. Everything happens in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from becausal.domain.condition import Source
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository

GOAL = 8.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--files", type=int, default=8000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=None)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        result = measure(Path(folder), chosen.files, chosen.turns)
    result["goal"] = GOAL
    if chosen.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:28} {value:.4g}")
    return 0 if result["ratio"] >= GOAL else 1


def measure(folder: Path, files: int, turns: int) -> dict[str, float]:
    top = folder / "repository"
    one, two = make_repository(top, files)
    cache = folder / "cache"
    repository = open_repository(top, cache)
    (top / "module_1.py").write_text("changed\n")
    (top / "new.py").write_text("new\n")
    snapshots = [timed(repository.snapshot) for _ in range(turns)]
    work = repository.snapshot().source
    switches, dirty, restores, changed = [], [], [], []
    worktree, removal = [], []
    with Pool(repository, cache).lease() as lease:
        first = timed(lambda: lease.switch(Source(revision=one)))
        for turn in range(turns):
            added, removed = worktree_seconds(top, str(folder / f"worktree-{turn}"), one)
            worktree.append(added)
            removal.append(removed)
            switches.append(timed(lambda: lease.switch(Source(revision=two))))
            restores.append(timed(lease.restore))
            (Path(lease.path) / "README").write_text("a trial was here\n")
            changed.append(timed(lease.restore))
            dirty.append(timed(lambda: lease.switch(work)))
            switches.append(timed(lambda: lease.switch(Source(revision=one))))
    middle = statistics.median
    return {
        "files": files,
        "worktree_add_seconds": middle(worktree),
        "worktree_remove_seconds": middle(removal),
        "first_switch_seconds": first,
        "switch_seconds": middle(switches),
        "switch_to_work_seconds": middle(dirty),
        "snapshot_seconds": middle(snapshots),
        "restore_unchanged_seconds": middle(restores),
        "restore_changed_seconds": middle(changed),
        "ratio": middle(worktree) / middle(switches),
        "ratio_with_removal": (middle(worktree) + middle(removal)) / middle(switches),
    }


def worktree_seconds(top: Path, path: str, revision: str) -> tuple[float, float]:
    added = timed(lambda: git(top, "worktree", "add", "-q", "--detach", path, revision))
    removed = timed(lambda: git(top, "worktree", "remove", "--force", path))
    return added, removed


def make_repository(top: Path, files: int) -> tuple[str, str]:
    """Two commits that differ in every eightieth file."""
    top.mkdir()
    git(top, "init", "-q")
    git(top, "config", "user.name", "bench")
    git(top, "config", "user.email", "bench@example.org")
    (top / "README").write_text("bench\n")
    for number in range(files):
        path = top / f"package_{number // 100}" / f"module_{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"NUMBER = {number}\n" * 40)
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "one")
    one = git(top, "rev-parse", "HEAD")
    for number in range(0, files, 80):
        path = top / f"package_{number // 100}" / f"module_{number}.py"
        path.write_text(f"NUMBER = {number + 1}\n" * 40)
    git(top, "commit", "-q", "-a", "-m", "two")
    return one, git(top, "rev-parse", "HEAD")


def git(top: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=top, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())

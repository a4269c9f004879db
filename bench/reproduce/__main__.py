"""What a trial costs: becausal against fresh pytest processes and pytest-repeat, in one run.

    python bench/reproduce --python PY --cwd CHECKOUT --test ID [--runs N] [--json FILE]

PY has pytest and pytest-repeat. All figures are processor seconds of the command with all its
children, orphans included; the marginal cost is that of 2N runs less that of N, divided by N.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
BECAUSAL = str(Path(sys.executable).with_name("becausal"))


class Bench:
    """One test of one checkout, run in several ways."""

    def __init__(self, python: str, cwd: str, test: str, home: str) -> None:
        self.python = python
        self.cwd = cwd
        self.test = test
        self.environment = {
            **os.environ,
            "HOME": home,
            "BECAUSAL_CACHE": f"{home}/cache",
            "BECAUSAL_STORE": f"{home}/store",
        }

    def fresh(self, runs: int, **environment: str) -> None:
        for _ in range(runs):
            self._call(self._pytest(), **environment)

    def repeat(self, runs: int) -> None:
        self._call([*self._pytest(), "--count", str(runs)])

    def becausal(self, runs: int, jobs: int = 1) -> dict[str, Any]:
        words = ["reproduce", "--json", "--new", "--runs", str(runs), "--jobs", str(jobs), "--"]
        done = self._call([BECAUSAL, *words, *self._pytest()], expected=(0, 1))
        answer: dict[str, Any] = json.loads(done)
        if answer["trials"] != runs or answer["mode"] != "warm":
            raise SystemExit(f"not {runs} warm trials: {answer}")
        return answer

    def _pytest(self) -> list[str]:
        return [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", self.test]

    def _call(self, argv: list[str], expected: tuple[int, ...] = (0,), **environment: str) -> bytes:
        done = subprocess.run(
            argv, cwd=self.cwd, env={**self.environment, **environment}, capture_output=True
        )
        if done.returncode not in expected:
            said = (done.stdout + done.stderr).decode()
            raise SystemExit(f"{argv} ended with {done.returncode}:\n{said}")
        return done.stdout


def processor(work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of all children, and seconds on the clock."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    _wait_for_orphans()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return spent, time.monotonic() - began


def adopt_orphans() -> None:
    """A sandbox leaves its innermost process to whoever adopts it: its cost must be counted."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("cannot adopt orphans, so cannot count what they cost")


def _wait_for_orphans() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def marginal(work: Callable[[int], object], runs: int) -> tuple[float, float]:
    """(cost of one further run, cost of the whole command with `runs`), in processor seconds."""
    small, _ = processor(lambda: work(runs))
    large, _ = processor(lambda: work(2 * runs))
    return (large - small) / runs, small


def main() -> int:
    options = _options()
    adopt_orphans()
    with tempfile.TemporaryDirectory() as home:
        bench = Bench(options.python, options.cwd, options.test, home)
        bench.fresh(1)
        bench.becausal(10)
        table = measure(bench, options.runs, options.fresh)
    for name, value in table.items():
        print(f"{name:<58} {value:>10.4g}")
    if options.json:
        Path(options.json).write_text(json.dumps(table, indent=1))
    return 0


def measure(bench: Bench, runs: int, fresh: int) -> dict[str, float]:
    cold = processor(lambda: bench.fresh(fresh))[0] / fresh
    lean = processor(lambda: bench.fresh(fresh, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"))[0] / fresh
    repeat, repeat_whole = marginal(bench.repeat, runs)
    ours, ours_whole = marginal(bench.becausal, runs)
    one = processor(lambda: bench.becausal(10 * runs, jobs=1))[1]
    base_one = processor(lambda: bench.becausal(2 * runs, jobs=1))[1]
    two = processor(lambda: bench.becausal(10 * runs, jobs=2))[1]
    base_two = processor(lambda: bench.becausal(2 * runs, jobs=2))[1]
    return {
        "fresh pytest, CPU ms a run": cold * 1000,
        "fresh pytest, no plugin autoload, CPU ms a run": lean * 1000,
        "pytest-repeat, CPU ms a further run (not isolated)": repeat * 1000,
        f"pytest-repeat, CPU s for {runs} runs": repeat_whole,
        "becausal, CPU ms a further isolated trial": ours * 1000,
        f"becausal, CPU s for {runs} trials, start and cold ones included": ours_whole,
        f"fresh pytest, CPU s for {runs} runs": cold * runs,
        "fresh / becausal, a further run": cold / ours,
        "fresh without autoload / becausal, a further run": lean / ours,
        "becausal above pytest-repeat, CPU ms a further run": (ours - repeat) * 1000,
        "two workers / one, trials a second": (one - base_one) / (two - base_two),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", required=True)
    parser.add_argument("--cwd", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--fresh", type=int, default=10, help="runs of the fresh processes")
    parser.add_argument("--json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

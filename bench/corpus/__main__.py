"""Real bugs: is each seen at its buggy commit, and not seen at its fixed one?

    python bench/corpus --corpus DIR [--only NAME …] [--jobs N] [--json FILE]

DIR/bugs/NAME/ holds two prepared checkouts, `buggy` and `fixed` (with the fix's tests laid over and
uncommitted), and `bug.json`: `argv`, perhaps `argv_pytest` (preferred), `env`, `cwd`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

EXPECTED = {"buggy": "consistent", "fixed": "not-reproduced"}


def main() -> int:
    options = _options()
    bugs = sorted(path.parent for path in Path(options.corpus, "bugs").glob("*/bug.json"))
    if options.only:
        bugs = [bug for bug in bugs if bug.name in options.only]
    if not bugs:
        print(f"no prepared bugs below {options.corpus}/bugs", file=sys.stderr)
        return 3
    tasks = [(bug, side) for bug in bugs for side in EXPECTED]
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(options.jobs) as pool:
        rows = []
        for row in pool.map(lambda task: measure(*task, Path(home)), tasks):
            rows.append(row)
            print(line(row), flush=True)
    right = sum(row["right"] for row in rows)
    for side in EXPECTED:
        of_side = [row for row in rows if row["side"] == side]
        print(f"{side}: {sum(r['right'] for r in of_side)} of {len(of_side)} {EXPECTED[side]}")
    print(f"right: {right} of {len(rows)}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1))
    return 0


def measure(bug: Path, side: str, home: Path) -> dict[str, Any]:
    """Run `becausal reproduce` on one checkout, in a store and cache of its own."""
    facts = json.loads((bug / "bug.json").read_text())
    argv = facts.get("argv_pytest") or facts["argv"]
    own = home / f"{bug.name}-{side}"
    own.mkdir()
    environment = {
        **os.environ,
        **facts.get("env", {}),
        "HOME": str(own),
        "BECAUSAL_CACHE": str(own / "cache"),
        "BECAUSAL_STORE": str(own / "store"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    program = [str(Path(sys.executable).with_name("becausal")), "reproduce", "--json"]
    began = time.monotonic()
    done = subprocess.run(
        [*program, "--jobs", "1", "--timeout", "120", "--", *argv],
        cwd=bug / side / facts.get("cwd", "."),
        env=environment,
        capture_output=True,
        timeout=1800,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"error": {"slug": "no-answer", "what": done.stderr.decode()[-2000:]}}
    verdict = answer.get("verdict", "error")
    return {
        "bug": bug.name,
        "side": side,
        "verdict": verdict,
        "right": verdict == EXPECTED[side],
        "seconds": round(time.monotonic() - began, 1),
        "answer": answer,
    }


def line(row: dict[str, Any]) -> str:
    answer = row["answer"]
    mark = "  " if row["right"] else "✗ "
    warm = "warm" if not answer.get("cold_only_because") else answer["cold_only_because"]
    why = answer.get("error") or ("" if row["right"] else answer.get("reasons"))
    counts = f"{answer.get('failures')}/{answer.get('trials')}"
    return (
        f"{mark}{row['bug']:<28} {row['side']:<6} {row['verdict']:<15} {counts:>8} "
        f"{row['seconds']:>6.1f} s  {warm}  {why or ''}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

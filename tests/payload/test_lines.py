"""Lines run, recorded in every Python that is here, by whatever it offers for that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import becausal_payload

PAYLOAD = str(Path(becausal_payload.__file__).parent.parent)
VERSIONS = Path.home() / ".pyenv" / "versions"
PYTHONS = [sys.executable]
if VERSIONS.is_dir():
    for version in ("3.8", "3.10", "3.12", "3.13"):
        PYTHONS += sorted(str(path) for path in VERSIONS.glob(f"{version}.*/bin/python"))[:1]

SUBJECT = """
def branches(x):
    if x:
        return 1
    return 2

def loops(n):
    total = 0
    for i in range(n):
        total += branches(i)
    return total

def generates():
    yield 1
    yield 2

def other_thread():
    import threading
    t = threading.Thread(target=branches, args=(0,))
    t.start()
    t.join()
"""
DRIVER = """
import json, sys
sys.path[:0] = sys.argv[1:3]
from becausal_payload.lines import recorder
import subject
lines = recorder([sys.argv[2]])
seen = []
for step in (
    lambda: subject.branches(0),
    lambda: subject.branches(1),
    lambda: subject.loops(3),
    lambda: list(subject.generates()),
    lambda: subject.other_thread(),
    lambda: json.dumps([1]),
):
    lines.start()
    step()
    seen.append(lines.stop())
print(json.dumps(seen))
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_each_part_has_the_lines_it_ran_and_no_others(tmp_path: Path, python: str) -> None:
    subject = tmp_path / "subject.py"
    subject.write_text(SUBJECT)
    argv = [python, "-B", "-c", DRIVER, PAYLOAD, str(tmp_path)]
    seen = json.loads(subprocess.check_output(argv, cwd="/"))
    name = str(subject)
    assert seen == [
        {name: [3, 5]},
        {name: [3, 4]},
        {name: [3, 4, 5, 8, 9, 10, 11]},
        {name: [14, 15]},
        {name: [3, 5, 18, 19, 20, 21]},
        {},
    ]

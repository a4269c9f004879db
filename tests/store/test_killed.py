"""Writers that are killed, and writers at once: nothing acknowledged is lost, nothing is half."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

from becausal.domain.journal import Noted
from becausal.store import open_store
from becausal.testing.samples import trial

BATCH = 5
ENDLESS = 10**9


def start(folder: Path, rounds: int) -> subprocess.Popen[bytes]:
    program = Path(__file__).with_name("writer.py")
    argv = [sys.executable, str(program), str(folder), str(rounds)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE)


def acknowledged(lines: list[bytes]) -> list[dict[str, Any]]:
    """What whole lines say; the last may be cut by the kill."""
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def must_hold(folder: Path, said: list[dict[str, Any]]) -> None:
    """Everything acknowledged reads back, and the rest is there whole or not at all."""
    store = open_store(folder)
    (case,) = [each["case"] for each in said if "case" in each] or [None]
    for name in store.cases():
        notes = [entry.event for entry in store.journal(name)[1:]]
        turns = range(len(notes) // 2)
        assert notes == [Noted(text=f"{turn}{too}") for turn in turns for too in ("", " too")]
        trials = store.trials(name)
        steps = range(len(trials) // BATCH)
        assert trials == tuple(trial(step=s, repeat=n) for s in steps for n in range(BATCH))
        if name == case:
            noted = [each["noted"] for each in said if "noted" in each]
            recorded = [each for each in said if "recorded" in each]
            assert len(noted) <= len(turns) <= len(noted) + 1
            assert len(recorded) <= len(steps) <= len(recorded) + 1
            for each in recorded:
                for n, digest in enumerate(each["outputs"]):
                    output = f"{case} {each['recorded']} {n} ".encode() * 300
                    assert store.get(digest) == output
    assert case is None or case in store.cases()
    store.close()


def check_file(folder: Path) -> None:
    raw = sqlite3.connect(folder / "journal.db")
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    raw.close()


def test_a_writer_killed_at_any_moment_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(1)
    folder = tmp_path / ".becausal"
    for kill in range(30):
        with start(folder, ENDLESS) as writer:
            assert writer.stdout is not None
            heard = [writer.stdout.readline() for _ in range(chance.randrange(2, 40))]
            writer.kill()
            heard += writer.stdout.readlines()
        must_hold(folder, acknowledged(heard))
        store = open_store(folder)
        assert store.cases() == tuple(f"B-{n}" for n in range(1, kill + 2))
        store.close()
    check_file(folder)


def test_a_writer_killed_while_it_makes_the_store_leaves_it_usable(tmp_path: Path) -> None:
    chance = random.Random(2)
    for attempt in range(10):
        folder = tmp_path / f"{attempt}"
        with start(folder, ENDLESS) as writer:
            assert writer.stdout is not None
            opening = writer.stdout.readline()
            for _ in range(chance.randrange(100_000)):
                pass  # a few milliseconds at most, as long as making a store takes
            writer.kill()
            heard = [opening, *writer.stdout.readlines()]
        must_hold(folder, acknowledged(heard))
        check_file(folder)


def test_processes_open_cases_and_append_at_once(tmp_path: Path) -> None:
    folder = tmp_path / ".becausal"
    rounds, width = 40, 4
    # All find no store: they also make it at once.
    writers = [start(folder, rounds) for _ in range(width)]
    said = []
    for writer in writers:
        with writer:
            assert writer.stdout is not None
            said.append(acknowledged(writer.stdout.readlines()))
        assert writer.returncode == 0
    assert sorted(each[1]["case"] for each in said) == [f"B-{n}" for n in range(1, width + 1)]
    for each in said:
        assert len(each) == 2 + 2 * rounds
        must_hold(folder, each)
    check_file(folder)


def test_processes_make_use_and_leave_stores_at_once(tmp_path: Path) -> None:
    # Making a store, being the last to close one and the first to open it again take locks for
    # which SQLite does not wait by itself.
    program = Path(__file__).with_name("visitor.py")
    visitors = [
        subprocess.Popen(
            [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    answers = []
    for visit in range(300):
        for visitor in visitors:
            assert visitor.stdin is not None
            visitor.stdin.write(f"{tmp_path / str(visit // 3)}\n".encode())
            visitor.stdin.flush()
        for visitor in visitors:
            assert visitor.stdout is not None
            answers.append(visitor.stdout.readline())
    for visitor in visitors:
        visitor.communicate()
    every = [f"B-{n}\n".encode() for n in range(1, 13)] * 100
    assert sorted(answers) == sorted(every)


def test_a_name_is_given_back_when_its_holder_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / ".becausal"
    program = (
        "import sys; from pathlib import Path; from becausal.store import open_store\n"
        "with open_store(Path(sys.argv[1])).hold('search') as held:\n"
        "    print(held, flush=True); sys.stdin.read()\n"
    )
    argv = [sys.executable, "-c", program, str(folder)]
    store = open_store(folder)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with store.hold("search") as while_it_lives:
            assert not while_it_lives
        holder.kill()
    with store.hold("search") as afterwards:
        assert afterwards
    store.close()

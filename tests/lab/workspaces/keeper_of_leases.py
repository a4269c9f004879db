"""A process for tests: works in a workspace until it is killed, or holds one until told to end.

argv: top, cache, "work" or "hold". Says one line when it begins to work, or the path it holds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from becausal.domain.condition import Source
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def work(top: Path, cache: Path) -> None:
    say("begin")
    while True:
        repository = open_repository(top, cache)
        source = repository.snapshot().source
        with Pool(repository, cache).lease() as lease:
            for _ in range(3):
                lease.switch(source)
                Path(lease.path, "README").write_text("trial\n")
                Path(lease.path, "made.log").write_text("trial\n")
                lease.restore()
                lease.switch(Source(revision=source.revision))
                Path(lease.path, "src/ship.py").write_text("SPEED = 0\n")


def hold(top: Path, cache: Path) -> None:
    repository = open_repository(top, cache)
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot().source)
        say(lease.path)
        sys.stdin.read()


{"work": work, "hold": hold}[sys.argv[3]](Path(sys.argv[1]), Path(sys.argv[2]))

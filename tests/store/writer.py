"""A process that writes to a store without end, and says after each write what was acknowledged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from becausal.domain.identity import bytes_id
from becausal.domain.journal import Noted
from becausal.store import open_store
from becausal.testing.samples import OPENED, trial

BATCH = 5


def main(folder: Path, rounds: int) -> None:
    say(opening=str(folder))
    store = open_store(folder)
    case = store.open_case(OPENED, at=1.0)
    say(case=case)
    for turn in range(rounds):
        store.append(case, [Noted(text=f"{turn}"), Noted(text=f"{turn} too")], at=2.0)
        say(noted=turn)
        outputs = [f"{case} {turn} {n} ".encode() * 300 for n in range(BATCH)]
        batch = [trial(step=turn, repeat=n) for n in range(BATCH)]
        store.record(case, batch, at=3.0, artifacts=outputs)
        say(recorded=turn, outputs=[bytes_id(output) for output in outputs])


def say(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

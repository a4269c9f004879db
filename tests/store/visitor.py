"""A process that opens, uses and closes the stores it is told, and says which case it opened."""

from __future__ import annotations

import sys
from pathlib import Path

from becausal.domain.errors import BecausalError
from becausal.store import open_store
from becausal.testing.samples import OPENED


def visit(folder: Path) -> str:
    try:
        store = open_store(folder)
        name = store.open_case(OPENED, at=1.0)
        store.close()
    except BecausalError as error:
        return error.slug
    return name


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(visit(Path(line.rstrip("\n"))) + "\n")
        sys.stdout.flush()

"""Say where the tree breaks a rule: `python -m house [TOP]`. Exit code 1 when it does anywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from house import messages, papers, payload, processes, size, traces
from house.tree import Tree

RULES: tuple[Callable[[Tree], Iterator[str]], ...] = (
    size.offences,
    processes.offences,
    payload.offences,
    messages.offences,
    papers.offences,
    traces.offences,
)


def main(top: str) -> int:
    tree = Tree(Path(top))
    found = [offence for rule in RULES for offence in rule(tree)]
    for offence in found:
        sys.stdout.write(f"{offence}\n")
    what = f"{len(found)} offences" if found else "in order"
    sys.stdout.write(f"house: {len(tree.modules)} modules, {what}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))

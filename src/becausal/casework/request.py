"""What a person asks to be run, and the conditions it becomes."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import dataclass, field

from becausal.casework.bench import Bench
from becausal.domain.condition import Command, Condition, Limits
from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.ports.repository import Snapshot, TreeChoice


@dataclass(frozen=True, kw_only=True)
class Request:
    """One command to study, and what counts as its failure."""

    argv: tuple[str, ...]
    folder: str
    """Where the person stands: absolute."""
    criterion: Criterion = field(default_factory=Criterion)
    tree: TreeChoice = "worktree"
    environment: tuple[tuple[str, str | None], ...] = ()
    """Declared changes, secrets masked: they are written down."""
    secrets: tuple[tuple[str, str], ...] = ()
    """What the masks stand for; only the lab gets these."""
    input: bytes | None = None
    network: bool = True
    timeout: float = 600.0
    """Seconds after which one trial is stopped."""
    memory: int | None = None
    case: str | None = None
    """Join this case whatever it is about."""
    new: bool = False
    """Open a new case though one exists."""


def command_of(request: Request, top: str) -> Command:
    """The command with its folder relative to the top of the source."""
    if not request.argv:
        raise WrongUse(
            "command-missing-words",
            "no command was given",
            hint="put it after two dashes: becausal reproduce -- pytest tests/test_x.py",
        )
    for word in request.argv:
        require_text(word)
    cwd = os.path.relpath(os.path.realpath(request.folder), os.path.realpath(top))
    require_text(cwd)
    return Command(argv=request.argv, cwd=cwd)


def require_text(word: str) -> None:
    """Refuse what could not be written down as it is: bytes that are no UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise WrongUse(
            "words-unreadable",
            "a word or a folder of the command is no UTF-8, and cannot be kept",
            value=ascii(word),
            hint="give it a readable name, or write a script that runs the command",
        ) from error


def cold_condition(bench: Bench, request: Request) -> tuple[Condition, Snapshot]:
    """Capture the code as it is now and build the condition of a fresh process."""
    snapshot = bench.repository.snapshot(request.tree)
    if snapshot.patch is not None:
        bench.store.put(snapshot.patch)
    condition = Condition(
        source=snapshot.source,
        command=command_of(request, bench.repository.top),
        environment=tuple(sorted(request.environment)),
        input=None if request.input is None else bench.store.put(request.input),
        network=request.network,
        limits=Limits(seconds=request.timeout, memory=request.memory),
    )
    return condition, snapshot


def parse_environment(words: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    """`NAME=value` sets, `NAME=` empties, `-NAME` takes away."""
    changes: list[tuple[str, str | None]] = []
    for word in words:
        require_text(word)
        name, equals, value = word.partition("=")
        if word.startswith("-") and not equals and len(word) > 1:
            changes.append((word[1:], None))
        elif equals and name:
            changes.append((name, value))
        else:
            raise WrongUse(
                "environment-unreadable",
                "this is no change to the environment",
                value=word,
                hint="write --env NAME=value to set a variable, --env=-NAME to take it away",
            )
    return tuple(sorted(changes))

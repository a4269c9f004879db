"""Words that every command which studies another command takes."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from becausal.casework.request import Request, parse_environment
from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.inquiry.measure import check_criterion
from becausal.inquiry.size import parse_size

CommandWords = Annotated[
    str, Parameter(help="The command under study, after two dashes.", allow_leading_hyphen=True)
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Study:
    """What is studied, and what counts as its failure."""

    fail_if: str = ""
    """`hang`, or a measure: 'seconds > 2', 'max_rss > 500M', 'match(r"p95=(\\d+)") > 80'."""
    fail_when: str = ""
    """A regular expression; the command fails when its output has a match."""
    fail_exit: int | None = None
    """The command fails when it ends with this code."""
    tree: Literal["worktree", "head"] = "worktree"
    """The code as it is now, or as it was committed."""
    env: tuple[str, ...] = ()
    """A change to the environment: NAME=value, or -NAME to take one away. May be repeated."""
    input: Path | None = None
    """A file given to the command as standard input; otherwise the input is empty."""
    no_network: Annotated[bool, Parameter(negative="")] = False
    """Run the command without network, where this machine's sandbox can."""
    timeout: float = 600.0
    """Seconds after which one run is stopped."""
    memory: str | None = None
    """Memory that one run may ask for, such as 2G."""
    case: str | None = None
    """Join this case, whatever the command."""
    new: Annotated[bool, Parameter(negative="")] = False
    """Open a new case, though there is one for this command."""
    seconds: float | None = None
    """Time that may be spent in all."""
    jobs: Annotated[int | None, Parameter(name=["--jobs", "-j"])] = None
    """Trials at once; by default one for each processor."""
    json: Annotated[bool, Parameter(negative="")] = False
    """One JSON object on standard output."""

    def request(self, argv: tuple[str, ...]) -> Request:
        criterion = Criterion(
            fail_if=self.fail_if, fail_when=self.fail_when, fail_exit=self.fail_exit
        )
        check_criterion(criterion)
        _positive("--timeout", self.timeout)
        _positive("--seconds", self.seconds)
        _positive("--jobs", self.jobs)
        return Request(
            argv=argv,
            folder=os.getcwd(),
            criterion=criterion,
            tree=self.tree,
            environment=_environment(self.env),
            input=None if self.input is None else _read(self.input),
            network=not self.no_network,
            timeout=self.timeout,
            memory=None if self.memory is None else parse_size(self.memory),
            case=self.case,
            new=self.new,
        )


def _environment(words: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    changes = dict(parse_environment(words))
    inherited = os.environ.get("PYTHONHASHSEED", "")
    if inherited.isdigit():
        # Fixed by the person, so it is a condition of the failure and not ours to vary.
        changes.setdefault("PYTHONHASHSEED", inherited)
    return tuple(sorted(changes.items()))


def _positive(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise WrongUse(
            "not-positive",
            f"{name} takes a number above zero",
            value=str(value),
            hint="leave it out for the default",
        )


def _read(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise WrongUse(
            "input-unreadable",
            f"the input cannot be read: {error.strerror}",
            value=str(path),
            hint="name a readable file, or - for standard input",
        ) from error

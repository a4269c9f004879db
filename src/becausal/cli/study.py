"""Words that every command which studies another command takes."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, Token

from becausal.casework.request import Request, parse_environment
from becausal.domain.criterion import Criterion
from becausal.domain.errors import WrongUse
from becausal.inquiry.measure import check_criterion
from becausal.inquiry.size import parse_size
from becausal.wiring import part_secrets

CommandWords = Annotated[str, Parameter(show=True)]


def named(metavar: str) -> Parameter:
    """An option whose value is called so in the help."""
    return Parameter(metavar=metavar)


def counted(metavar: str, *names: str) -> Parameter:
    """The same for a whole number; the parser would round others."""
    return Parameter(name=list(names) or None, metavar=metavar, converter=_whole)


def _whole(_: type, tokens: Sequence[Token]) -> int:
    return int(tokens[0].value)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Study:
    """What is studied, and what counts as its failure."""

    fail_if: Annotated[str, named("RULE")] = ""
    """What counts as the failure: `hang`, or a measure beyond a limit, such as 'seconds > 2',
    'max_rss > 500M' or 'match(r"p95=(\\d+)") > 80'."""
    fail_when: Annotated[str, named("REGEX")] = ""
    """The command fails when its output has a match of this regular expression."""
    fail_exit: Annotated[int | None, counted("CODE")] = None
    """The command fails when it ends with this exit code."""
    tree: Annotated[Literal["worktree", "head"], named("worktree|head")] = "worktree"
    """The code as it is now, uncommitted work included (the default), or as committed."""
    env: Annotated[tuple[str, ...], named("CHANGE")] = ()
    """A change to the environment: NAME=value sets a variable, --env=-NAME takes one away.
    May be repeated."""
    input: Annotated[Path | None, named("FILE")] = None
    """What the command reads on standard input; - for ours. Without it, the input is empty."""
    no_network: bool = False
    """Run the command without network, where this machine's sandbox can."""
    timeout: Annotated[float, named("SECONDS")] = 600.0
    """Stop a single run after this time; 600 by default."""
    memory: Annotated[str | None, named("SIZE")] = None
    """Memory that a single run may ask for, such as 2G."""
    case: Annotated[str | None, named("CASE")] = None
    """Join this case, whatever the command."""
    new: bool = False
    """Open a new case, though there is one for this command."""
    seconds: Annotated[float | None, named("SECONDS")] = None
    """Time for all runs together; 300 unless --runs is given."""
    jobs: Annotated[int | None, counted("N", "--jobs", "-j")] = None
    """Runs at once; by default one for each processor."""
    json: bool = False
    """Print one JSON object on standard output."""

    def request(self, argv: tuple[str, ...]) -> Request:
        criterion = Criterion(
            fail_if=self.fail_if, fail_when=self.fail_when, fail_exit=self.fail_exit
        )
        check_criterion(criterion)
        _positive("--timeout", self.timeout)
        _positive("--seconds", self.seconds)
        _positive("--jobs", self.jobs)
        environment, secrets = part_secrets(_environment(self.env))
        return Request(
            argv=argv,
            folder=os.getcwd(),
            criterion=criterion,
            tree=self.tree,
            environment=environment,
            secrets=secrets,
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
    if value is not None and not 0 < value < math.inf:
        raise WrongUse(
            "not-positive",
            f"{name} takes a number above zero",
            value=f"{value:g}",
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

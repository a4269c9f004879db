"""The observation: the exact error, the steps, what changed lately, the environment."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from becausal.casework.bench import Bench
from becausal.casework.dossier import dossier
from becausal.casework.evidence import exact_error, first_failing
from becausal.domain.condition import Condition
from becausal.domain.journal import Observed
from becausal.domain.observation import Observation
from becausal.domain.trial import Trial
from becausal.ports.repository import Snapshot


def observe(
    bench: Bench,
    case: str,
    condition: Condition,
    snapshot: Snapshot,
    trials: Sequence[Trial],
) -> Observation:
    """Collect the observation of a case once, and journal it."""
    known = dossier(bench.store, case).observation
    failing = first_failing(trials)
    if known is not None and (known.error or failing is None):
        return known
    observation = Observation(
        error="" if failing is None else exact_error(bench.store, failing),
        steps=steps(condition),
        surroundings=bench.lab.surroundings(condition),
        changes=bench.repository.recent_changes(),
        dirty=snapshot.dirty,
        carried=snapshot.carried,
        branch=bench.repository.branch(),
        notes=snapshot.notes,
    )
    bench.store.append(case, [Observed(observation=observation)], at=bench.clock.now())
    return observation


def steps(condition: Condition) -> tuple[str, ...]:
    """Commands that show the failure, from the top of the source."""
    lines = []
    if condition.source.revision is not None:
        lines.append(f"git checkout {condition.source.revision}")
    if condition.source.patch is not None:
        lines.append("git apply uncommitted.patch")
    if condition.command.cwd != ".":
        lines.append(f"cd {shlex.quote(condition.command.cwd)}")
    changes = [
        f"unset {shlex.quote(name)}" if value is None else f"export {name}={shlex.quote(value)}"
        for name, value in condition.environment
    ]
    feed = "" if condition.input is None else " < input"
    return (*lines, *changes, shlex.join(condition.command.argv) + feed)

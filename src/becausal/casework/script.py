"""The reproduction script: one file that shows the failure without becausal."""

from __future__ import annotations

import base64
import pprint
import shlex
import zlib
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

import msgspec

from becausal.casework.dossier import Dossier, Established
from becausal.casework.reproduction_map import clip, percent
from becausal.domain.condition import Condition
from becausal.domain.errors import WrongUse
from becausal.domain.finding import Reproduction
from becausal.domain.journal import SearchStarted
from becausal.domain.trial import Outcome, Trial
from becausal.inquiry.measure import Measure, parse_fail_if
from becausal.inquiry.sequence import gone_runs
from becausal.ports.store import Store

SURE = 0.99
MOST_RUNS = 500


def script(store: Store, view: Dossier, *, tool_version: str) -> str:
    """Write the script from the latest reproduction that showed the failure."""
    shown = _shown(view)
    condition = _cold_condition(store, view, shown)
    trials = store.trials(view.case, shown.search)
    finding = shown.finding
    assert isinstance(finding, Reproduction)
    blobs = _blobs(store, condition)
    facts = _facts(view, condition, trials, finding)
    main = finding.main
    title = f"{view.case}: {view.symptom.kind if view.symptom else 'the failure'}"
    template = Template(
        resources.files(__package__).joinpath("templates", "reproduce.py.txt").read_text()
    )
    return template.substitute(
        title=_inert(clip(title)),
        tool_version=tool_version,
        case=view.case,
        revision=condition.source.revision or "(none)",
        seen=f"{main.failures} of {main.trials} runs ({percent(main.rate or 0.0)})",
        runs=facts["runs"],
        facts=pprint.pformat(facts, width=96, sort_dicts=False),
        blobs=_literal(blobs),
    )


def _shown(view: Dossier) -> Established:
    for established in reversed(view.findings):
        finding = established.finding
        if isinstance(finding, Reproduction) and finding.main.failures:
            return established
    raise WrongUse(
        "not-reproduced-yet",
        "there is no script to write: the failure of this case was never seen here",
        value=view.case,
        hint=f"reproduce it first: becausal reproduce -- {shlex.join(view.opened.command.argv)}",
    )


def _cold_condition(store: Store, view: Dossier, shown: Established) -> Condition:
    for entry in store.journal(view.case):
        if isinstance(entry.event, SearchStarted) and entry.event.search == shown.search:
            return next(c for c in entry.event.conditions if c.warmth == "cold")
    raise AssertionError(f"{shown.search} ended without having started")


def _facts(
    view: Dossier, condition: Condition, trials: Sequence[Trial], finding: Reproduction
) -> dict[str, Any]:
    criterion = view.opened.criterion
    measure = parse_fail_if(criterion.fail_if) if criterion.fail_if not in ("", "hang") else None
    return {
        "title": clip(view.symptom.kind if view.symptom else "the failure"),
        "project": view.opened.project or "project",
        "revision": condition.source.revision,
        "patched": condition.source.patch is not None,
        "carried": [],
        "argv": list(condition.command.argv),
        "cwd": condition.command.cwd,
        "environment": [list(change) for change in condition.environment],
        "fed": condition.input is not None,
        "timeout": condition.limits.seconds,
        "memory": condition.limits.memory,
        "criterion": msgspec.to_builtins(criterion),
        "measure": _measure(measure),
        "marks": _marks(view),
        "hash_seeds": _hash_seeds(trials),
        "runs": _runs(finding),
    }


def _measure(measure: Measure | None) -> dict[str, Any] | None:
    return None if measure is None else msgspec.to_builtins(measure)


def _marks(view: Dossier) -> list[str]:
    """What the output of a failing run must hold to be this failure: its exception's name."""
    kind = view.symptom.kind if view.symptom else ""
    return [] if not kind or " " in kind else [kind.rpartition(".")[2]]


def _hash_seeds(trials: Sequence[Trial]) -> list[int]:
    failed = [t for t in trials if t.outcome is Outcome.FAILED]
    fresh = [t.hash_seed for t in failed if t.warmth == "cold"]
    return (fresh + [t.hash_seed for t in failed if t.warmth == "warm"])[:10]


def _runs(finding: Reproduction) -> int:
    """Enough runs to see the failure with near certainty."""
    lower = max(finding.main.interval[0], 0.001)
    return max(3, min(MOST_RUNS, gone_runs(lower, SURE)))


def _blobs(store: Store, condition: Condition) -> dict[str, bytes]:
    wanted = {"patch": condition.source.patch, "input": condition.input}
    return {name: store.get(digest) for name, digest in wanted.items() if digest is not None}


def _literal(blobs: dict[str, bytes]) -> str:
    """Bytes as Python source of bearable width."""
    lines = ["{"]
    for name, data in blobs.items():
        text = base64.b85encode(zlib.compress(data, 9)).decode()
        lines.append(f"    {name!r}: (")
        lines += [f"        {text[i : i + 80]!r}" for i in range(0, len(text), 80)] or [
            "        ''"
        ]
        lines.append("    ),")
    return "\n".join([*lines, "}"])


def _inert(text: str) -> str:
    """Words of the program under study, unable to end the docstring they are put in."""
    return text.replace("\\", "/").replace('"', "'")

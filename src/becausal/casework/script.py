"""The reproduction script: one file that shows the failure without becausal."""

from __future__ import annotations

import base64
import pprint
import re
import shlex
import signal
import zlib
from collections.abc import Iterator, Sequence
from importlib import resources
from string import Template
from typing import Any

import msgspec

from becausal.casework.dossier import Dossier, Established
from becausal.casework.evidence import artifact
from becausal.casework.reproduction_map import clip, percent
from becausal.domain.condition import Condition
from becausal.domain.errors import WrongUse
from becausal.domain.finding import Reproduction
from becausal.domain.journal import SearchStarted
from becausal.domain.trial import Outcome, Trial
from becausal.inquiry.measure import parse_fail_if
from becausal.inquiry.sequence import gone_runs
from becausal.ports.store import Store

SURE = 0.99
MOST_RUNS = 500
MOST_SEEDS = 10
MOST_READ = 5


def script(store: Store, view: Dossier, *, tool_version: str) -> str:
    """Write the script from the latest reproduction that showed the failure."""
    shown = _shown(view)
    finding = shown.finding
    condition = _cold_condition(store, view, shown)
    failed = _failed(store, view, shown)
    facts = _facts(store, view, condition, failed) | {"runs": _runs(finding)}
    main = finding.main
    git = facts["kind"] == "git"
    template = resources.files(__package__).joinpath("templates", "reproduce.py.txt").read_text()
    return Template(template).substitute(
        title=_inert(f"{view.case}: {facts['title']}"),
        tool_version=_inert(tool_version),
        case=_inert(view.case),
        needs=" and git" if git else "",
        place="REPOSITORY" if git else "FOLDER",
        about="\n".join(_about(condition, view)),
        seen=f"{main.failures} of {main.trials} runs ({percent(main.rate or 0.0)})",
        runs=facts["runs"],
        facts=pprint.pformat(facts, width=96, sort_dicts=False),
        blobs=_literal(_blobs(store, condition)),
    )


def _about(condition: Condition, view: Dossier) -> Iterator[str]:
    """What whoever runs it has to know, and the script cannot see to."""
    revision = condition.source.revision
    if condition.source.folder is not None:
        yield "FOLDER is the project as it was then; by default the current folder. It was no"
        yield "repository, so whether it is still the same is not checked."
    elif revision is None:
        yield "REPOSITORY is the project, where ignored files are taken from; by default the one"
        yield "around the current folder. It had no commit yet: all its code is in this file."
    else:
        yield "REPOSITORY is a path or an address that holds the revision"
        yield f"{revision}; by default the repository around the"
        yield "current folder."
        if condition.source.patch is not None:
            yield "The uncommitted work of then is in this file."
    if condition.source.tree is not None and condition.source.patch is None:
        yield "The uncommitted work of then was too large to be kept: only the revision is run."
    if condition.network is False:
        yield "The failing runs had no network; take it away yourself."
    if view.observation is not None and view.observation.carried:
        yield "Ignored files that the runs had are taken from REPOSITORY, as they are now."


def _shown(view: Dossier) -> Established:
    for established in reversed(view.findings):
        if established.finding.main.failures:
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


def _failed(store: Store, view: Dossier, shown: Established) -> list[Trial]:
    """Trials that showed the failure, fresh processes first: the script starts such ones."""
    trials = store.trials(view.case, shown.search)
    failed = [trial for trial in trials if trial.outcome is Outcome.FAILED]
    return sorted(failed, key=lambda trial: trial.warmth == "warm")


def _facts(
    store: Store, view: Dossier, condition: Condition, failed: Sequence[Trial]
) -> dict[str, Any]:
    criterion = view.opened.criterion
    measure = parse_fail_if(criterion.fail_if)
    source, symptom = condition.source, view.symptom
    title = f"{symptom.kind}: {symptom.message}".rstrip(": ") if symptom else "the failure"
    return {
        "title": clip(title),
        "kind": "git" if source.folder is None else "folder",
        "project": view.opened.project or "project",
        "revision": source.revision,
        "patched": source.patch is not None,
        "carried": list(view.observation.carried) if view.observation else [],
        "argv": list(condition.command.argv),
        "cwd": condition.command.cwd,
        "environment": [list(change) for change in condition.environment],
        "roots": _roots(store, failed),
        "fed": condition.input is not None,
        "timeout": condition.limits.seconds,
        "memory": condition.limits.memory,
        "criterion": msgspec.to_builtins(criterion),
        "measure": None if measure is None else msgspec.to_builtins(measure),
        "code": None if symptom is None else _code(symptom.kind),
        "marks": _marks(store, view, failed),
        "hash_seeds": [trial.hash_seed for trial in failed[:MOST_SEEDS]],
    }


def _code(kind: str) -> int | None:
    """What the command ends with, where that is all that names the failure."""
    if found := re.fullmatch(r"exit (\d+)", kind):
        return int(found[1])
    if found := re.fullmatch(r"signal (\w+)", kind):
        number = signal.Signals.__members__.get(f"SIG{found[1]}")
        return None if number is None else -number
    return None


def _marks(store: Store, view: Dossier, failed: Sequence[Trial]) -> list[str]:
    """What tells this failure from others: its exception's name, if every such run printed it."""
    kind = view.symptom.kind if view.symptom else ""
    name = kind.rpartition(".")[2]
    printed = [
        artifact(store, trial, "stdout") + artifact(store, trial, "stderr")
        for trial in failed[:MOST_READ]
    ]
    told = bool(printed) and all(name.encode() in text for text in printed)
    return [name] if name and " " not in kind and told else []


def _roots(store: Store, failed: Sequence[Trial]) -> list[str]:
    """Folders that the failing run imported its own packages from, of those usually installed."""
    text = artifact(store, failed[0], "imported") if failed else b""
    imported = text.decode(errors="surrogateescape").splitlines()
    roots = ["src"] if any(path.startswith("src/") for path in imported) else []
    packages = [path for path in imported if re.fullmatch(r"([^/]+/__init__|[^/]+)\.py", path)]
    return [*roots, "."] if packages else roots


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
    return clip(text).replace("\\", "/").replace('"', "'")

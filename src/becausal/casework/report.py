"""The report of a case, in Markdown: every figure with the trials it rests on."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Iterator, Sequence

from becausal.casework.dossier import Dossier, Established
from becausal.casework.evidence import artifact, details, first_failing
from becausal.casework.reproduction_map import clip, percent, reproduction_map
from becausal.domain.finding import Reproduction
from becausal.domain.observation import Observation
from becausal.domain.recording import Raised
from becausal.domain.trial import Trial
from becausal.inquiry.signature import own_file
from becausal.inquiry.traceback_text import tracebacks
from becausal.ports.store import Store

SHOWN_ERROR = 4_000
MOST_PATHS = 20


def report(store: Store, view: Dossier) -> str:
    """The whole case as one Markdown text."""
    return "\n".join(_lines(store, view)).rstrip() + "\n"


def shown_failure(store: Store, trials: Sequence[Trial]) -> Raised | None:
    """The exception of the run that shows the failure best, with its lines."""
    failing = first_failing(trials)
    if failing is None:
        return None
    found = details(store, failing)
    for test in found.tests:
        if test.outcome in ("failed", "error") and test.raised is not None:
            return test.raised
    if found.raised is not None:
        return found.raised
    printed = [artifact(store, failing, stream) for stream in ("stderr", "stdout")]
    text = b"\n".join(printed).decode("utf-8", errors="backslashreplace")
    return next(reversed(tracebacks(text, own_file)), None)


def _lines(store: Store, view: Dossier) -> Iterator[str]:
    yield f"# {view.case}: {_title(view)}"
    yield ""
    yield f"- status: {view.status}"
    yield f"- command: `{shlex.join(view.opened.command.argv)}`"
    yield f"- opened: {_when(view.opened_at)}, last entry {_when(view.changed_at)}"
    if view.unfinished:
        yield f"- unfinished: {', '.join(view.unfinished)} (run the same command to go on)"
    yield ""
    for established in view.findings:
        if isinstance(established.finding, Reproduction):
            yield from _reproduction(store, view, established, established.finding)
    if view.observation is not None:
        yield from _observation(view.observation)
    if view.reproduction is not None and view.status != "reproduced":
        yield from _wanted()


def _title(view: Dossier) -> str:
    if view.symptom is None:
        return "a failure not seen yet"
    return clip(f"{view.symptom.kind}: {view.symptom.message}".rstrip(": "), 100)


def _reproduction(
    store: Store, view: Dossier, established: Established, finding: Reproduction
) -> Iterator[str]:
    trials = store.trials(view.case, established.search)
    yield f"## Reproduction: {finding.verdict}"
    yield ""
    yield "```text"
    yield reproduction_map(view, finding, shown_failure(store, trials))
    yield "```"
    yield ""
    yield f"- rests on {len(trials)} trials of search `{established.search}`"
    yield f"- spent: {finding.seconds:.1f} s, {finding.cpu_seconds:.1f} s of processor time"
    for level, runs in finding.gone_runs:
        yield f"- gone, at {percent(level)}: {runs} clean runs in a row"
    for line in sorted({note for trial in trials for note in trial.notes}):
        yield f"- {line}"
    kept_apart = sorted({name for trial in trials for name in trial.isolation})
    yield f"- trials kept apart by: {', '.join(kept_apart) or 'nothing'}"
    yield ""


def _observation(observation: Observation) -> Iterator[str]:
    yield "## Observation"
    yield ""
    yield "Steps:"
    yield ""
    yield from (f"    {step}" for step in observation.steps)
    yield ""
    if observation.error:
        yield "Error as printed:"
        yield ""
        yield from (f"    {line}" for line in _tail(observation.error).splitlines())
        yield ""
    if observation.changes:
        yield "Changed lately:"
        yield ""
        for change in observation.changes:
            yield f"- `{change.revision[:10]}` {_when(change.when)} {clip(change.summary)}"
        yield ""
    if observation.dirty:
        yield f"Uncommitted: {_some(observation.dirty)}"
        yield ""
    if observation.carried:
        yield f"Ignored by git, but there: {_some(observation.carried)}"
        yield ""
    around = observation.surroundings
    yield f"Environment: Python {around.python}; {around.platform}"
    yield ""
    if around.packages:
        packages = ", ".join(f"{name} {version}" for name, version in around.packages)
        yield from textwrap.wrap(f"Packages: {packages}", 78, break_on_hyphens=False)
        yield ""
    yield from (f"- {note}" for note in observation.notes)


def _some(paths: Sequence[str]) -> str:
    """The first paths, and how many more there are."""
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return ", ".join(f"`{path}`" for path in paths[:MOST_PATHS]) + more


def _wanted() -> Iterator[str]:
    """R1.3: what the person is asked for before anything further is tried."""
    yield "## Needed from a person"
    yield ""
    yield "The failure did not show here. To go on, this case needs:"
    yield ""
    yield "- the steps that led to it, from a fresh checkout"
    yield "- the environment it was seen in (versions, variables, services)"
    yield "- the log or the full trace of the failing run"
    yield "- how often it was seen, in how many runs"


def _tail(error: str) -> str:
    if len(error) <= SHOWN_ERROR:
        return error
    return f"[… {len(error) - SHOWN_ERROR} characters before]\n{error[-SHOWN_ERROR:]}"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))

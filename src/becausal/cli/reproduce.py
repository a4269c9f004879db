"""`becausal reproduce`: how often does it fail, and how sure is that?"""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

from becausal.casework.report import shown_failure
from becausal.casework.reproduce import Reproduced
from becausal.casework.reproduce import reproduce as run_chapter
from becausal.casework.reproduction_map import WIDTH, percent, reproduction_map
from becausal.cli.output import emit
from becausal.cli.progress import progress
from becausal.cli.study import CommandWords, Study, counted
from becausal.domain.errors import COULD_NOT_RUN, DONE, NO, WrongUse
from becausal.domain.finding import Reproduction, as_plain
from becausal.domain.recording import Raised
from becausal.domain.signature import Signature
from becausal.domain.trial import Trial
from becausal.wiring import open_bench


def reproduce(
    *command: CommandWords,
    runs: Annotated[int | None, counted("N")] = None,
    cold: bool = False,
    study: Study | None = None,
) -> int:
    """Measure how often a command fails, and how sure that is.

    becausal reproduce -- pytest tests/test_cart.py::test_total

    Parameters
    ----------
    runs
        Exactly N new runs; without it, as many as the answer needs.
    cold
        Only fresh processes: no warm ones.
    """
    study = study or Study()
    if runs is not None and runs < 1:
        raise WrongUse(
            "not-positive",
            "--runs takes a number above zero",
            value=str(runs),
            hint="leave it out for as many as needed",
        )
    request = study.request(command)
    with open_bench(request, progress=progress(), width=study.jobs) as bench:
        done = run_chapter(bench, request, runs=runs, cold_only=cold, seconds=study.seconds)
        text = told(done, shown_failure(bench.store, done.conducted.trials))
        emit(as_record(done), text, as_json=study.json)
        done.deliver(bench)
    return exit_code(done.finding)


def exit_code(finding: Reproduction) -> int:
    if finding.verdict == "could-not-run":
        return COULD_NOT_RUN
    return NO if finding.verdict == "not-reproduced" else DONE


def as_record(done: Reproduced) -> dict[str, Any]:
    """The finding as `--json` gives it: the contract, then what else is known."""
    finding = done.finding
    counted = [s for s in finding.strata if s.trials]
    return {
        "case": done.dossier.case,
        "trials": len(done.conducted.trials),
        "failures": sum(s.failures for s in counted),
        "rate": finding.main.rate,
        "interval": list(finding.main.interval),
        "verdict": finding.verdict,
        "signature": signature_record(done.dossier.symptom if finding_failed(finding) else None),
        "clean_runs_for_gone": finding.gone_runs[0][1] if finding.gone_runs else None,
        "clean_runs": {f"{level:g}": runs for level, runs in finding.gone_runs},
        "mode": finding.mode,
        "cpu_seconds": finding.cpu_seconds,
        "seconds": finding.seconds,
        "strata": as_plain(finding.strata),
        "disagreement": as_plain(finding.disagreement),
        "stopped": finding.stopped,
        "search": done.conducted.search,
        "resumed_trials": done.conducted.recorded_before,
        "cold_only_because": done.warming.reason,
        "reasons": reasons(done.conducted.trials),
        "notes": notes(done),
    }


def finding_failed(finding: Reproduction) -> bool:
    return finding.verdict in ("consistent", "intermittent")


def signature_record(signature: Signature | None) -> dict[str, Any] | None:
    if signature is None:
        return None
    plain: dict[str, Any] = as_plain(signature)
    return {"id": signature.id, **plain}


def reasons(trials: tuple[Trial, ...]) -> dict[str, int]:
    """Why trials ended as they did, most frequent first."""
    counts: dict[str, int] = {}
    for trial in trials:
        line = f"{trial.outcome}: {trial.reason}" if trial.reason else str(trial.outcome)
        counts[line] = counts.get(line, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def notes(done: Reproduced) -> list[str]:
    """What a reader must know of how the trials were run."""
    said = {note for trial in done.conducted.trials for note in trial.notes}
    return [*done.snapshot.notes, *sorted(said)]


def told(done: Reproduced, raised: Raised | None) -> str:
    """The finding for people."""
    finding = done.finding
    drawn = reproduction_map(done.dossier, finding, raised)
    lines = [f"case {done.dossier.case}", "", drawn, ""]
    said: list[str] = []
    if done.conducted.recorded_before:
        said.append(f"went on from {done.conducted.recorded_before} recorded runs")
    for level, runs in finding.gone_runs:
        said.append(f"gone, {percent(level)} sure: {runs} clean runs in a row")
    if finding.stopped == "seconds":
        said.append("the time given ended first; a longer --seconds narrows the interval")
    if not done.warming.possible and finding.mode == "cold":
        said.append(f"run cold: {done.warming.reason}")
    if not finding_failed(finding):
        said += [f"{count} × {reason}" for reason, count in reasons(done.conducted.trials).items()]
    said += [f"note: {note}" for note in notes(done)]
    lines += [line for each in said for line in _wrapped(each)]
    lines += ["", f"next: becausal case show {done.dossier.case}"]
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    """Within the width of the drawing; a word that is longer, such as a path, stays whole."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )

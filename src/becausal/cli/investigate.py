"""`becausal investigate`: open the case, observe, reproduce, report."""

from __future__ import annotations

from typing import Any

from becausal.casework.investigate import Investigated
from becausal.casework.investigate import investigate as run_chapter
from becausal.cli.output import emit
from becausal.cli.progress import progress
from becausal.cli.reproduce import as_record, exit_code
from becausal.cli.study import CommandWords, Study
from becausal.domain.finding import as_plain
from becausal.wiring import open_bench


def investigate(*command: CommandWords, study: Study | None = None) -> int:
    """Find out what can be found out about a failing command.

    becausal investigate -- pytest tests/test_cart.py::test_total
    """
    study = study or Study()
    request = study.request(command)
    with open_bench(request, progress=progress(), width=study.jobs) as bench:
        done = run_chapter(bench, request, seconds=study.seconds)
        emit(as_investigation(done), done.report, as_json=study.json)
        done.reproduced.deliver(bench)
    return exit_code(done.reproduced.finding)


def as_investigation(done: Investigated) -> dict[str, Any]:
    """What `--json` gives."""
    view = done.reproduced.dossier
    return {
        "case": view.case,
        "reproduction": as_record(done.reproduced),
        "observation": as_plain(view.observation),
        "known": [],
        "findings": [as_plain(established) for established in view.findings],
        "hypotheses": [],
        "root_cause": None,
        "report": done.report,
    }

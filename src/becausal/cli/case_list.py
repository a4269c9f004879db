"""`becausal case list`: a line for each case. Asked for often, so it loads little."""

from __future__ import annotations

import os
import shlex
from typing import Any

from becausal.casework.dossier import Dossier, dossier
from becausal.casework.reproduction_map import clip
from becausal.cli.output import emit
from becausal.domain.identity import content_id
from becausal.wiring import open_cases


def list_cases(*, json: bool = False) -> int:
    """List the cases of this project.

    Parameters
    ----------
    json
        Print one JSON object on standard output.
    """
    with open_cases(os.getcwd()) as store:
        views = [] if store is None else [dossier(store, case) for case in store.cases()]
    rows = [row(view) for view in views]
    lines = [f"{r['case']:<6} {r['status']:<15} {r['failure'] or r['command']}" for r in rows]
    text = "\n".join(map(clip, lines))
    emit({"cases": rows}, text or "no cases here yet", as_json=json)
    return 0


def row(view: Dossier) -> dict[str, Any]:
    """A case in short."""
    symptom = view.symptom
    return {
        "case": view.case,
        "status": view.status,
        "command": shlex.join(view.opened.command.argv),
        "failure": None if symptom is None else f"{symptom.kind}: {symptom.message}".rstrip(": "),
        "signature": None if symptom is None else content_id(symptom),
        "unfinished": list(view.unfinished),
        "opened_at": view.opened_at,
        "changed_at": view.changed_at,
    }

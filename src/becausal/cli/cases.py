"""`becausal case …`: reading the cases of a project."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from becausal.casework.dossier import Dossier, dossier
from becausal.cli.output import emit
from becausal.domain.errors import BecausalError
from becausal.domain.identity import content_id
from becausal.wiring import open_case, open_cases, tool_version

Json = Annotated[bool, Parameter(negative="")]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]


def list_cases(*, json: Json = False) -> int:
    """List all cases of this project."""
    with open_cases(os.getcwd()) as store:
        views = [] if store is None else [dossier(store, case) for case in store.cases()]
    rows = [_row(view) for view in views]
    lines = [
        f"{row['case']:<6} {row['status']:<15} {row['failure'] or row['command']}"[:70]
        for row in rows
    ]
    emit({"cases": rows}, "\n".join(lines) or "no cases yet", as_json=json)
    return 0


def show(case: str, /, *, json: Json = False) -> int:
    """Show what is known of a case."""
    from becausal.domain.finding import as_plain

    with open_case(os.getcwd(), case) as store:
        view = dossier(store, case)
        counts = _outcomes(store.trials(case))
    record = {**_row(view), "dossier": as_plain(view), "trials": counts}
    lines = [f"{view.case}  {view.status}", f"command  {shlex.join(view.opened.command.argv)}"]
    if view.symptom is not None:
        lines.append(f"failure  {view.symptom.kind}: {view.symptom.message}")
        lines += [f"         in {frame}" for frame in view.symptom.frames[-4:]]
    for established in view.findings:
        lines.append(f"finding  {_finding_line(established.finding)}  [{established.search}]")
    lines += [f"unfinished {search}" for search in view.unfinished]
    lines.append("trials   " + ", ".join(f"{n} {name}" for name, n in counts.items()))
    lines += ["", f"next: becausal case report {case}"]
    emit(record, "\n".join(lines), as_json=json)
    return 0


def show_report(case: str, /, *, output: Output = None, json: Json = False) -> int:
    """Write the report of a case in Markdown."""
    from becausal.casework.report import report

    with open_case(os.getcwd(), case) as store:
        text = report(store, dossier(store, case))
    return _deliver({"case": case, "report": text}, text, output, as_json=json)


def export_case(case: str, /, *, output: Output = None, json: Json = False) -> int:
    """Write a case with its artifacts as one JSON document."""
    import msgspec

    from becausal.casework.transfer import export

    with open_case(os.getcwd(), case) as store:
        document = export(store, case, tool_version=tool_version())
    text = msgspec.json.encode(document).decode() + "\n"
    record = msgspec.to_builtins(document)
    return _deliver(record, text, output, as_json=json)


def write_script(case: str, /, *, output: Output = None, json: Json = False) -> int:
    """Write one file that shows the failure without becausal."""
    from becausal.casework.script import script

    with open_case(os.getcwd(), case) as store:
        text = script(store, dossier(store, case), tool_version=tool_version())
    return _deliver({"case": case, "script": text}, text, output, as_json=json, executable=True)


def _deliver(
    record: dict[str, Any],
    text: str,
    output: Path | None,
    *,
    as_json: bool,
    executable: bool = False,
) -> int:
    """Into a file when one was named, else to standard output."""
    if output is None:
        emit(record, text, as_json=as_json)
        return 0
    try:
        output.write_text(text)
        if executable:
            output.chmod(output.stat().st_mode | 0o111)
    except OSError as error:
        raise BecausalError(
            "output-unwritable",
            f"the file cannot be written: {error.strerror}",
            value=str(output),
            hint="name a file in a folder that you may write to",
        ) from error
    emit({"case": record["case"], "written": str(output)}, f"written: {output}", as_json=as_json)
    return 0


def _row(view: Dossier) -> dict[str, Any]:
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


def _outcomes(trials: tuple[Any, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for trial in trials:
        counts[str(trial.outcome)] = counts.get(str(trial.outcome), 0) + 1
    return counts


def _finding_line(finding: Any) -> str:
    main = finding.main
    return f"{finding.verdict}: {main.failures}/{main.trials} {main.mode}"

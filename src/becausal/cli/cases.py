"""`becausal case …`: reading one case."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from becausal.casework.dossier import dossier
from becausal.casework.reproduction_map import clip, percent
from becausal.cli.case_list import row
from becausal.cli.output import emit
from becausal.domain.errors import BecausalError
from becausal.domain.finding import Reproduction, as_plain
from becausal.wiring import open_case, tool_version

Output = Annotated[Path | None, Parameter(name=["--output", "-o"], metavar="FILE")]


def show(case: str, /, *, json: bool = False) -> int:
    """Show what is known of a case.

    Parameters
    ----------
    json
        Print one JSON object on standard output.
    """
    with open_case(os.getcwd(), case) as store:
        view = dossier(store, case)
        counts = _outcomes(store.trials(case))
    record = {**row(view), "dossier": as_plain(view), "trials": counts}
    lines = [f"{view.case}  {view.status}", "", f"command  {shlex.join(view.opened.command.argv)}"]
    if view.symptom is not None:
        lines.append(f"failure  {record['failure']}")
        lines += [f"         in {frame}" for frame in view.symptom.frames[-4:]]
    lines += [f"finding  {_told(established.finding)}" for established in view.findings]
    if view.unfinished:
        lines.append("         interrupted: the same command goes on where it was")
    lines.append("trials   " + (", ".join(f"{n} {name}" for name, n in counts.items()) or "none"))
    lines += [f"note     {note}" for note in view.notes]
    lines += ["", f"next: becausal case report {case}"]
    emit(record, "\n".join(map(clip, lines)), as_json=json)
    return 0


def show_report(case: str, /, *, output: Output = None, json: bool = False) -> int:
    """Write the report of a case in Markdown.

    Parameters
    ----------
    output
        Write into this file instead of standard output.
    json
        Print one JSON object on standard output.
    """
    from becausal.casework.report import report

    with open_case(os.getcwd(), case) as store:
        text = report(store, dossier(store, case))
    return _deliver({"case": case, "report": text}, text, output, as_json=json)


def export_case(case: str, /, *, output: Output = None, json: bool = False) -> int:
    """Write a case with its artifacts as one JSON document.

    Parameters
    ----------
    output
        Write into this file instead of standard output.
    json
        Print one JSON object on standard output.
    """
    import msgspec

    from becausal.casework.transfer import export

    with open_case(os.getcwd(), case) as store:
        document = export(store, case, tool_version=tool_version())
    text = msgspec.json.encode(document).decode() + "\n"
    record = msgspec.to_builtins(document)
    return _deliver(record, text, output, as_json=json)


def write_script(case: str, /, *, output: Output = None, json: bool = False) -> int:
    """Write one file that shows the failure without becausal.

    Parameters
    ----------
    output
        Write into this file instead of standard output.
    json
        Print one JSON object on standard output.
    """
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


def _outcomes(trials: tuple[Any, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for trial in trials:
        counts[str(trial.outcome)] = counts.get(str(trial.outcome), 0) + 1
    return counts


def _told(finding: Reproduction) -> str:
    """A finding on one line."""
    main = finding.main
    counted = f"{finding.verdict}: {main.failures} of {main.trials} {main.mode} runs failed"
    if main.rate is None or not main.failures:
        return counted
    return f"{counted} ({percent(main.rate)})"

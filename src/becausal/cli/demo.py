"""`becausal demo`: a sample project with a bug that shows now and then, investigated."""

from __future__ import annotations

import os.path
import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from becausal.casework.investigate import investigate
from becausal.casework.request import Request
from becausal.cli.output import emit
from becausal.cli.progress import progress
from becausal.cli.reproduce import as_record, exit_code
from becausal.domain.errors import WrongUse
from becausal.wiring import open_bench, sample_command, sample_project


def demo(
    *,
    keep: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    json: bool = False,
) -> int:
    """Investigate a sample project with a bug, in a temporary folder.

    Parameters
    ----------
    keep
        A new folder to make the project in, and to leave it there.
    json
        Print one JSON object on standard output.
    """
    with ExitStack() as stack:
        folder = _folder(keep, stack)
        top = sample_project(folder)
        request = Request(argv=sample_command(), folder=str(top))
        shown = progress()
        with open_bench(request, progress=shown, cache=folder / "cache") as bench:
            done = investigate(bench, request)
    finding = done.reproduced.finding
    program, *words = request.argv
    command = shlex.join((os.path.basename(program), *words))
    told = [
        "A small harbour gives ships their berths. One of its tests fails now",
        "and then. What becausal finds out when told to",
        "",
        f"    becausal investigate -- {command}",
        "",
        done.report.rstrip("\n"),
        "",
        "Now on a command of yours: becausal investigate -- COMMAND",
    ]
    if keep is not None:
        told.append(f"The project is in {top}")
    record = {"reproduction": as_record(done.reproduced), "report": done.report}
    emit(record, "\n".join(told), as_json=json)
    return exit_code(finding)


def _folder(keep: Path | None, stack: ExitStack) -> Path:
    if keep is None:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="becausal-demo-"))
        return Path(made)
    if keep.exists():
        raise WrongUse(
            "folder-exists",
            "the sample project is only made in a new folder",
            value=str(keep),
            hint="name a folder that does not exist yet",
        )
    keep.mkdir(parents=True)
    return keep.resolve()

"""Opening cases: which case a command belongs to."""

from __future__ import annotations

import os.path

from becausal.casework.bench import Bench
from becausal.casework.dossier import Dossier, dossier
from becausal.casework.request import Request, command_of
from becausal.domain.errors import WrongUse
from becausal.domain.journal import CaseOpened
from becausal.domain.signature import Signature


def joinable(bench: Bench, request: Request) -> list[Dossier]:
    """Cases that the request may belong to, the likeliest first."""
    if request.new and request.case is not None:
        raise WrongUse(
            "case-and-new",
            "a case is either joined or new",
            value=f"--case {request.case} --new",
            hint="leave one of the two out",
        )
    if request.case is not None:
        return [dossier(bench.store, request.case)]
    command = command_of(request, bench.repository.top)
    views = [dossier(bench.store, case) for case in reversed(bench.store.cases())]
    return [
        view
        for view in views
        if view.opened.command == command and view.opened.criterion == request.criterion
    ]


def about(views: list[Dossier], signature: Signature | None) -> Dossier | None:
    """The case among these that is about this failure."""
    return next((v for v in views if v.symptom == signature), None)


def open_case(bench: Bench, request: Request) -> str:
    """Open a new case for the request's command."""
    opened = CaseOpened(
        command=command_of(request, bench.repository.top),
        criterion=request.criterion,
        project=_name(bench.repository.top),
        tool_version=bench.tool_version,
    )
    return bench.store.open_case(opened, at=bench.clock.now())


def _name(top: str) -> str:
    """The name of the project's folder, in letters that can be written down."""
    name = os.path.basename(os.path.realpath(top))
    return name.encode(errors="surrogateescape").decode(errors="replace")

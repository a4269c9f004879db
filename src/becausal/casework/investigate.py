"""The investigation: everything becausal finds out about a command by itself."""

from __future__ import annotations

from dataclasses import dataclass

from becausal.casework.bench import Bench
from becausal.casework.report import report
from becausal.casework.reproduce import Reproduced, reproduce
from becausal.casework.request import Request


@dataclass(frozen=True, kw_only=True)
class Investigated:
    """What an investigation established, and its report."""

    reproduced: Reproduced
    report: str


def investigate(bench: Bench, request: Request, *, seconds: float | None = None) -> Investigated:
    """Open the case, observe, reproduce, report."""
    reproduced = reproduce(bench, request, seconds=seconds)
    return Investigated(reproduced=reproduced, report=report(bench.store, reproduced.dossier))

"""Decodes what the payload saw into a Recording: pure, nothing is read or run here."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from becausal.domain.recording import (
    Frame,
    Obstacle,
    Output,
    Raised,
    Recording,
    TestOutcome,
    TestReport,
)

_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages|lib/python\d(\.\d+)?t?|__pypackages__)/|^<frozen "
)


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """Where a trial stood: what tells its own files from those of others."""

    top: str
    """Top of the source as the trial saw it."""
    original: str = ""
    """Top of the person's tree, where it differs from `top` and could be run by mistake."""
    not_own: tuple[str, ...] = ()
    """Folders under the top that hold other people's code: virtual environments."""

    def relative(self, path: str) -> str | None:
        """Path relative to the top; None when it is not inside, or is other people's code."""
        inside = _below(path, self.top)
        if inside is None or any(_below(path, folder) is not None for folder in self.not_own):
            return None
        return None if _LIBRARY.search(inside) else inside


def side_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What the trial's payload told, of the frame that a server sent."""
    data = base64.b64decode(result.get("side_b64") or "")
    side = json.loads(data) if data else {}
    return side if isinstance(side, dict) else {}


def decode(result: Mapping[str, Any], ground: Ground, *, pytest: bool) -> Recording:
    """One server's answer as a recording; `pytest`: the command is a pytest run."""
    side = side_of(result)
    processes: list[dict[str, Any]] = side.get("processes") or []
    reports = [report for report in side.get("tests") or [] if "id" in report]
    imported = {path for process in processes for path in process.get("imported") or []}
    raised = next((p["raised"] for p in processes if p.get("raised")), None)
    obstacle = _told(result.get("obstacle")) or ran_original(imported, ground)
    if obstacle is None and pytest:
        obstacle = no_run(result, side.get("tests") or [])
    return Recording(
        exit_code=result.get("exit_code"),
        signal=result.get("signal"),
        timed_out=bool(result.get("timed_out")),
        obstacle=obstacle,
        stdout=output(result.get("stdout") or {}),
        stderr=output(result.get("stderr") or {}),
        tests=tuple(_report(report, ground) for report in reports),
        raised=None if raised is None or reports else _raised(raised, ground),
        imported=tuple(sorted(_relative(imported, ground))),
        lines=_lines(side.get("lines") or {}, ground),
        seconds=float(result.get("seconds") or 0.0),
        cpu_seconds=float(result.get("cpu_seconds") or 0.0),
        max_rss=int(result.get("max_rss") or 0),
        isolation=tuple(result.get("isolation") or ()),
    )


def output(stream: Mapping[str, Any]) -> Output:
    return Output(
        head=base64.b64decode(stream.get("head_b64") or ""),
        tail=base64.b64decode(stream.get("tail_b64") or ""),
        dropped=int(stream.get("dropped") or 0),
    )


def ran_original(imported: Iterable[str], ground: Ground) -> Obstacle | None:
    """The trial imported the person's tree instead of its workspace: it proves nothing."""
    if not ground.original:
        return None
    there = msgspec.structs.replace(ground, top=ground.original)
    inside = sorted(path for path in imported if there.relative(path) is not None)
    wrong = [path for path in inside if ground.relative(path) is None]
    if not wrong:
        return None
    return Obstacle(
        slug="ran-original-code",
        what=f"the trial imported {wrong[0]} from the original tree, not from its workspace",
        hint="an editable install or PYTHONPATH leads there; allow the sandbox (bubblewrap), "
        "or put the source folder on PYTHONPATH relative to the command's folder",
    )


def no_run(result: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> Obstacle | None:
    """pytest ran nothing at all: wrong words, or nothing to run. No failure of the code."""
    usage = next((str(r["usage"]) for r in reports if "usage" in r), "")
    if result.get("exit_code") == 4 and not any("id" in report for report in reports):
        words = usage or output(result.get("stderr") or {}).joined().decode("utf-8", "replace")
        words = words.strip()[-2000:]
        if re.search(
            r"(^|\n|: )((file or directory )?not found: |found no collectors for )", words
        ):
            hint = "does the test exist in this revision?"
            return Obstacle(slug="test-not-found", what=words, hint=hint)
        what = words or "pytest ended with a usage error"
        return Obstacle(slug="pytest-usage", what=what, hint="run the command by hand")
    if result.get("exit_code") == 5 and not reports:
        what = "pytest collected no test"
        return Obstacle(slug="no-tests", what=what, hint="check the path and the -k, -m options")
    return None


def _told(obstacle: Mapping[str, Any] | None) -> Obstacle | None:
    if not obstacle:
        return None
    return Obstacle(
        slug=obstacle["slug"], what=obstacle["what"], hint=str(obstacle.get("hint") or "")
    )


def _relative(paths: Iterable[str], ground: Ground) -> set[str]:
    return {inside for inside in map(ground.relative, paths) if inside is not None}


def _report(record: Mapping[str, Any], ground: Ground) -> TestReport:
    raised = record.get("raised")
    return TestReport(
        id=record["id"],
        outcome=msgspec.convert(record["outcome"], TestOutcome),
        seconds=record["seconds"],
        raised=None if raised is None else _raised(raised, ground),
        text=record.get("text") or "",
    )


def _raised(record: Mapping[str, Any], ground: Ground) -> Raised:
    cause = record.get("cause")
    return Raised(
        kind=record["kind"],
        message=record["message"],
        frames=tuple(_frame(frame, ground) for frame in record["frames"]),
        cause=None if cause is None else _raised(cause, ground),
    )


def _frame(frame: Mapping[str, Any], ground: Ground) -> Frame:
    inside = ground.relative(frame["file"])
    below = inside if inside is not None else _below(frame["file"], ground.top)
    return Frame(
        file=below if below is not None else frame["file"],
        function=frame["function"],
        line=frame["line"],
        own=inside is not None,
    )


def _lines(
    tests: Mapping[str, Mapping[str, list[int]]], ground: Ground
) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for test, files in tests.items():
        own = {ground.relative(name): lines for name, lines in files.items()}
        found[test] = {name: lines for name, lines in own.items() if name is not None}
    return found


def _below(path: str, folder: str) -> str | None:
    start = folder.rstrip(os.sep) + os.sep
    return path[len(start) :] if path.startswith(start) else None

"""From what a server answers to a Recording: paths brought back below the top, nothing judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from becausal.lab.pytest_words import lines_from, nothing_ran
from becausal.lab.stage import Stage
from becausal_payload import wire

_OUTCOMES: dict[str, TestOutcome] = {
    "passed": "passed",
    "failed": "failed",
    "error": "error",
    "skipped": "skipped",
    "xfailed": "xfailed",
    "xpassed": "xpassed",
}


def recording_from(answer: Mapping[str, Any], stage: Stage) -> Recording:
    """What every server's answer holds, warm or cold; the side is read by `add_side`."""
    obstacle = answer.get("obstacle")
    return Recording(
        exit_code=answer["exit_code"],
        signal=answer["signal"],
        timed_out=answer["timed_out"],
        obstacle=None if obstacle is None else msgspec.convert(obstacle, Obstacle),
        stdout=_output(answer["stdout"]),
        stderr=_output(answer["stderr"]),
        seconds=answer["seconds"],
        cpu_seconds=answer["cpu_seconds"],
        max_rss=answer["max_rss"],
        isolation=(*stage.isolation, *answer["isolation"]),
        notes=stage.notes,
    )


def add_side(recording: Recording, side: Mapping[str, Any], stage: Stage) -> Recording:
    """Add what the trial's processes told of themselves: tests, exceptions, proof of what ran."""
    processes = sorted(side.get("processes") or [], key=lambda each: each.get("pid", 0))
    told = side.get("tests") or []
    tests = [test for test in told if "id" in test]
    notes = [f"a report could not be read: {words}" for words in side.get("unread") or []]
    imported = [path for process in processes for path in process.get("imported") or []]
    raised = next((p["raised"] for p in processes if p.get("raised")), None)
    obstacle = recording.obstacle or ran_original(imported, stage) or nothing_ran(recording, told)
    return msgspec.structs.replace(
        recording,
        obstacle=obstacle,
        tests=tuple(test_from(test, stage) for test in tests),
        raised=None if raised is None or tests else raised_from(raised, stage),
        imported=own_files(imported, stage),
        lines=lines_from(told, stage),
        notes=(*recording.notes, *notes),
    )


def own_files(imported: Sequence[str], stage: Stage) -> tuple[str, ...]:
    """Imported files of the source, relative to its top."""
    return tuple(sorted({p for p in map(stage.relative, imported) if p is not None}))


def ran_original(imported: Sequence[str], stage: Stage) -> Obstacle | None:
    """The proof of what ran failed: code came from the person's tree, not from the workspace."""
    wrong = sorted({p for p in map(stage.original, imported) if p is not None})
    if not wrong:
        return None
    shown = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
    return Obstacle(
        slug="ran-original-code",
        what=f"the trial imported {shown} from {stage.grounds.top} instead of its workspace",
        hint=(
            "install bubblewrap, which shows the workspace at the original path; or put the "
            "folders of the source on PYTHONPATH; or install the package in editable mode"
        ),
    )


def test_from(record: Mapping[str, Any], stage: Stage) -> TestReport:
    raised = record.get("raised")
    return TestReport(
        id=record["id"],
        outcome=_OUTCOMES[record["outcome"]],
        seconds=record.get("seconds", 0.0),
        raised=None if raised is None else raised_from(raised, stage),
        text=record.get("text", ""),
    )


def raised_from(record: Mapping[str, Any], stage: Stage) -> Raised:
    cause = record.get("cause")
    return Raised(
        kind=record["kind"],
        message=record["message"],
        frames=tuple(_frame(frame, stage) for frame in record.get("frames") or ()),
        cause=None if cause is None else raised_from(cause, stage),
    )


def _frame(frame: Mapping[str, Any], stage: Stage) -> Frame:
    """A frame is the program's own below the top, unless it is in what is installed there."""
    inside = stage.relative(frame["file"])
    file = frame["file"] if inside is None else inside
    installed = "site-packages/" in file or "dist-packages/" in file
    linked = any(file.startswith(link + "/") for link in stage.grounds.links)
    own = inside is not None and not installed and not linked
    return Frame(file=file, function=frame["function"], line=frame["line"], own=own)


def _output(stream: Mapping[str, Any]) -> Output:
    return Output(
        head=wire.as_bytes(stream["head_b64"]),
        tail=wire.as_bytes(stream["tail_b64"]),
        dropped=stream["dropped"],
    )

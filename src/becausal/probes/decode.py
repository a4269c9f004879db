"""From what a server answers to a Recording: paths brought back below the top, nothing judged."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from becausal.domain.recording import Frame, Obstacle, Output, Raised, Recording, TestReport
from becausal.probes.pytest_words import nothing_ran
from becausal.probes.told import FrameTold, RaisedTold, RunTold, Side, TestTold, read_side


class Ground(Protocol):
    """Where a trial stood: what tells its own files from those of others."""

    @property
    def isolation(self) -> tuple[str, ...]:
        """What kept the trial apart, besides what the server says of it."""

    @property
    def notes(self) -> tuple[str, ...]: ...

    @property
    def used_in_place(self) -> tuple[str, ...]:
        """Folders below the top that are the person's own: virtual environments."""

    def relative(self, path: str) -> str | None:
        """A path the trial named, below the top of the source; None when it is elsewhere."""

    def original(self, path: str) -> str | None:
        """A path of the person's own tree that should not have been used, below the top."""


def decode(answer: Mapping[str, Any], ground: Ground) -> Recording:
    """One server's answer, warm or cold, as a recording."""
    side = read_side(base64.b64decode(answer.get("side_b64") or b""))
    obstacle = answer.get("obstacle")
    recording = Recording(
        exit_code=answer["exit_code"],
        signal=answer["signal"],
        timed_out=answer["timed_out"],
        obstacle=None if obstacle is None else msgspec.convert(obstacle, Obstacle),
        stdout=_output(answer["stdout"]),
        stderr=_output(answer["stderr"]),
        seconds=answer["seconds"],
        cpu_seconds=answer["cpu_seconds"],
        max_rss=answer["max_rss"],
        isolation=(*ground.isolation, *answer["isolation"]),
        notes=(*ground.notes, *(f"a report could not be read: {words}" for words in side.unread)),
    )
    return _with_side(recording, side, ground)


def _with_side(recording: Recording, side: Side, ground: Ground) -> Recording:
    """Add what the trial's processes told of themselves: tests, exceptions, proof of what ran."""
    imported = [path for process in side.processes for path in process.imported]
    raised = next((p.raised for p in side.processes if p.raised is not None), None)
    obstacle = recording.obstacle or ran_original(imported, ground) or nothing_ran(recording, side)
    return msgspec.structs.replace(
        recording,
        obstacle=obstacle,
        tests=tuple(_test(test, ground) for test in side.tests),
        raised=None if raised is None or side.tests else _raised(raised, ground),
        imported=tuple(sorted({p for p in map(ground.relative, imported) if p is not None})),
        lines=_lines(side.run, ground),
    )


def ran_original(imported: Sequence[str], ground: Ground) -> Obstacle | None:
    """The proof of what ran failed: code came from the person's tree, not from the workspace."""
    wrong = sorted({path for path in imported if ground.original(path) is not None})
    if not wrong:
        return None
    shown = ", ".join(wrong[:3]) + (", …" if len(wrong) > 3 else "")
    return Obstacle(
        slug="ran-original-code",
        what=f"the trial imported {shown}: the original instead of its workspace",
        hint=(
            "install bubblewrap, which shows the workspace at the original path; or put the "
            "folders of the source on PYTHONPATH; or install the package in editable mode"
        ),
    )


def _test(told: TestTold, ground: Ground) -> TestReport:
    return TestReport(
        id=told.id,
        outcome=told.outcome,
        seconds=told.seconds,
        raised=None if told.raised is None else _raised(told.raised, ground),
        text=told.text,
    )


def _raised(told: RaisedTold, ground: Ground) -> Raised:
    return Raised(
        kind=told.kind,
        message=told.message,
        frames=tuple(_frame(frame, ground) for frame in told.frames),
        cause=None if told.cause is None else _raised(told.cause, ground),
    )


def _frame(told: FrameTold, ground: Ground) -> Frame:
    """A frame is the program's own below the top, unless it is in what is installed there."""
    inside = ground.relative(told.file)
    file = told.file if inside is None else inside
    installed = "site-packages/" in file or "dist-packages/" in file
    linked = any(file.startswith(folder + "/") for folder in ground.used_in_place)
    own = inside is not None and not installed and not linked
    return Frame(file=file, function=told.function, line=told.line, own=own)


def _lines(run: Sequence[RunTold], ground: Ground) -> dict[str, dict[str, list[int]]]:
    """Test id -> file below the top -> lines."""
    found: dict[str, dict[str, list[int]]] = {}
    for told in run:
        for test, files in told.lines.items():
            own = {ground.relative(name): lines for name, lines in files.items()}
            found[test] = {name: lines for name, lines in own.items() if name is not None}
    return found


def _output(stream: Mapping[str, Any]) -> Output:
    return Output(
        head=base64.b64decode(stream["head_b64"]),
        tail=base64.b64decode(stream["tail_b64"]),
        dropped=stream["dropped"],
    )

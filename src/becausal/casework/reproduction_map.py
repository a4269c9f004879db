"""The reproduction map: one picture of how a failure shows, at most 70 columns and 20 lines."""

from __future__ import annotations

import os.path
import shlex

from becausal.casework.dossier import Dossier
from becausal.domain.finding import Reproduction, Stratum
from becausal.domain.recording import Frame, Raised

WIDTH = 70
BAR = 20
FRAMES = 4


CONFIRMED, SUSPECTED, DIVERGENCE = "●", "○", "✗"
FULL, EMPTY = "█", "░"
BRANCH, LAST, STEM = "├─", "╰─", "│"
REASONS = {
    "hash-seed": "it depends on the hash seed (the order of sets)",
    "import-order": "it depends on what was imported before",
    "leftover-state": "only a process that lived before the test shows it",
    "unknown": "not known; compare a fresh run with a warm one",
}


def reproduction_map(view: Dossier, finding: Reproduction, raised: Raised | None) -> str:
    """Draw it: the command, each stratum with its rate, the failure and where it shows."""
    program, *words = view.opened.command.argv
    if os.path.isabs(program):
        program = os.path.basename(program)
    lines = [shlex.join((program, *words)), STEM]
    strata = [s for s in finding.strata if _ran(s)]
    lines += [_stratum(s, last=s is strata[-1]) for s in strata]
    lines += ["", _verdict(finding)]
    if finding.disagreement is not None:
        lines.append(f"{DIVERGENCE} {' and '.join(finding.disagreement.between)} disagree:")
        lines.append(f"  {finding.disagreement.detail}")
        lines.append(f"  likely reason: {REASONS[finding.disagreement.reason]}")
    if view.symptom is not None and finding.verdict in ("consistent", "intermittent"):
        # What it really said once; the signature masks whatever differs between runs.
        message = view.symptom.message if raised is None else raised.message.split("\n")[0]
        lines += [f"{DIVERGENCE} {view.symptom.kind}: {message}".rstrip(": ")]
        lines += _frames(raised)
    return "\n".join(clip(line) for line in lines)


def clip(line: str, width: int = WIDTH) -> str:
    """One line, no wider than the picture; control characters shown, not obeyed."""
    line = "".join(c if c.isprintable() else " " for c in line)
    return line if len(line) <= width else line[: width - 1] + "…"


def _ran(stratum: Stratum) -> bool:
    return bool(stratum.trials or stratum.otherwise or stratum.timed_out or stratum.could_not_run)


def _stratum(stratum: Stratum, *, last: bool) -> str:
    rate = stratum.rate or 0.0
    filled = round(rate * BAR)
    if 0 < stratum.failures < stratum.trials:
        filled = min(max(filled, 1), BAR - 1)
    bar = FULL * filled + EMPTY * (BAR - filled)
    others = [
        f"{count} {name}"
        for count, name in (
            (stratum.otherwise, "otherwise"),
            (stratum.timed_out, "timed out"),
            (stratum.could_not_run, "could not run"),
        )
        if count
    ]
    counted = [f"{stratum.failures}/{stratum.trials} failed"] if stratum.trials else []
    tail = "  ".join(counted + others)
    return f"{LAST if last else BRANCH} {stratum.mode:<5} {bar} {tail}"


def _verdict(finding: Reproduction) -> str:
    low, high = finding.main.interval
    sure = CONFIRMED if finding.verdict in ("consistent", "intermittent") else SUSPECTED
    if finding.main.rate is None:
        return f"{sure} {finding.verdict}"
    span = f"rate {percent(finding.main.rate)}, between {percent(low)} and {percent(high)}"
    return f"{sure} {finding.verdict}: {span}"


def _frames(raised: Raised | None) -> list[str]:
    if raised is None:
        return []
    own: list[Frame] = [frame for frame in raised.frames if frame.own]
    shown = own[-FRAMES:]
    left = [f"  … {len(own) - FRAMES} more above"] if len(own) > FRAMES else []
    return left + [f"  {frame.file}:{frame.line} {frame.function}" for frame in shown]


def percent(rate: float) -> str:
    """A rate for people: whole percents, and never 0 or 100 unless it is."""
    if 0 < rate < 0.005:
        return "<1 %"
    if 0.995 <= rate < 1:
        return ">99 %"
    return f"{rate * 100:.0f} %"

"""Signatures of failures: exception, masked message, and the way through the person's own code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from becausal.domain.criterion import Criterion
from becausal.domain.recording import Frame, Output, Raised, Recording, TestReport
from becausal.domain.signature import Signature
from becausal.inquiry.measure import is_hang
from becausal.inquiry.normalise import normalise
from becausal.inquiry.traceback_text import tracebacks

_FOREIGN_FRAMES = 3
_MOST_FRAMES = 40
# Python 3.12 made these part of the function around them, which every other Python shows as well.
_INLINED = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_LIBRARY = re.compile(
    r"(?:^|(?<=/))(?:site-packages|dist-packages|lib(?:64)?/python\d+(?:\.\d+)?(?:\.zip)?"
    r"|\.tox|\.nox|\.venv|venv|node_modules)/"
)
_RUNNER_ERROR = re.compile(r"^E\s+(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$", re.MULTILINE)
# Names of Linux, because `signal` is not part of pure Python and names differ by system.
_SIGNALS = {
    1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
    10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU",
    25: "XFSZ", 31: "SYS",
}  # fmt: skip


def signature_of(recording: Recording, criterion: Criterion) -> Signature | None:
    """The signature of the main failure a run shows, None when it shows none.

    What only the criterion calls a failure (a measure, an output, an exit code) has the signature
    `judge` gives it; this one is of what the run shows by itself.
    """
    if recording.obstacle is not None:
        return None
    if recording.timed_out:
        return Signature(kind="hang") if is_hang(criterion) else None
    if recording.signal is not None:
        return Signature(kind=f"signal {signal_name(recording.signal)}")
    if not recording.exit_code:
        return None
    failing = failing_tests(recording)
    if failing:
        return signature_of_test(failing[0])
    return _of_program(recording) or Signature(kind=f"exit {recording.exit_code}")


def failing_tests(recording: Recording) -> tuple[TestReport, ...]:
    """Tests that failed or could not be set up, in the order they ran."""
    return tuple(test for test in recording.tests if test.outcome in ("failed", "error"))


def signature_of_test(test: TestReport) -> Signature:
    """The failure of one test."""
    if test.raised is not None:
        return signature_of_raised(test.raised)
    found = tracebacks(test.text, own_file)
    if found:
        return signature_of_raised(found[-1])
    named = list(_RUNNER_ERROR.finditer(test.text))
    if named:
        kind, message = named[-1]["kind"], named[-1]["message"] or ""
        return Signature(kind=kind, message=normalise(message, kind))
    lines = [line.strip() for line in test.text.splitlines() if line.strip()]
    return Signature(kind=f"test {test.outcome}", message=normalise("".join(lines[-1:]), "test"))


def signature_of_raised(raised: Raised) -> Signature:
    """The failure an exception shows; line numbers, folders and depth of recursion play no part."""
    kind = raised.kind.removeprefix("__main__.").removeprefix("builtins.")
    own = [frame for frame in raised.frames if frame.own]
    chosen = own or list(raised.frames)[-_FOREIGN_FRAMES:]
    names = [place_of(f) for f in chosen if f.function not in _INLINED]
    frames = _collapsed(names, endless=kind == "RecursionError")[-_MOST_FRAMES:]
    return Signature(kind=kind, message=normalise(raised.message, kind), frames=tuple(frames))


def place_of(frame: Frame) -> str:
    """`module.function` of a level; only the file's own name where its package is unknown."""
    file = frame.file.replace("\\", "/")
    library = list(_LIBRARY.finditer(file))
    if library:
        file = file[library[-1].end() :]
    elif file.startswith("/") or file[1:3] == ":/":
        parts = file.split("/")
        file = "/".join(parts[-2:] if parts[-1] == "__init__.py" else parts[-1:])
    parts = [p for p in file.removesuffix(".py").split("/") if p not in ("", ".", "..")]
    if len(parts) > 1 and parts[0] == "src":
        parts = parts[1:]
    if len(parts) > 1 and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join([*parts, frame.function])


def own_file(file: str) -> bool:
    """In the code under study, as far as its name tells: no library, no generated code."""
    return not file.startswith("<") and _LIBRARY.search(file.replace("\\", "/")) is None


def signal_name(number: int) -> str:
    return _SIGNALS.get(number, str(number))


def has_traceback(recording: Recording) -> bool:
    """Whether a Python program says in this run why it ended."""
    return recording.raised is not None or _printed_last(recording) is not None


def _of_program(recording: Recording) -> Signature | None:
    raised = recording.raised or _printed_last(recording)
    if raised is None or raised.kind == "SystemExit":
        return None
    return signature_of_raised(raised)


def _printed_last(recording: Recording) -> Raised | None:
    """The last traceback printed: the one a program ends with. Standard error speaks first."""
    for stream in (recording.stderr, recording.stdout):
        found = tracebacks(_text(stream), _own_in(recording.imported))
        if found:
            return _relative(found[-1], recording.imported)
    return None


def _text(stream: Output) -> str:
    return stream.joined().decode("utf-8", errors="replace")


def _own_in(imported: Sequence[str]) -> Callable[[str], bool]:
    known = frozenset(imported)
    return lambda file: own_file(file) or file in known


def _relative(raised: Raised, imported: Iterable[str]) -> Raised:
    """Name files as the run's import record does, so that folders play no part."""
    known = frozenset(imported)

    def named(file: str) -> str:
        parts = file.split("/")
        ends = ("/".join(parts[at:]) for at in range(len(parts)))
        return next((end for end in ends if end in known), file)

    frames = tuple(
        Frame(file=named(f.file), function=f.function, line=f.line, own=f.own)
        for f in raised.frames
    )
    return Raised(kind=raised.kind, message=raised.message, frames=frames, cause=raised.cause)


def _collapsed(names: Sequence[str], *, endless: bool) -> list[str]:
    """Each function once, where it was first entered, and the place of the failure last.

    Of an endless recursion only the way in and the circle stay: where the stack ran out is chance.
    """
    if not names:
        return []
    often = Counter(names)
    if endless:
        start = next((at for at, name in enumerate(names) if often[name] > 1), len(names))
        names = [n for at, n in enumerate(names) if at < start or often[n] > 1]
    once = list(dict.fromkeys(names))
    return once if endless or once[-1] == names[-1] else [*once, names[-1]]

"""Exceptions as plain records: what was raised, where, and what it was raised from."""

from __future__ import annotations

import builtins
import os
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence

MESSAGE_BYTES = 4096
FRAMES = 200
CAUSES = 20

Record = Dict[str, Any]


def describe(error: BaseException, skip: Sequence[str] = ()) -> Record:
    """An exception as {kind, message, frames, cause}, its frames outermost first.

    Frames of files under `skip` are left out at the outer end: a test runner's own way to the
    test says nothing about the failure.
    """
    return _describe(error, tuple(skip), set(), CAUSES)


def _describe(error: BaseException, skip: Sequence[str], seen: "set[int]", depth: int) -> Record:
    seen.add(id(error))
    inside = _first_leaf(error)
    if inside is not None:
        record = _plain(inside, skip)
        record["message"] = _capped(
            "%s [first of %s: %s]" % (record["message"], kind_of(type(error)), _text(error))
        )
        if not record["frames"]:
            record["frames"] = frames_of(error.__traceback__, skip)
        error = inside
    else:
        record = _plain(error, skip)
    cause = _cause(error)
    if cause is not None and id(cause) not in seen and depth > 0:
        record["cause"] = _describe(cause, skip, seen, depth - 1)
    return record


def _plain(error: BaseException, skip: Sequence[str]) -> Record:
    return {
        "kind": kind_of(type(error)),
        "message": _capped(_text(error)),
        "frames": frames_of(error.__traceback__, skip),
        "cause": None,
    }


def kind_of(kind: type) -> str:
    """Bare name of a builtin, dotted with its module otherwise."""
    name = kind.__qualname__
    module = kind.__module__
    if getattr(builtins, name, None) is kind or not isinstance(module, str):
        return name
    return "%s.%s" % (module, name)


def frames_of(trace: Optional[TracebackType], skip: Sequence[str] = ()) -> List[Record]:
    """Levels of a traceback, outermost first; of an endless recursion the two ends.

    The plain function name is used, not the qualified one: Pythons before 3.11 do not know it,
    and a failure has to look the same under each.
    """
    frames: List[Record] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if frames or not code.co_filename.startswith(tuple(skip)):
            name = code.co_filename
            path = name if name.startswith("<") else os.path.abspath(name)
            frames.append({"file": path, "function": code.co_name, "line": trace.tb_lineno})
        trace = trace.tb_next
    if len(frames) > FRAMES:
        del frames[FRAMES // 2 : len(frames) - FRAMES // 2]
    return frames


def _cause(error: BaseException) -> Optional[BaseException]:
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _first_leaf(error: BaseException) -> Optional[BaseException]:
    """The first exception in a group that is no group itself; None when it is no group."""
    leaf: Optional[BaseException] = None
    members = getattr(error, "exceptions", None) if _is_group(error) else None
    while members:
        leaf = members[0]
        members = getattr(leaf, "exceptions", None) if _is_group(leaf) else None
    return leaf


def _is_group(error: Optional[BaseException]) -> bool:
    # By name: the backport for Pythons before 3.11 is a class of its own.
    return any(kind.__name__ == "BaseExceptionGroup" for kind in type(error).__mro__)


def _text(error: BaseException) -> str:
    """The message; `__str__` is the program's code and may itself raise anything."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001
        return "<message unreadable: its __str__ raised %s>" % kind_of(type(broken))


def _capped(text: str) -> str:
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= MESSAGE_BYTES:
        return data.decode("utf-8")
    return data[:MESSAGE_BYTES].decode("utf-8", "ignore") + "…"

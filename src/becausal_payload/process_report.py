"""What a Python process says of itself when it ends: files imported, what it died of."""

from __future__ import annotations

import json
import os
import sys

from becausal_payload import imports

TYPE_CHECKING = False  # as in typing, whose import would cost every process of a trial 4 ms
if TYPE_CHECKING:
    from typing import Any, Dict, Optional


def at_exit(folder: str, start: str) -> None:
    """The last exit function to run; `start` is the folder that the process was started in."""
    error = _uncaught()
    # The interpreter has by now forgotten which file it ran as its main module.
    program = os.path.join(start, sys.argv[0]) if getattr(sys, "argv", None) else start
    write(folder, error, program if os.path.isfile(program) else None)
    if isinstance(error, KeyboardInterrupt):
        # Our imports evaluated strings, which clears the interpreter's mark that it has to end by
        # SIGINT. Evaluating one that is interrupted sets it again.
        try:
            exec("raise KeyboardInterrupt")
        except KeyboardInterrupt:
            return


def write(
    folder: str, error: Optional[BaseException] = None, program: Optional[str] = None
) -> None:
    """Leave `process-<pid>.json`; where that cannot be written, the program goes on unaware."""
    roots = imports.given_roots()
    record: Dict[str, Any] = {
        "pid": os.getpid(),
        "argv": list(getattr(sys, "argv", [])),
        "imported": imports.imported_files(roots, program=program),
        "raised": None if error is None else _described(error),
    }
    name = "process-%d.json" % os.getpid()
    part = os.path.join(folder, ".part-" + name)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(part, "w", encoding="ascii") as file:
            json.dump(record, file)
        os.replace(part, os.path.join(folder, name))
    except OSError:
        # The program may have changed root, user or limits: its own affair, and no failure of it.
        return


def _described(error: BaseException) -> Dict[str, Any]:
    from becausal_payload import raised  # few processes end so; the others need not pay for it

    return raised.describe(error, skip=_RUNPY)


def _uncaught() -> Optional[BaseException]:
    """The exception that ends this process, without a hook that the program could notice.

    The interpreter leaves it in sys.last_value before it calls the exit functions. Test runners
    and debuggers use the same place for exceptions they caught; the traceback of those does not
    begin at the bottom of the stack.
    """
    error = getattr(sys, "last_value", None)
    trace = getattr(sys, "last_traceback", None)
    if not isinstance(error, BaseException):
        return None
    if trace is not None and trace.tb_frame.f_back is not None:
        return None
    return error


_RUNPY = (
    "<frozen runpy>",
    os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "runpy.py"),
)

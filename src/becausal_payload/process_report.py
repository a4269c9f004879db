"""What a Python process says of itself when it ends: files imported, what it died of."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Optional

from becausal_payload import imports, raised


def write(folder: str, ended: bool = True) -> None:
    """Leave `process-<pid>.json`; where that cannot be written, the program goes on unaware."""
    record: Dict[str, Any] = {
        "pid": os.getpid(),
        "argv": list(getattr(sys, "argv", [])),
        "imported": imports.imported_files(imports.given_roots()),
        "raised": _uncaught() if ended else None,
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


def _uncaught() -> Optional[Dict[str, Any]]:
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
    return raised.describe(error, skip=("<frozen runpy>", _RUNPY))


_RUNPY = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "runpy.py")

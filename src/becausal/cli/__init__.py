"""The command line: parses, calls the casework, renders."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the `becausal` program."""
    leave_the_programs_path()
    try:
        from becausal.cli.door import run

        code = run()
    except KeyboardInterrupt:  # so early, or so late, that there is nothing to tell
        code = 130
    raise SystemExit(code)


def leave_the_programs_path() -> None:
    """PYTHONPATH is the program's under study: what lies there must not replace what we import.

    It may well be the source of a library that we use. Trials get it all the same.
    """
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    theirs = {os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p}
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) == ours or p not in theirs]

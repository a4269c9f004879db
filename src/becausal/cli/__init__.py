"""The command line: parses, calls the casework, renders."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Entry point of the `becausal` program."""
    leave_the_programs_path()
    from becausal.cli.door import run

    raise SystemExit(run())


def leave_the_programs_path() -> None:
    """PYTHONPATH is the program's under study: what lies there must not replace what we import.

    It may well be the source of a library that we use. Trials get it all the same.
    """
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    theirs = {os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p}
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) == ours or p not in theirs]

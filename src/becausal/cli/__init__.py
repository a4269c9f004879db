"""The command line: parses, calls the casework, renders."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `becausal` program."""
    from becausal.cli.door import run

    raise SystemExit(run())

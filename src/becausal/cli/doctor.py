"""`becausal doctor`: what works on this machine, and the workspaces in the cache."""

from __future__ import annotations

import time
from typing import Any

from becausal.cli.output import emit
from becausal.domain.errors import COULD_NOT_RUN, DONE
from becausal.wiring import cache_folder, health


def doctor(*, clean: bool = False, everything: bool = False, json: bool = False) -> int:
    """Say what works on this machine; list and clean workspaces.

    Parameters
    ----------
    clean
        Remove workspaces that nobody holds and that are as they were left.
    everything
        With --clean: also damaged workspaces, and what was captured of uncommitted work.
    json
        Print one JSON object on standard output.
    """
    cache = cache_folder()
    found = health(cache, clean=clean, everything=everything)
    emit(found, "\n".join(_lines(found)), as_json=json)
    needed = [check for check in found["checks"] if check["name"] in ("git", "cache")]
    return DONE if all(check["works"] for check in needed) else COULD_NOT_RUN


def _lines(found: dict[str, Any]) -> list[str]:
    lines = []
    for check in found["checks"]:
        lines.append(f"{'ok' if check['works'] else '--'}  {check['name']:<14} {check['found']}")
        if check["hint"]:
            lines.append(f"    {'':<14} {check['hint']}")
    lines.append("")
    for space in found["removed"]:
        lines.append(f"removed  {space['path']}")
    if not found["workspaces"]:
        return [*lines, "no workspaces"]
    lines.append("workspaces")
    for space in found["workspaces"]:
        used = time.strftime("%Y-%m-%d %H:%M", time.gmtime(space["last_used"]))
        size = f"{space['size'] / 1e6:.0f} MB"
        lines.append(f"  {space['state']:<8} {size:>8}  {used}  {space['repository']}")
        lines.append(f"           {space['path']}")
    states = {space["state"] for space in found["workspaces"]}
    lines.append("")
    if "free" in states:
        lines.append("becausal doctor --clean removes those that are free")
    if "damaged" in states:
        lines.append("damaged: changed since they were left; the next command repairs them, and")
        lines.append("becausal doctor --clean --everything removes them too")
    return lines

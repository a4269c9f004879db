"""What this machine offers to a laboratory, found out by trying."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

import msgspec

from becausal.domain.errors import BecausalError
from becausal.lab.payload_home import payload_home, spawner_argv
from becausal.lab.process import run_tool
from becausal.lab.server import Server
from becausal.lab.stage import find_bubblewrap


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that matters, whether it works, and what to do when it does not."""

    name: str
    works: bool
    found: str
    hint: str = ""


def checks(cache: Path) -> tuple[Check, ...]:
    """Try everything that a trial may need."""
    return (
        Check(
            name="python",
            works=True,
            found=f"{platform.python_version()} at {sys.executable}",
        ),
        _git(),
        _bubblewrap(),
        *_means(cache),
        _cache(cache),
    )


def _git() -> Check:
    hint = "install git: without it only plain folders can be studied"
    try:
        done = run_tool(["git", "--version"], cwd="/", timeout=10, check=True)
    except BecausalError as error:
        return Check(name="git", works=False, found=error.what, hint=hint)
    return Check(name="git", works=True, found=done.stdout.decode().strip())


def _bubblewrap() -> Check:
    found = find_bubblewrap()
    return Check(
        name="bubblewrap",
        works=bool(found.path),
        found=found.path or found.reason,
        hint=""
        if found.path
        else "install bubblewrap where user namespaces are allowed: trials then see the workspace "
        "at your path, and nothing else of yours can be changed by them",
    )


def _means(cache: Path) -> tuple[Check, ...]:
    """What keeps trials apart where there is no sandbox; a server finds it out by trying."""
    with Server(spawner_argv(payload_home(cache)), env={"PATH": os.defpath}) as server:
        told = server.hello["ready"]["means"]
    reasons = told["reasons"]
    return (
        Check(
            name="pid-namespace",
            works=bool(told["pid-namespace"]),
            found="works" if told["pid-namespace"] else reasons.get("pid-namespace", "refused"),
            hint=""
            if told["pid-namespace"]
            else "trials are then ended by walking their process tree",
        ),
        Check(
            name="overlay",
            works=bool(told["overlay"]),
            found="works" if told["overlay"] else reasons.get("overlay", "refused"),
            hint="" if told["overlay"] else "files that trials change are then put back after each",
        ),
    )


def _cache(cache: Path) -> Check:
    place = next(p for p in (cache, *cache.parents) if p.exists())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    return Check(
        name="cache",
        works=writable,
        found=f"{cache}, {free / 1e9:.1f} GB free",
        hint="" if writable else "set BECAUSAL_CACHE to a folder that you may write to",
    )

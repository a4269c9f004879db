"""The only place where adapters are chosen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from becausal.domain.errors import WrongUse

if TYPE_CHECKING:
    from becausal.casework.bench import Bench
    from becausal.casework.request import Request
    from becausal.ports.progress import Progress
    from becausal.ports.store import Store

# Imports stand inside the functions: a command that only reads must not pay for the laboratory.

STORE_NAME = ".becausal"


@contextmanager
def open_bench(
    request: Request,
    *,
    progress: Progress,
    width: int | None = None,
    cache: Path | None = None,
) -> Iterator[Bench]:
    """The bench for one command in one folder; closed again whatever happens."""
    from becausal.casework.bench import Bench
    from becausal.lab.clock import SystemClock
    from becausal.lab.local import LocalLab
    from becausal.lab.repository import open_repository
    from becausal.store.folder import open_store

    cache = cache or cache_folder()
    repository = open_repository(Path(request.folder), cache)
    store = open_store(store_folder(Path(repository.top)))
    try:
        environment = {**os.environ, **dict(request.secrets)}
        lab = LocalLab(repository, cache, artifacts=store, width=width, environment=environment)
        try:
            yield Bench(
                store=store,
                lab=lab,
                repository=repository,
                clock=SystemClock(),
                progress=progress,
                tool_version=tool_version(),
                entropy=int.from_bytes(os.urandom(8), "big"),
            )
        finally:
            progress.end()
            lab.close()
    finally:
        store.close()


def part_secrets(
    changes: tuple[tuple[str, str | None], ...],
) -> tuple[tuple[tuple[str, str | None], ...], tuple[tuple[str, str], ...]]:
    """Declared changes with secrets masked, as they may be written down; and the secrets."""
    from becausal.domain.condition import secret_mask
    from becausal.lab.redaction import looks_secret

    secrets = {name: value for name, value in changes if value and looks_secret(name)}
    masked = [(name, secret_mask(name) if name in secrets else value) for name, value in changes]
    return tuple(masked), tuple(secrets.items())


@contextmanager
def open_cases(folder: str) -> Iterator[Store | None]:
    """The store around a folder, for reading; None when there is none."""
    from becausal.store.folder import open_store

    place = store_folder(_top(Path(folder)))
    if not place.exists():
        yield None
        return
    store = open_store(place, readonly=True)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def open_case(folder: str, case: str) -> Iterator[Store]:
    """The store that should hold a case, for reading."""
    with open_cases(folder) as store:
        if store is None:
            raise WrongUse(
                "case-unknown",
                "there are no cases here",
                value=case,
                hint="stand in the project, or open one: becausal reproduce -- COMMAND",
            )
        yield store


def cache_folder() -> Path:
    """Where workspaces live: BECAUSAL_CACHE, else the user's cache folder."""
    chosen = os.environ.get("BECAUSAL_CACHE")
    if chosen:
        return Path(chosen).absolute()
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base, "becausal")


def store_folder(top: Path) -> Path:
    """Where cases live: BECAUSAL_STORE, else a folder at the top of the project."""
    chosen = os.environ.get("BECAUSAL_STORE")
    return Path(chosen).absolute() if chosen else top / STORE_NAME


def health(cache: Path, *, clean: bool, everything: bool) -> dict[str, Any]:
    """What works here, and the workspaces, after cleaning where that was asked for."""
    import msgspec

    from becausal.lab.health import checks
    from becausal.lab.housekeeping import pool_clean, pool_report

    removed = pool_clean(cache, everything=everything) if clean else ()
    found: dict[str, Any] = msgspec.to_builtins(
        {"checks": checks(cache), "removed": removed, "workspaces": pool_report(cache)}
    )
    return found


def sample_project(folder: Path) -> Path:
    from becausal.lab.sample import make_sample

    return make_sample(folder)


def sample_command() -> tuple[str, ...]:
    """The failing test of the sample project, run by pytest where that is installed."""
    from importlib.util import find_spec

    from becausal.lab.sample import CASE, NAME, TEST

    if find_spec("pytest") is not None:
        return (sys.executable, "-m", "pytest", f"{TEST}::{CASE}::{NAME}")
    return (sys.executable, "-m", "unittest", f"{TEST[:-3].replace('/', '.')}.{CASE}.{NAME}")


def tool_version() -> str:
    from importlib.metadata import version

    return version("becausal")


def _top(folder: Path) -> Path:
    """The nearest folder above that has cases or is the top of a repository; no process is run."""
    folder = folder.absolute()
    for place in (folder, *folder.parents):
        if (place / STORE_NAME).is_dir() or (place / ".git").exists():
            return place
    return folder

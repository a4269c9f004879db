"""The payload home: a folder that holds what is injected into programs under study, and no more."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import secrets
import shutil
import sys
from pathlib import Path

from becausal.domain.errors import CouldNotRun

_HOOK = ("site_hook", "sitecustomize.py")


def payload_home(cache: Path) -> Path:
    """The payload home in the cache, made when it is not there; named by what is in it."""
    source = _source()
    files = sorted(
        path
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    )
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    home = cache.absolute() / "payload" / digest.hexdigest()
    if not home.is_dir():
        _make(home, source, files)
    return home


def spawner_argv(home: Path) -> list[str]:
    """How a cold server starts: by the interpreter under our virtual environment, which may lie in
    the person's tree, alone and untouched by anybody's environment."""
    spawner = home / "becausal_payload" / "spawner.py"
    return [os.path.realpath(sys.executable), "-I", "-S", str(spawner)]


def _source() -> Path:
    spec = importlib.util.find_spec("becausal_payload")
    if spec is None or spec.origin is None:
        raise CouldNotRun(
            "payload-missing",
            "The package becausal_payload is not installed beside becausal.",
            hint="Install becausal again.",
        )
    return Path(spec.origin).parent


def _make(home: Path, source: Path, files: list[Path]) -> None:
    """Fill a folder aside and rename it: others see all of it or nothing."""
    home.parent.mkdir(parents=True, exist_ok=True)
    fresh = home.with_name(f".{home.name}.{os.getpid()}-{secrets.token_hex(4)}")
    package = fresh / "becausal_payload"
    try:
        for path in files:
            place = package / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        hook = package.joinpath(*_HOOK)
        if hook.exists():
            shutil.copyfile(hook, fresh / _HOOK[-1])
        with contextlib.suppress(FileExistsError):
            _rename(fresh, home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _rename(fresh: Path, home: Path) -> None:
    try:
        os.rename(fresh, home)
    except OSError as error:
        if not home.is_dir():
            raise
        raise FileExistsError from error  # another of us was first; its folder says the same

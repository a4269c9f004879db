"""The environment around a failure, as a report shows it."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from becausal.domain.condition import secret_mask
from becausal.domain.observation import Surroundings
from becausal.lab.interpreter import Interpreter, installed
from becausal.lab.redaction import Redactor, looks_secret

_TELLING = ("PYTHON", "PYTEST", "LC_", "NODE_", "DJANGO_", "FLASK_", "OMP_", "HYPOTHESIS_")
_TELLING_TOO = {
    "CI",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
}


def collect_surroundings(
    env: Mapping[str, str],
    interpreter: Interpreter | None,
    *,
    declared: Mapping[str, str | None] | None = None,
    redactor: Redactor | None = None,
) -> Surroundings:
    """Interpreter, platform, packages, and the variables that matter: known and declared ones."""
    mask = redactor or Redactor(env)
    chosen: list[tuple[str, str]] = []
    for name in sorted(env):
        telling = name in _TELLING_TOO or name.startswith(_TELLING) or name in (declared or {})
        if telling:
            secret = looks_secret(name)
            chosen.append((name, secret_mask(name) if secret else mask.redact_text(env[name])))
    python = "" if interpreter is None else f"{interpreter.version} {interpreter.executable}"
    return Surroundings(
        python=python,
        platform=platform.platform(),
        packages=() if interpreter is None else installed(interpreter.packages),
        variables=tuple(chosen),
    )

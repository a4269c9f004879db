"""The environment variables of a trial: the person's, without what would steer it unseen."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from becausal.domain.condition import secret_mask
from becausal.domain.errors import WrongUse
from becausal.lab.stage import Stage

PLUGIN = "becausal_payload.report_plugin"

_SCRUBBED = ("GIT_", "PYTEST_", "COV_", "COVERAGE_", "BECAUSAL_")
_KEPT = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "GIT_SSH_COMMAND")
_NOISE = ("OLDPWD", "_", "SHLVL")
_PATHS = ("PYTHONPATH", "PATH", "NODE_PATH", "MYPYPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


class Injection(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial is given so that it can report: folders, as the trial names them."""

    payload_home: str
    pyc: str
    report: str
    roots: tuple[str, ...]
    """Folders whose imported files are reported."""
    ahead: tuple[str, ...] = ()
    """Folders of the workspace to be found before the person's tree is: see `editable_folders`."""


def person_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment as found, without what belongs to tools around us rather than to the program.

    `GIT_*` of a hook would lead git in a trial to the person's repository; what pytest and coverage
    leave to their children would change the tests inside.
    """
    found = os.environ if environment is None else environment
    return {
        name: value
        for name, value in found.items()
        if name in _KEPT or not (name.startswith(_SCRUBBED) or name in _NOISE)
    }


def trial_environment(
    person: Mapping[str, str],
    *,
    stage: Stage,
    cwd: str,
    declared: Sequence[tuple[str, str | None]] = (),
    injection: Injection | None = None,
    hash_seed: int | None = None,
    seed: int | None = None,
) -> dict[str, str]:
    """What one trial gets: the person's variables, paths on the stage, the declared changes."""
    env = dict(person)
    for name in _PATHS:
        if name in env:
            env[name] = os.pathsep.join(stage.inside(p) for p in env[name].split(os.pathsep))
    env["PWD"] = cwd
    if hash_seed is not None:
        env["PYTHONHASHSEED"] = str(hash_seed)
    for name, value in declared:
        if value == secret_mask(name):
            _require(env, name)
        elif value is None:
            env.pop(name, None)
        else:
            env[name] = value
    if seed is not None:
        env["BECAUSAL_SEED"] = str(seed)
    if injection is not None:
        _inject(env, injection)
    return env


def _require(env: Mapping[str, str], name: str) -> None:
    """Trials without a secret that others had would be trials of another condition."""
    if name not in env:
        raise WrongUse(
            "secret-missing",
            f"{name} was set to a secret, which is kept nowhere",
            value=name,
            hint=f"give it again: --env {name}=…",
        )


def _inject(env: dict[str, str], injection: Injection) -> None:
    entries = [injection.payload_home, *injection.ahead]
    if env.get("PYTHONPATH"):
        entries.append(env["PYTHONPATH"])
    env["PYTHONPATH"] = os.pathsep.join(entries)
    plugins = [PLUGIN, *filter(None, [env.get("PYTEST_PLUGINS", "")])]
    env["PYTEST_PLUGINS"] = ",".join(plugins)
    env["PYTHONPYCACHEPREFIX"] = injection.pyc
    env["BECAUSAL_REPORT"] = injection.report
    env["BECAUSAL_ROOTS"] = os.pathsep.join(injection.roots)

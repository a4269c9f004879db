"""The lab's settings: `[lab]` of `becausal.toml`, else `[tool.becausal.lab]` of
`pyproject.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from becausal.domain.errors import WrongUse


class LabSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How ignored files reach a workspace. Globs match a path below the top, or a name in it."""

    copy: tuple[str, ...] = ()
    """Copied, however large."""
    link: tuple[str, ...] = ()
    """Used in place."""
    leave: tuple[str, ...] = ()
    """Not carried at all."""
    budget: int = 200_000_000
    """Bytes copied at most; folders that do not fit are used in place."""


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lab: LabSettings = LabSettings()


def read_settings(top: str) -> LabSettings:
    """Read the settings of the program under study."""
    own = Path(top, "becausal.toml")
    project = Path(top, "pyproject.toml")
    if own.is_file():
        table, where = _load(own), own
    elif project.is_file():
        table, where = _load(project).get("tool", {}).get("becausal", {}), project
    else:
        return LabSettings()
    try:
        return msgspec.convert(table, _Tables).lab
    except msgspec.ValidationError as error:
        unknown = "unknown field" in str(error)
        raise WrongUse(
            "setting-unknown" if unknown else "setting-wrong",
            f"A setting of the lab is not understood: {error}.",
            value=str(where),
            hint=f"[lab] knows {', '.join(LabSettings.__struct_fields__)}.",
        ) from error


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongUse(
            "setting-wrong",
            f"{path.name} is no valid TOML: {error}.",
            value=str(path),
            hint="Correct the file, then run the command again.",
        ) from error

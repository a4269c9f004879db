"""Git folders of our own, written as files: no process, and nothing inherited from templates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from becausal.lab.home import write_atomically

RAW = b"* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes that make git store and restore bytes as they are."""

_COPIED = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.excludesfile",
    "core.attributesfile",
    "user.name",
    "user.email",
    "init.defaultbranch",
)
"""Settings of the person's repository that decide what files look like or who commits."""


def make_git_dir(
    folder: Path,
    *,
    objects: Path | None = None,
    configuration: Mapping[str, str] | None = None,
    attributes: bytes = b"",
    exclude: bytes = b"",
) -> None:
    """Make or refresh a git folder that reads the object folder `objects`."""
    for part in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    if objects is not None:
        write_atomically(folder / "objects/info/alternates", os.fsencode(objects) + b"\n")
    write_atomically(folder / "config", config_file(configuration or {}))
    write_atomically(folder / "info/attributes", attributes)
    write_atomically(folder / "info/exclude", exclude)
    write_atomically(folder / "HEAD", b"ref: refs/heads/main\n")


def config_file(configuration: Mapping[str, str]) -> bytes:
    """A configuration with what matters of the person's: filters are named but do nothing."""
    sha256 = configuration.get("extensions.objectformat") == "sha256"
    values: list[tuple[str, str | None, str, str]] = [
        ("core", None, "repositoryformatversion", "1" if sha256 else "0"),
        ("core", None, "bare", "false"),
        ("core", None, "logallrefupdates", "true"),
        ("gc", None, "auto", "0"),
    ]
    if sha256:
        values.append(("extensions", None, "objectformat", "sha256"))
    for name in _COPIED:
        if name in configuration:
            section, key = name.split(".")
            values.append((section, None, key, configuration[name]))
    drivers = {
        name.removeprefix("filter.").rpartition(".")[0]
        for name in configuration
        if name.startswith("filter.")
    }
    for driver in sorted(drivers):
        for key, value in (("smudge", ""), ("clean", ""), ("process", ""), ("required", "false")):
            values.append(("filter", driver, key, value))
    lines = []
    for section, sub, key, value in values:
        lines.append(f"[{section}]" if sub is None else f"[{section} {_quoted(sub)}]")
        lines.append(f"\t{key} = {_quoted(value)}")
    return os.fsencode("\n".join(lines) + "\n")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

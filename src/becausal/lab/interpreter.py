"""The Python that a command uses: where it is, and what is installed in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from becausal.domain.errors import CouldNotRun
from becausal.lab.process import run_tool

_PYTHON = re.compile(r"python(\d(\.\d+)?)?")
_SECONDS = 20.0
_QUESTION = """
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
packages = [paths["purelib"], paths["platlib"]] + getattr(site, "getsitepackages", list)()
if site.ENABLE_USER_SITE:
    packages.append(site.getusersitepackages())
print(json.dumps({
    "executable": sys.executable,
    "version": sys.version.split()[0],
    "prefixes": sorted({sys.prefix, sys.base_prefix, sys.exec_prefix}),
    "library": [paths["stdlib"], paths["platstdlib"]],
    "packages": packages + [path for path in sys.path if path.endswith("dist-packages")],
}))
"""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A Python as it describes itself."""

    executable: str
    version: str
    prefixes: tuple[str, ...]
    library: tuple[str, ...]
    packages: tuple[str, ...]
    """Folders of installed packages; some may not exist."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Whatever it needs to be reached by a trial."""
        return tuple(dict.fromkeys((*self.prefixes, *self.library, *self.packages)))


def find_interpreter(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Interpreter | None:
    """The Python that a command starts, else the one its environment would; None: there is none.

    It is asked itself, once: versions, prefixes and paths cannot be guessed from a shim.
    """
    asking = {
        **env,
        "PYTHONPATH": "",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYENV_DIR": cwd,
    }
    for name in _candidates(argv, env, cwd):
        try:
            # Asked in `/`, where no module of the program can be imported in place of a library's.
            ran = run_tool([name, "-c", _QUESTION], cwd="/", env=asking, timeout=_SECONDS)
        except CouldNotRun:
            continue  # not startable: the next one is asked
        if ran.exit_code == 0:
            last = ran.stdout.strip().rsplit(b"\n", 1)[-1]
            return msgspec.json.decode(last, type=Interpreter)
    return None


def _candidates(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> list[str]:
    path = os.pathsep.join(
        os.path.join(cwd, entry) for entry in env.get("PATH", os.defpath).split(os.pathsep)
    )
    found: list[str] = []
    if argv:
        name = argv[0]
        program = shutil.which(os.path.join(cwd, name) if "/" in name else name, path=path)
        if program is not None and _PYTHON.fullmatch(os.path.basename(name)):
            found.append(os.path.abspath(program))
        elif program is not None:
            found += _named_in_script(program, path)
    virtual = env.get("VIRTUAL_ENV")
    if virtual:
        found.append(os.path.join(virtual, "bin", "python"))
    for name in ("python", "python3"):
        program = shutil.which(name, path=path)
        if program is not None:
            found.append(program)
    return list(dict.fromkeys(found))


def _named_in_script(program: str, path: str) -> list[str]:
    """The Python of a script's first line, also behind the /bin/sh trick for long paths."""
    try:
        with open(program, "rb") as file:
            start = file.read(1024)
    except OSError:
        return []
    lines = start.split(b"\n")
    if not lines[0].startswith(b"#!"):
        return []
    for line in lines[:2]:
        for word in re.findall(rb"[^\s'\"]+", line.removeprefix(b"#!")):
            name = os.fsdecode(word)
            if _PYTHON.fullmatch(os.path.basename(name)):
                found = shutil.which(name, path=path)
                return [found] if found else []
    return []


def installed(packages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Names and versions of what is installed, read from the folders' own records."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(packages):
        if not os.path.isdir(folder):
            continue
        for entry in os.listdir(folder):
            match = re.fullmatch(r"(.+?)-([^-]+)\.(?:dist-info|egg-info)", entry)
            if match:
                found.setdefault(match[1].replace("_", "-").lower(), match[2])
    return tuple(sorted(found.items()))


def editable_folders(packages: Sequence[str], top: str) -> tuple[str, ...]:
    """Folders of the source that editable installs put on `sys.path`, below its top.

    Written in `.pth` files as paths, or in the finder modules of setuptools as a mapping.
    """
    start = top.rstrip("/")
    quoted = re.compile(r"['\"](" + re.escape(start) + r"(?:/[^'\"]*)?)['\"]")
    found: dict[str, None] = {}
    for folder in dict.fromkeys(packages):
        if not os.path.isdir(folder):
            continue
        for entry in sorted(os.listdir(folder)):
            path = Path(folder, entry)
            if entry.endswith(".pth"):
                for line in path.read_text("utf-8", "replace").splitlines():
                    line = line.rstrip().rstrip("/")
                    if line == start or line.startswith(start + "/"):
                        found[line[len(start) :].lstrip("/")] = None
            elif entry.startswith("__editable__") and entry.endswith("_finder.py"):
                for place in quoted.findall(path.read_text("utf-8", "replace")):
                    found[os.path.dirname(place)[len(start) :].lstrip("/")] = None
    return tuple(found)

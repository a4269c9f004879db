"""Which commands are pytest runs that a warm server can stand in for, and by which interpreter."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

_PYTHON = re.compile(r"python(\d(\.\d+)?)?$")
_PYTEST = re.compile(r"py\.?test(-\d(\.\d+)?)?$")
_RUNNERS = {"coverage", "uv", "uvx", "poetry", "pipenv", "pdm", "hatch", "rye", "tox", "nox"}
# Flags of the interpreter by what follows them: nothing, or a value of their own.
_ALONE, _VALUED = "bBdEhiIOPqsSuvx", "WX"


class PytestCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A pytest run as the interpreter that would do it sees it."""

    interpreter: str
    flags: tuple[str, ...] = ()
    """Of the interpreter, before `-m` or the script."""
    program: str
    """What `sys.argv[0]` would be."""
    module: bool
    """Started by `-m`: the working directory is then on `sys.path`, else the script's folder."""
    arguments: tuple[str, ...] = ()

    @property
    def reads_environment(self) -> bool:
        """False with -E, -I: PYTHONPATH and the like are ignored."""
        return not any(flag[1:2] != "-" and set(flag) & set("EI") for flag in self._plain())

    def _plain(self) -> list[str]:
        values = {place + 1 for place, flag in enumerate(self.flags) if flag in ("-W", "-X")}
        return [
            flag
            for place, flag in enumerate(self.flags)
            if place not in values and flag[1:2] not in _VALUED
        ]


class OtherCommand(msgspec.Struct, frozen=True, kw_only=True):
    """Not a pytest run that can be served; the reason is for people."""

    reason: str


def recognise(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | os.PathLike[str]
) -> PytestCommand | OtherCommand:
    """Read a command without running it."""
    if not argv:
        return OtherCommand(reason="the command is empty")
    name = os.path.basename(argv[0])
    if name in _RUNNERS:
        return OtherCommand(reason=f"`{name}` starts the tests itself; give `pytest …` directly")
    if _PYTHON.match(name):
        return _by_module(argv, env, Path(cwd))
    if _PYTEST.match(name):
        return _by_script(argv, env, Path(cwd))
    return OtherCommand(reason=f"`{name}` is not pytest")


def _by_module(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path
) -> PytestCommand | OtherCommand:
    found = _program(argv[0], env, cwd)
    if isinstance(found, OtherCommand):
        return found
    split = _split_flags(argv[1:])
    if split is None:
        return OtherCommand(reason="python is started with something else than `-m pytest`")
    flags, module, arguments = split
    if module not in ("pytest", "py.test"):
        return OtherCommand(reason=f"`python -m {module}` is not pytest")
    if any("i" in flag for flag in flags if flag[1:2] not in _VALUED and flag.startswith("-")):
        return OtherCommand(reason="python is started interactively (-i)")
    program = os.path.join("pytest", "__main__.py")
    return PytestCommand(
        interpreter=found, flags=flags, program=program, module=True, arguments=arguments
    )


def _by_script(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path
) -> PytestCommand | OtherCommand:
    found = _program(argv[0], env, cwd)
    if isinstance(found, OtherCommand):
        return found
    with open(found, "rb") as file:
        text = file.read(4096).decode("utf-8", "replace")
    if not re.search(r"^\s*(from|import) +_?pytest\b", text, re.MULTILINE):
        return OtherCommand(reason=f"{found} is not the console script of pytest")
    words = _shebang(text)
    if words is None:
        return OtherCommand(reason=f"{found} does not say which Python it starts")
    interpreter = shutil.which(words[0], path=_path(env, cwd))
    if interpreter is None or not _PYTHON.match(os.path.basename(interpreter)):
        return OtherCommand(reason=f"{found} is started by {words[0]}, which is no Python here")
    return PytestCommand(
        interpreter=interpreter,
        flags=tuple(words[1:]),
        program=found,
        module=False,
        arguments=tuple(argv[1:]),
    )


def _split_flags(words: Sequence[str]) -> tuple[tuple[str, ...], str, tuple[str, ...]] | None:
    """Flags before `-m`, the module, the rest; None when there is no `-m`."""
    flags: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--check-hash-based-pycs":
            flags += words[place : place + 2]
            place += 2
            continue
        if len(word) < 2 or not word.startswith("-") or word.startswith("--"):
            return None
        for at, letter in enumerate(word[1:], 1):
            if letter in _ALONE:
                continue
            value = word[at + 1 :]
            skip = 1 if value else 2
            if letter == "m":
                if at > 1:
                    flags.append(word[:at])
                rest = list(words[place + skip - 1 :])
                module = value or (rest[0] if rest else "")
                return tuple(flags), module, tuple(words[place + skip :])
            if letter not in _VALUED:
                return None
            flags += words[place : place + skip]
            place += skip
            break
        else:
            flags.append(word)
            place += 1
    return None


def _shebang(text: str) -> list[str] | None:
    """Interpreter and its flags, also behind the `/bin/sh` trick that long paths need."""
    first, _, rest = text.partition("\n")
    if not first.startswith("#!"):
        return None
    words = first[2:].split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    elif words and os.path.basename(words[0]) == "sh":
        trick = re.match(r"'''exec' (.+?) \"\$0\" \"\$@\"", rest)
        words = shlex.split(trick.group(1)) if trick else []
    return words or None


def _program(name: str, env: Mapping[str, str], cwd: Path) -> str | OtherCommand:
    """Absolute path of what the shell would start; of a pyenv shim what it leads to."""
    found = shutil.which(os.path.join(cwd, name) if "/" in name else name, path=_path(env, cwd))
    if found is None:
        return OtherCommand(reason=f"`{name}` is not found on PATH")
    path = Path(os.path.abspath(found))
    if path.parent.name == "shims":
        real = _behind_shim(path, env, cwd)
        if real is None:
            return OtherCommand(reason=f"{path} is a shim, and what it starts is not known")
        return real
    return str(path)


def _behind_shim(shim: Path, env: Mapping[str, str], cwd: Path) -> str | None:
    """Read pyenv's choice where pyenv reads it: variable, `.python-version` upwards, global."""
    root = shim.parent.parent
    chosen = env.get("PYENV_VERSION", "")
    places = [folder / ".python-version" for folder in (cwd, *cwd.parents)]
    for file in (*places, root / "version"):
        if chosen:
            break
        if file.is_file():
            chosen = file.read_text(encoding="utf-8").strip()
    for version in re.split(r"[:\s]+", chosen):
        real = root / "versions" / version / "bin" / shim.name
        if version and os.access(real, os.X_OK):
            return str(real)
    return None


def _path(env: Mapping[str, str], cwd: Path) -> str:
    """PATH with its relative entries made absolute, as seen from where the command runs."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(os.path.join(cwd, entry) for entry in entries)

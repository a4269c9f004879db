from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from becausal.lab.recognise import OtherCommand, PytestCommand, recognise

SCRIPT = "import sys\nfrom pytest import console_main\nsys.exit(console_main())\n"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    make(folder / "python3.11", "#!/bin/sh\n")
    (folder / "python").symlink_to("python3.11")
    make(folder / "pytest", f"#!{folder}/python\n{SCRIPT}")
    return folder


def make(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def read(folder: Path, *argv: str, cwd: Path | None = None, **env: str) -> PytestCommand:
    found = recognise(argv, {"PATH": str(folder), **env}, cwd or folder)
    assert isinstance(found, PytestCommand), found
    return found


def reason(folder: Path, *argv: str, cwd: Path | None = None, **env: str) -> str:
    found = recognise(argv, {"PATH": str(folder), **env}, cwd or folder)
    assert isinstance(found, OtherCommand), found
    return found.reason


def test_console_script_is_run_by_the_python_of_its_first_line(bin_folder: Path) -> None:
    found = read(bin_folder, "pytest", "-x", "tests")
    assert found == PytestCommand(
        interpreter=str(bin_folder / "python"),
        program=str(bin_folder / "pytest"),
        module=False,
        arguments=("-x", "tests"),
    )


@pytest.mark.parametrize("name", ["pytest", "py.test", "pytest-3", "pytest-3.11"])
def test_other_names_and_paths_of_the_script(bin_folder: Path, name: str) -> None:
    script = make(bin_folder / name, f"#!{bin_folder}/python\n{SCRIPT}")
    assert read(bin_folder, name).program == str(script)
    assert read(Path("/nowhere"), f"./{name}", cwd=bin_folder).program == str(script)


def test_long_first_line_is_read_through_the_shell_trick(bin_folder: Path) -> None:
    trick = f"#!/bin/sh\n'''exec' \"{bin_folder}/python\" -I \"$0\" \"$@\"\n' '''\n{SCRIPT}"
    make(bin_folder / "pytest", trick)
    found = read(bin_folder, "pytest")
    assert (found.interpreter, found.flags) == (str(bin_folder / "python"), ("-I",))


def test_env_in_the_first_line_looks_on_path(bin_folder: Path) -> None:
    make(bin_folder / "pytest", f"#!/usr/bin/env python3.11\n{SCRIPT}")
    assert read(bin_folder, "pytest").interpreter == str(bin_folder / "python3.11")


@pytest.mark.parametrize(
    ("words", "flags", "arguments"),
    [
        ("-m pytest", "", ""),
        ("-m pytest -x a::b", "", "-x a::b"),
        ("-mpytest a", "", "a"),
        ("-B -O -m pytest a", "-B -O", "a"),
        ("-X dev -W error -m pytest -m slow", "-X dev -W error", "-m slow"),
        ("-Xdev -Werror -bb -m pytest", "-Xdev -Werror -bb", ""),
        ("-BOm pytest a", "-BO", "a"),
        ("-BWerror -m pytest", "-BWerror", ""),
        ("--check-hash-based-pycs never -m pytest", "--check-hash-based-pycs never", ""),
    ],
)
def test_module_run_keeps_the_flags_of_the_interpreter(
    bin_folder: Path, words: str, flags: str, arguments: str
) -> None:
    found = read(bin_folder, "python", *words.split())
    assert found.module
    assert found.interpreter == str(bin_folder / "python")
    assert found.flags == tuple(flags.split())
    assert found.arguments == tuple(arguments.split())


@pytest.mark.parametrize(
    ("flags", "reads"),
    [("-B", True), ("-X dev -W E", True), ("-I", False), ("-BE", False), ("-WI", True)],
)
def test_flags_that_close_the_environment_are_told(
    bin_folder: Path, flags: str, reads: bool
) -> None:
    assert read(bin_folder, "python", *flags.split(), "-m", "pytest").reads_environment is reads


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("coverage run -m pytest", "`coverage` starts the tests itself"),
        ("uv run pytest", "`uv` starts the tests itself"),
        ("poetry run pytest", "`poetry` starts"),
        ("npm test", "not pytest"),
        ("python -m unittest", "`python -m unittest` is not pytest"),
        ("python script.py", "something else"),
        ("python -c pass", "something else"),
        ("python -", "something else"),
        ("python", "something else"),
        ("python -i -m pytest", "interactively"),
        ("python3.9 -m pytest", "not found"),
        ("env A=1 pytest", "`env` is not pytest"),
    ],
)
def test_other_commands_say_why(bin_folder: Path, words: str, why: str) -> None:
    assert why in reason(bin_folder, *words.split())


def test_empty_command_is_no_pytest(bin_folder: Path) -> None:
    assert reason(bin_folder) == "the command is empty"


def test_script_of_the_same_name_is_not_taken_for_pytest(bin_folder: Path) -> None:
    make(bin_folder / "pytest", "#!/bin/sh\nexec something --else\n")
    assert "not the console script" in reason(bin_folder, "pytest")


@pytest.mark.parametrize("name", ["pytest", "python"])
def test_pyenv_shim_leads_where_pyenv_would(tmp_path: Path, name: str) -> None:
    root = tmp_path / "pyenv"
    make(root / "shims" / name, "#!/usr/bin/env bash\nexec pyenv exec\n")
    for version in ("3.11.1", "3.12.1", "3.13.1"):
        python = make(root / "versions" / version / "bin" / "python", "#!/bin/sh\n")
        make(root / "versions" / version / "bin" / "pytest", f"#!{python}\n{SCRIPT}")
    (root / "version").write_text("3.11.1\n")
    inner = tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    words = [name] if name == "pytest" else [name, "-m", "pytest"]

    def version_of(**env: str) -> str:
        found = read(root / "shims", *words, cwd=inner, **env)
        return Path(found.interpreter).parent.parent.name

    assert version_of() == "3.11.1"
    (tmp_path / "project" / ".python-version").write_text("3.12.1\n")
    assert version_of() == "3.12.1"
    assert version_of(PYENV_VERSION="3.13.1") == "3.13.1"
    assert "shim" in reason(root / "shims", *words, cwd=inner, PYENV_VERSION="2.7")


def test_this_python_is_recognised() -> None:
    found = read(Path(sys.executable).parent, sys.executable, "-m", "pytest")
    assert found.interpreter == sys.executable

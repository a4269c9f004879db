"""What a trial gets: variables, bytecode folders, the payload, and what is said of it all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from becausal.lab.environment import Injection, person_environment, trial_environment
from becausal.lab.interpreter import editable_folders, find_interpreter, installed
from becausal.lab.payload_home import payload_home
from becausal.lab.pyc import pyc_folder
from becausal.lab.stage import Grounds, Stage
from becausal.lab.surroundings import collect_surroundings

PLAIN = Stage(
    top="/ws", throwaway=("/ws",), grounds=Grounds(top="/person", workspace="/ws", links=(".venv",))
)


def test_variables_of_tools_around_us_are_left_out() -> None:
    found = {
        "GIT_DIR": "x",
        "PYTEST_CURRENT_TEST": "x",
        "COV_CORE_SOURCE": "x",
        "BECAUSAL_STORE": "x",
        "PYTEST_ADDOPTS": "-x",
        "HOME": "/h",
        "GITHUB_TOKEN": "kept",
    }
    assert person_environment(found) == {
        "PYTEST_ADDOPTS": "-x",
        "HOME": "/h",
        "GITHUB_TOKEN": "kept",
    }


def test_paths_into_the_persons_tree_lead_to_the_workspace_but_not_what_is_linked() -> None:
    person = {"PYTHONPATH": "/person/src:/else", "PATH": "/person/.venv/bin:/person/bin:/bin"}
    env = trial_environment(person, stage=PLAIN, cwd="/ws/sub")
    assert env["PYTHONPATH"] == "/ws/src:/else"
    assert env["PATH"] == "/person/.venv/bin:/ws/bin:/bin"
    assert env["PWD"] == "/ws/sub"


def test_a_folder_with_the_same_beginning_is_another() -> None:
    assert PLAIN.inside("/person-too/x") == "/person-too/x"
    assert PLAIN.relative("/ws-too/x") is None
    assert PLAIN.original("/person/.venv/lib/x.py") is None
    assert PLAIN.original("/person/x.py") == "x.py"


def test_injection_is_merged_with_what_the_person_has() -> None:
    injection = Injection(
        payload_home="/home", pyc="/pyc", report="/r", roots=("/ws", "/person"), ahead=("/ws/src",)
    )
    person = {"PYTHONPATH": "/mine", "PYTEST_PLUGINS": "own"}
    env = trial_environment(
        person, stage=PLAIN, cwd="/ws", injection=injection, hash_seed=3, seed=4
    )
    assert env["PYTHONPATH"] == "/home:/ws/src:/mine"
    assert env["PYTEST_PLUGINS"] == "becausal_payload.report_plugin,own"
    assert (env["PYTHONHASHSEED"], env["BECAUSAL_SEED"]) == ("3", "4")
    assert env["BECAUSAL_ROOTS"] == "/ws:/person"
    assert person == {"PYTHONPATH": "/mine", "PYTEST_PLUGINS": "own"}


def test_payload_home_holds_the_payload_alone_and_is_made_once(tmp_path: Path) -> None:
    home = payload_home(tmp_path)
    made = home.stat().st_ino
    assert payload_home(tmp_path) == home
    assert home.stat().st_ino == made
    assert sorted(path.name for path in home.iterdir()) == ["becausal_payload", "sitecustomize.py"]
    assert not list(home.rglob("*.pyc"))
    assert [path.name for path in home.parent.iterdir()] == [home.name]
    code = "import becausal_payload.keeper, sys; print('becausal' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(home)}, capture_output=True
    )
    assert ran.stdout == b"False\n"


def test_bytecode_folders_share_only_what_lies_outside_the_source(tmp_path: Path) -> None:
    shared = ["/usr/lib/python3", "/usr/lib/python3/site-packages", "/opt/more", "relative"]
    one = pyc_folder(tmp_path, "one", shared, "env")
    two = pyc_folder(tmp_path, "two", shared, "env")
    other = pyc_folder(tmp_path, "two", ["/opt/other"], "another")
    (one / "usr/lib/python3/site-packages").mkdir()
    assert (two / "usr/lib/python3/site-packages").is_dir()
    (one / "src").mkdir()
    assert not (two / "src").exists()
    assert other == two
    assert pyc_folder(tmp_path, "one", shared, "env") == one


def test_interpreter_of_a_command_is_the_one_it_starts(
    tmp_path: Path, venv: Callable[[Path], Path]
) -> None:
    packages = venv(tmp_path / "v")
    (packages / "Some_Package-1.2.dist-info").mkdir()
    python = str(tmp_path / "v/bin/python")
    script = tmp_path / "v/bin/tool"
    script.write_text(f"#!{python}\n")
    script.chmod(0o755)
    env = {"PATH": os.environ["PATH"]}
    for argv in ((python, "-m", "x"), (str(script),), ("v/bin/tool",)):
        found = find_interpreter(argv, env, str(tmp_path))
        assert found is not None
        assert found.executable == python
        assert found.version == sys.version.split()[0]
    assert installed(found.packages) == (("some-package", "1.2"),)
    other = find_interpreter(("make",), {**env, "VIRTUAL_ENV": str(tmp_path / "v")}, "/")
    assert other is not None
    assert other.executable == python


def test_asking_the_interpreter_writes_nothing_beside_it(
    tmp_path: Path, venv: Callable[[Path], Path]
) -> None:
    packages = venv(tmp_path / "v")
    (packages / "hook.py").write_text("")
    (packages / "hook.pth").write_text("import hook\n")
    before = sorted(tmp_path.rglob("*"))
    assert find_interpreter((str(tmp_path / "v/bin/python"),), dict(os.environ), "/")
    assert sorted(tmp_path.rglob("*")) == before


def test_folders_of_editable_installs_are_read_without_importing(tmp_path: Path) -> None:
    (tmp_path / "one.pth").write_text("/top/src\n/topless\nimport something\n/top/\n")
    (tmp_path / "__editable___p_finder.py").write_text("MAPPING = {'p': '/top/lib/p', 'q': '/x/q'}")
    assert editable_folders([str(tmp_path)], "/top") == ("lib", "src", "")


def test_surroundings_mask_secrets_and_name_the_rest(tmp_path: Path) -> None:
    env = {
        "PATH": "/bin",
        "PYTHONHASHSEED": "1",
        "DECLARED_KEY": "abcdefg",
        "OTHER": "x",
        "CI": "abcdefg",
    }
    seen = collect_surroundings(env, None, declared={"DECLARED_KEY": "abcdefg"})
    assert seen.variables == (
        ("CI", "[secret:DECLARED_KEY]"),
        ("DECLARED_KEY", "[secret:DECLARED_KEY]"),
        ("PATH", "/bin"),
        ("PYTHONHASHSEED", "1"),
    )
    assert seen.platform.startswith(platform.system())

"""The script written from a case shows the failure by itself, where becausal is not installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PYTHON = Path(sys.base_prefix, "bin", "python3")
"""The interpreter that the environment of these tests was made from: becausal is not in it."""

CART = {
    "src/shop/__init__.py": "",
    "src/shop/cart.py": "def total(prices):\n    return sum(prices)\n",
    "tests/test_cart.py": (
        "import sys\n\nsys.path.insert(0, 'src')\nfrom shop.cart import total\n\n\n"
        "def test_total():\n    assert total([1, 2]) == 3\n"
    ),
}
BROKEN = {"src/shop/cart.py": "from shop.rates import RATE\n\n\ndef total(p):\n    return RATE\n"}
UNTRACKED = {"src/shop/rates.py": "RATE = 97\n"}
TEST = "tests/test_cart.py::test_total"

Written = Callable[..., Path]


@pytest.fixture
def written(desk: Any) -> Written:
    """Reproduce a command, and write the script of its case outside the project."""

    def write(*words: str, code: int = 0) -> Path:
        ended = desk.run("reproduce", "--json", "--runs", "3", "--cold", *words)
        assert ended.code == code, ended
        target: Path = desk.folder / "show.py"
        done = desk.run("case", "script", ended.record["case"], "-o", str(target))
        assert done.code == 0, done
        return target

    return write


def run(script: Path, *words: str, cwd: Path, env: dict[str, str]) -> Any:
    return subprocess.run(
        [str(PYTHON), "-I", str(script), *words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )


def test_becausal_is_not_installed_where_scripts_run_here() -> None:
    done = subprocess.run([str(PYTHON), "-I", "-c", "import becausal"], capture_output=True)
    assert b"ModuleNotFoundError" in done.stderr


def test_uncommitted_and_untracked_work_is_in_the_script(desk: Any, written: Written) -> None:
    desk.commit(CART)
    desk.write(BROKEN | UNTRACKED)
    script = written(*desk.pytest(TEST))
    desk.git("stash", "--include-untracked")
    before = desk.fingerprint()

    done = run(script, "--runs", "2", cwd=desk.top, env=desk.env)

    assert done.returncode == 0, done
    assert "2 of 2 runs showed: AssertionError" in done.stdout
    assert "assert 97 == 3" in done.stdout
    assert desk.fingerprint() == before


def test_the_repository_may_be_named_from_anywhere(desk: Any, written: Written) -> None:
    desk.commit(CART | BROKEN | UNTRACKED)
    script = written(*desk.pytest(TEST))
    clone = desk.folder / "clone"
    desk.git("clone", "--quiet", str(desk.top), str(clone))

    for named in (desk.top, clone, f"file://{clone}"):
        done = run(script, "--runs", "1", str(named), cwd=desk.folder, env=desk.env)
        assert done.returncode == 0, done


def test_a_command_run_in_a_folder_below_runs_there_again(desk: Any) -> None:
    desk.commit({"deep/here.sh": "echo deep; exit 4\n", "other.txt": "x"})
    desk.run("reproduce", "--runs", "3", "--", "sh", "here.sh", cwd=desk.top / "deep")
    script = desk.folder / "show.py"
    desk.run("case", "script", "B-1", "-o", str(script))

    assert run(script, cwd=desk.top / "deep", env=desk.env).returncode == 0


def test_a_healed_program_does_not_show_the_failure(desk: Any, written: Written) -> None:
    desk.write({"run.sh": "exit 3\n"})
    script = written("--", "sh", "run.sh")
    assert run(script, "--runs", "1", cwd=desk.top, env=desk.env).returncode == 0
    desk.write({"run.sh": "exit 4\n"})

    done = run(script, "--runs", "2", cwd=desk.top, env=desk.env)

    assert done.returncode == 1, done
    assert "0 of 2 runs showed: exit 3" in done.stdout


RULES = {
    "fail-exit": (("--fail-exit", "7"), "exit 7", "exit 8"),
    "fail-when": (("--fail-when", "dead ?lock"), "echo deadlock >&2", "echo fine; exit 1"),
    "hang": (("--fail-if", "hang", "--timeout", "0.4"), "sleep 60 & wait", "exit 0"),
    "seconds": (("--fail-if", "seconds > 0.3"), "sleep 0.4", "sleep 0"),
    "seconds, stopped": (("--fail-if", "seconds > 0.3", "--timeout", "0.5"), "sleep 60", "true"),
    "match": (("--fail-if", r'match(r"p95=(\d+)") > 80'), "echo p95=70 p95=81", "echo p95=80"),
    "max_rss": (
        ("--fail-if", "max_rss > 150M"),
        f"{PYTHON} -c 'x = bytearray(200 << 20)'",
        f"{PYTHON} -c 'x = bytearray(20 << 20)'",
    ),
}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_script_knows_what_counts_as_the_failure(
    desk: Any, written: Written, rule: str
) -> None:
    options, bad, good = RULES[rule]
    desk.write({"run.sh": f"{bad}\n"})
    script = written(*options, "--", "sh", "run.sh")
    assert run(script, "--runs", "1", cwd=desk.top, env=desk.env).returncode == 0

    desk.write({"run.sh": f"{good}\n"})
    assert run(script, "--runs", "1", cwd=desk.top, env=desk.env).returncode == 1


def test_input_and_environment_are_given_again(desk: Any, written: Written) -> None:
    desk.commit(
        {
            "read.py": (
                "import os, sys\n"
                "seen = sys.stdin.buffer.read(), os.environ['COLOUR'], os.environ.get('GONE')\n"
                "sys.exit(3 * (seen == (b'a $-\\xff\\n', 're\\'d', None)))\n"
            )
        }
    )
    fed = desk.folder / "fed"
    fed.write_bytes(b"a $-\xff\n")
    desk.env["GONE"] = "still here"
    script = written(
        *("--input", str(fed), "--env", "COLOUR=re'd", "--env=-GONE"), *desk.python("read.py")
    )
    fed.unlink()

    assert run(script, "--runs", "1", cwd=desk.top, env=desk.env).returncode == 0


def test_a_failing_hash_seed_is_tried_first(desk: Any, written: Written) -> None:
    desk.commit({"odd.py": "import sys\nsys.exit(5 * (hash('berth') % 4 == 0))\n"})
    ended = desk.run("reproduce", "--json", "--runs", "40", *desk.python("odd.py"))
    assert 0 < ended.record["failures"] < 40, ended
    script = desk.folder / "show.py"
    desk.run("case", "script", "B-1", "-o", str(script))

    done = run(script, "--runs", "2", cwd=desk.top, env=desk.env)

    assert "2 of 2 runs showed: exit 5" in done.stdout, done


def test_ignored_files_are_copied_and_never_changed_in_place(desk: Any, written: Written) -> None:
    desk.commit(
        {".gitignore": ".env\nbuild/\n", "run.sh": "cat .env build/x; echo 2 > .env; exit 3"}
    )
    desk.write({".env": "one\n", "build/x": "built\n"})
    script = written("--", "sh", "run.sh")

    done = run(script, "--runs", "1", cwd=desk.top, env=desk.env)

    assert done.returncode == 0, done
    assert "one\nbuilt" in done.stdout
    assert (desk.top / ".env").read_text() == "one\n"
    (desk.top / ".env").unlink()
    assert "not here" in run(script, "--runs", "1", cwd=desk.top, env=desk.env).stdout


def test_a_repository_without_a_commit_is_in_the_script_as_a_whole(
    desk: Any, written: Written
) -> None:
    desk.git("init", "--quiet")
    desk.write({"run.sh": "exit 3\n"})
    script = written("--", "sh", "run.sh")
    desk.write({"run.sh": "exit 0\n"})

    assert run(script, "--runs", "1", cwd=desk.top, env=desk.env).returncode == 0


def test_another_repository_is_refused_in_words(desk: Any, written: Written) -> None:
    desk.commit({"run.sh": "exit 3\n"})
    script = written("--", "sh", "run.sh")
    other = desk.folder / "other"
    other.mkdir()
    desk.git("init", "--quiet", cwd=other)

    for folder, words in ((other, "does not have revision"), (desk.home, "or name it")):
        done = run(script, cwd=folder, env=desk.env)
        assert done.returncode == 3, done
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_a_missing_program_could_not_be_tried(desk: Any, written: Written) -> None:
    tool = desk.folder / "tool"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    desk.commit({"x": "y"})
    script = written("--", str(tool))
    tool.unlink()

    done = run(script, cwd=desk.top, env=desk.env)

    assert done.returncode == 3
    assert "cannot be started" in done.stderr


def test_a_secret_is_in_no_file_and_asked_for_by_the_script(desk: Any, written: Written) -> None:
    secret = "hunter2-swordfish"
    desk.commit({"run.sh": f'echo "$API_TOKEN"; test "$API_TOKEN" != {secret[:7]}-swordfish\n'})
    script = written("--env", f"API_TOKEN={secret}", "--", "sh", "run.sh")
    exported = desk.run("case", "export", "B-1").out
    report = desk.run("case", "report", "B-1").out

    kept = [path for path in desk.store.rglob("*") if path.is_file()]
    assert len(kept) > 1
    for data in (exported, report, script.read_bytes(), *(path.read_bytes() for path in kept)):
        assert secret.encode() not in data
    assert b"[secret:API_TOKEN]" in exported
    refused = run(script, cwd=desk.top, env=desk.env)
    assert refused.returncode == 3
    assert "Set API_TOKEN" in refused.stderr
    given = {**desk.env, "API_TOKEN": secret}
    assert run(script, "--runs", "1", cwd=desk.top, env=given).returncode == 0

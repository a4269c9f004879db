"""Commands that are odd, broken or hostile: each has its right outcome, and nothing is left."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import sys
from typing import Any

import pytest

THREE = ("--runs", "3")
P95 = r'match(r"p95=(\d+)") > 80'
CHILD = """
import os, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 9)
        time.sleep(600)
    os._exit(0)
os.wait()
"""
HOSTILE = {
    # What is run, and why its three runs failed.
    "exits": ("exit 3", "exit 3"),
    "waits for input": ("read line && exit 5; exit 3", "exit 3"),
    "daemons": ("setsid sleep 600 & nohup sleep 600 & python3 child.py; exit 3", "exit 3"),
    "kills its group": ("kill -9 0; exit 3", "signal KILL"),
    "kills its parent": ("kill -9 $PPID; exit 3", "exit 3"),
    "kills everyone it can": ("kill -9 -1; exit 3", "exit 3"),
    "removes its folder": ('rm -rf "$PWD" .git * 2>/dev/null; exit 3', "exit 3"),
    "takes all rights": ("chmod -R 000 * .git; chmod 000 .; exit 3", "exit 3"),
    "takes all rights at home": ('chmod -R 000 * .git "$HOME"; exit 3', "exit 3"),
    "changes files": ("echo x >> child.py; mkdir new; mv kept.txt new; exit 3", "exit 3"),
    "writes into .git": ("echo x > .git/HEAD; rm -rf .git/refs .git/objects; exit 3", "exit 3"),
    "stashes": ("git stash -u >/dev/null && test ! -e new.txt && exit 3", "exit 3"),
    "commits": (
        "git -c user.name=a -c user.email=b commit -qam evil && git tag evil && exit 3",
        "exit 3",
    ),
    "configures": ("git config evil.mind yes; git config --global evil.mind yes; exit 3", "exit 3"),
}
PLAINLY = (
    "exits",
    "daemons",
    "kills its group",
    "kills its parent",
    "removes its folder",
    "takes all rights",
    "stashes",
)
"""Those that are harmless to whoever runs the tests when no sandbox holds them."""


def unfinished(desk: Any) -> Any:
    """A repository with a commit and uncommitted work."""
    desk.commit({"kept.txt": "one\n", "child.py": CHILD, "sub/inner.txt": "inner\n"})
    return desk.write({"kept.txt": "two\n", "new.txt": "untracked\n"})


@pytest.mark.parametrize("name", HOSTILE)
def test_in_the_sandbox_nothing_of_the_persons_is_touched(desk: Any, name: str) -> None:
    unfinished(desk)
    before = desk.fingerprint(), desk.fingerprint(desk.home)
    fails_three_times(desk, name)
    assert (desk.fingerprint(), desk.fingerprint(desk.home)) == before


@pytest.mark.parametrize("name", PLAINLY)
@pytest.mark.parametrize("means", ["without bubblewrap", "without namespaces"])
def test_without_a_sandbox_the_repository_is_not_touched(desk: Any, means: str, name: str) -> None:
    unfinished(desk)
    if means == "without bubblewrap":
        desk.without_bubblewrap()
    else:
        desk.without_namespaces()
    before = desk.fingerprint()
    isolation = fails_three_times(desk, name)
    assert desk.fingerprint() == before
    assert "sandbox" not in isolation
    if means == "without namespaces":
        assert {"process-group", "files-shared"} <= isolation


def fails_three_times(desk: Any, name: str) -> set[str]:
    """Run a hostile command; answers what kept its runs apart."""
    script, reason = HOSTILE[name]
    ended = desk.reproduce(*THREE, *desk.shell(script))
    assert ended.code == 0, ended
    record = ended.record
    assert (record["verdict"], record["mode"]) == ("consistent", "cold"), ended
    assert (record["trials"], record["failures"]) == (3, 3), ended
    assert record["reasons"] == {f"failed: {reason}": 3}
    return {word for trial in desk.trials().values() for word in trial.isolation}


def test_a_command_that_succeeds_is_not_reproduced(desk: Any) -> None:
    ended = unfinished(desk).reproduce(*THREE, *desk.shell("exit 0"))
    assert (ended.code, ended.record["verdict"]) == (1, "not-reproduced")
    assert (ended.record["failures"], ended.record["signature"]) == (0, None)


def test_a_missing_command_could_not_run(desk: Any) -> None:
    ended = unfinished(desk).reproduce("--", "no-such-command-anywhere")
    assert (ended.code, ended.record["verdict"]) == (3, "could-not-run")
    assert (ended.record["trials"], ended.record["failures"]) == (3, 0)
    (reason,) = ended.record["reasons"]
    assert "no-such-command-anywhere" in reason
    assert "command-missing" in reason


def test_npm_test_runs_cold(desk: Any) -> None:
    if shutil.which("npm") is None:
        if os.environ.get("BECAUSAL_REQUIRE_ALL") == "1":
            pytest.fail("npm is not installed")
        pytest.skip("npm is not installed")
    package = '{"name": "tiny", "version": "1.0.0", "scripts": {"test": "node test.js"}}'
    test = "const assert = require('assert');\nassert.strictEqual(require('./sum')(1, 1), 2);\n"
    desk.commit({"package.json": package, "test.js": test, "sum.js": "module.exports = () => 2;\n"})
    desk.write({"sum.js": "module.exports = () => 3;\n"})
    ended = desk.reproduce(*THREE, "--", "npm", "test")
    assert (ended.code, ended.record["verdict"], ended.record["failures"]) == (0, "consistent", 3)
    desk.write({"sum.js": "module.exports = () => 2;\n"})
    assert desk.reproduce(*THREE, "--", "npm", "test").record["verdict"] == "not-reproduced"


def test_a_flood_of_output_costs_little_memory(desk: Any) -> None:
    """300 MB are printed; of becausal and all below it nobody grows with them."""
    flood = "import sys\nfor _ in range(4800): sys.stdout.buffer.write(b'x' * 65536)\nsys.exit(3)\n"
    desk.commit({"flood.py": flood})
    ended = Measured(desk).reproduce("--runs", "1", *desk.python("flood.py"))
    assert (ended.code, ended.record["failures"]) == (0, 1), ended
    assert ended.largest < 120 << 20
    assert sum(f.stat().st_size for f in desk.store.rglob("*") if f.is_file()) < 4 << 20
    (trial,) = desk.trials().values()
    assert len(desk.artifact(trial, "stdout")) < (2 << 20) + 100


class Measured:
    """Runs the program below one that tells how large the largest of all processes was."""

    PROGRAM = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr);"
        "sys.exit(code)"
    )

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    def reproduce(self, *words: str) -> Any:
        desk = self._desk.below(sys.executable, "-c", self.PROGRAM)
        ended = desk.run("reproduce", "--json", *words)
        ended.largest = int(ended.err.split()[-1]) * 1024
        return ended


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_escape_sequences_and_broken_text_never_reach_the_terminal(
    desk: Any, words: tuple[str, ...]
) -> None:
    unfinished(desk).write({"evil.py": EVIL})
    command = desk.python("evil.py")
    said = [desk.run("reproduce", *THREE, *words, *command)]
    assert said[0].code == 0, said
    said += [desk.run("case", *each, *words) for each in (("show", "B-1"), ("list",))]
    said += [desk.run("case", "report", "B-1"), desk.run("case", "script", "B-1")]
    for each in said:
        assert each.code == 0, each
        printed = each.out + each.err
        printed.decode("utf-8")
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", printed), each
    assert desk.nobody_left()


EVIL = r"""
import sys
sys.stdout.buffer.write(b"\x1b]0;owned\x07\x1b[2J\x9b31m\xff\xfe\x00\r\n" * 50)
raise ValueError("\x1b[31mred\x07 \x9b5n \udcff")
"""


@pytest.mark.parametrize(
    ("options", "script", "code", "verdict", "reason"),
    [
        (("--timeout", "0.5"), "sleep 60", 3, "could-not-run", "timed-out: stopped after"),
        (("--timeout", "0.5", "--fail-if", "hang"), "sleep 60", 0, "consistent", "failed: stopped"),
        (("--fail-if", "hang"), "exit 0", 1, "not-reproduced", "passed: ended by itself"),
        (("--fail-if", "hang"), "exit 3", 3, "could-not-run", "failed-otherwise: exit 3"),
        (("--fail-if", "seconds > 0.2"), "sleep 0.4", 0, "consistent", "failed: seconds = 0."),
        (("--fail-if", "seconds > 9"), "sleep 0.1", 1, "not-reproduced", "passed: seconds = 0."),
        (("--fail-if", P95), "echo p95=97", 0, "consistent", "failed: match"),
        (("--fail-if", P95), "echo p95=42", 1, "not-reproduced", "passed: match"),
        (("--fail-if", P95), "echo nothing", 3, "could-not-run", "could-not-run: "),
        (("--fail-when", "b[ao]d"), "echo bad >&2", 0, "consistent", "failed: the output matches"),
        (("--fail-when", "b[ao]d"), "echo good", 1, "not-reproduced", "passed: the output does"),
        (("--fail-exit", "7"), "exit 7", 0, "consistent", "failed: exit 7"),
        (("--fail-exit", "7"), "exit 3", 3, "could-not-run", "failed-otherwise: exit 3"),
    ],
)
def test_the_person_says_what_the_failure_is(
    desk: Any, options: tuple[str, ...], script: str, code: int, verdict: str, reason: str
) -> None:
    ended = unfinished(desk).reproduce(*THREE, *options, *desk.shell(script))
    assert (ended.code, ended.record["verdict"]) == (code, verdict), ended
    assert sum(ended.record["reasons"].values()) == 3
    assert all(each.startswith(reason) for each in ended.record["reasons"]), ended


TOKEN = "tok-4f7d2c9e81b06a35"
PASSWORD = "correct horse battery"
KEY = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.mark.parametrize("way", ["pytest", "shell"])
def test_secrets_are_in_no_file_of_the_store(desk: Any, way: str) -> None:
    test = (
        "import os, sys\n\ndef test_secret():\n"
        "    print(os.environ['API_TOKEN'], file=sys.stderr)\n"
        f"    print('{KEY[:9]}' + '{KEY[9:]}')\n"
        "    raise ValueError(os.environ['DB_PASSWORD'])\n"
    )
    script = f"echo $API_TOKEN; echo $DB_PASSWORD >&2; echo '{KEY[:9]}''{KEY[9:]}'; exit 3"
    unfinished(desk).write({"test_secret.py": test})
    command = desk.pytest("test_secret.py") if way == "pytest" else desk.shell(script)
    runs = ("--runs", "6", "--env", "DECLARED_SECRET=" + PASSWORD[::-1])
    ended = desk.reproduce(*runs, *command, API_TOKEN=TOKEN, DB_PASSWORD=PASSWORD)
    assert (ended.code, ended.record["failures"]) == (0, 6), ended
    exported = desk.run("case", "export", "B-1")
    places = [ended.out, ended.err, exported.out, desk.run("case", "report", "B-1").out]
    document = json.loads(exported.out)
    places += map(base64.b64decode, document["artifacts"].values())
    places += [file.read_bytes() for file in desk.store.rglob("*") if file.is_file()]
    assert any(b"[secret:API_TOKEN]" in place for place in places), "they were never printed"
    for secret in (TOKEN, PASSWORD, KEY, PASSWORD[::-1]):
        assert not [place for place in places if secret.encode() in place], secret


def test_a_folder_that_cannot_be_written_gives_a_clear_error(desk: Any) -> None:
    """Read-only for everyone, root included: the repository is bound so."""
    unfinished(desk)
    before = desk.fingerprint()
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && cd "$0" && exec "$@"'
    desk.below("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, str(desk.top))
    ended = desk.reproduce(*THREE, *desk.shell("exit 3"))
    assert (ended.code, ended.record["error"]["slug"]) == (3, "store-not-writable"), ended
    assert ended.record["error"]["value"].startswith(str(desk.store))
    assert desk.fingerprint() == before
    elsewhere = desk.folder / "elsewhere"
    ended = desk.reproduce(*THREE, *desk.shell("exit 3"), BECAUSAL_STORE=str(elsewhere))
    assert (ended.code, ended.record["failures"]) == (0, 3), ended
    assert desk.fingerprint() == before


def test_a_store_below_a_file_gives_a_clear_error(desk: Any) -> None:
    unfinished(desk)
    store = str(desk.top / "kept.txt" / "store")
    ended = desk.reproduce(*THREE, *desk.shell("exit 3"), BECAUSAL_STORE=store)
    assert (ended.code, ended.record["error"]["slug"]) == (3, "store-not-writable"), ended


def test_a_cache_that_cannot_be_made_gives_a_clear_error(desk: Any) -> None:
    unfinished(desk)
    cache = str(desk.top / "kept.txt" / "cache")
    ended = desk.reproduce(*THREE, *desk.shell("exit 3"), BECAUSAL_CACHE=cache)
    assert (ended.code, ended.record["error"]["slug"]) == (3, "cache-not-writable"), ended


def test_what_nobody_foresaw_is_no_answer(desk: Any) -> None:
    """A file stands where the cache has a folder: an error with a trace, not the word for no."""
    unfinished(desk)
    desk.cache.mkdir()
    (desk.cache / "scratch").write_text("in the way")
    ended = desk.reproduce(*THREE, *desk.shell("exit 0"))
    assert (ended.code, ended.record["error"]["slug"]) == (3, "internal-error"), ended
    assert b"Traceback" in ended.err

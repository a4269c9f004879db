"""Whoever is killed, nothing of theirs lives on, and nobody else notices."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import psutil
import pytest

from becausal.lab.server import Server, ServerDied
from becausal.lab.stage import Bubblewrap, Grounds, build_stage, find_bubblewrap

OWNER = """
import json, os, sys
from becausal.lab.server import Server
argv, order = json.load(sys.stdin)
server = Server(argv, env=dict(os.environ))
print("ready", flush=True)
server.run(order)
"""


def _expect_death(run: Any, *arguments: Any) -> None:
    with pytest.raises(ServerDied):
        run(*arguments)


def test_killed_owner_takes_everything_with_it(bench: Any, until: Any) -> None:
    import json

    script = "(setsid sleep 300 &) ; trap '' TERM; sleep 300"
    argv = bench.server._process.args[:-1]
    words = json.dumps([argv, bench.order("sh", "-c", script)])
    env = {**os.environ, "BECAUSAL_WITHOUT": " ".join(bench.without), "MARK": bench.marker}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert owner.stdin is not None
    owner.stdin.write(words.encode())
    owner.stdin.close()
    assert until(lambda: len(bench.left()) >= 5)  # owner, server, keeper, shell, sleeps
    owner.kill()
    owner.wait()
    assert owner.stdout is not None
    owner.stdout.close()
    assert bench.nothing_left()


def test_killed_server_is_told_and_leaves_nobody(bench: Any, until: Any) -> None:
    told: list[BaseException] = []

    def run() -> None:
        try:
            bench.sh("setsid sleep 300 & sleep 300")
        except ServerDied as death:
            told.append(death)

    thread = threading.Thread(target=run)
    thread.start()
    assert until(lambda: len(bench.left()) >= 3)
    os.kill(bench.server.pid, signal.SIGKILL)
    thread.join(20)
    assert [type(each) for each in told] == [ServerDied]
    assert bench.nothing_left()


def test_killed_server_and_keeper_at_once_leave_nobody(bench: Any, until: Any) -> None:
    thread = threading.Thread(target=_expect_death, args=(bench.sh, "sleep 300"))
    thread.start()
    assert until(lambda: len(bench.left()) >= 1)
    family = psutil.Process(bench.server.pid).children(recursive=True)
    for process in (psutil.Process(bench.server.pid), family[0]):
        process.kill()
    thread.join(20)
    assert bench.nothing_left()


def test_siblings_go_on_when_a_trial_is_ended(bench: Any, tmp_path: Any, until: Any) -> None:
    argv = bench.server._process.args[:-1]
    env = {**os.environ, "BECAUSAL_WITHOUT": " ".join(bench.without)}
    with Server(argv, env=env) as sibling:
        answers: list[Any] = []
        gate = bench.folder / "gate"
        os.mkfifo(gate)
        order = bench.order("sh", "-c", "cat gate; exit 9", overlay=[])
        thread = threading.Thread(target=lambda: answers.append(sibling.run(order)))
        thread.start()
        assert until(lambda: len(bench.left()) >= 1)
        assert bench.sh("sleep 300 & exec sleep 300", limits={"seconds": 0.3})["timed_out"]
        gate.write_bytes(b"go")
        thread.join(20)
        assert answers[0]["exit_code"] == 9


def test_stop_ends_what_still_runs(bench: Any, until: Any) -> None:
    script = "setsid sleep 300 & sleep 300"
    thread = threading.Thread(target=_expect_death, args=(bench.sh, script))
    thread.start()
    assert until(lambda: len(bench.left()) >= 3)
    bench.server.stop()
    thread.join(20)
    assert bench.nothing_left()
    assert not psutil.pid_exists(bench.server.pid)


def test_server_that_cannot_start_says_what_it_printed() -> None:
    with pytest.raises(ServerDied) as caught:
        Server([sys.executable, "-c", "raise SystemExit('no luck today')"], env=dict(os.environ))
    assert caught.value.slug == "server-died"
    assert "no luck today" in caught.value.hint


def test_silent_server_is_given_up() -> None:
    with pytest.raises(ServerDied, match="does not answer"):
        Server(
            [sys.executable, "-c", "import time; time.sleep(300)"],
            env=dict(os.environ),
            patience=0.3,
        )


def test_server_that_floods_its_own_output_is_no_burden() -> None:
    code = (
        "import sys, os; sys.path[:0] = [sys.argv[1]]\n"
        "from becausal_payload import wire\n"
        "for _ in range(300): os.write(1, b'x' * 65536)\n"
        "os.write(1, b'the end')\n"
        "wire.send(int(sys.argv[2]), {'ready': {}})\n"
        "wire.receive(int(sys.argv[2]))\n"
    )
    import becausal_payload

    home = os.path.dirname(os.path.dirname(becausal_payload.__file__))
    with Server([sys.executable, "-c", code, home], env=dict(os.environ)) as server:
        server.stop()
        assert server.said.endswith("the end")
        assert len(server.said) <= 2000


def test_sandboxed_server_leaves_nobody_when_its_outside_is_killed(
    tmp_path: Any, until: Any
) -> None:
    found = find_bubblewrap()
    if not found.path:
        assert os.environ.get("BECAUSAL_REQUIRE_ALL") != "1", found.reason
        pytest.skip(found.reason)
    import becausal_payload

    home = os.path.dirname(os.path.dirname(becausal_payload.__file__))
    grounds = Grounds(top=str(tmp_path), workspace=str(tmp_path), readable=(home, sys.prefix))
    stage = build_stage(grounds, bubblewrap=found)
    spawner = os.path.join(home, "becausal_payload", "spawner.py")
    server = Server([*stage.prefix, sys.executable, "-I", "-S", spawner], env=dict(os.environ))
    order = {
        "ticket": 1,
        "argv": ["sh", "-c", "setsid sleep 300 & sleep 300"],
        "cwd": str(tmp_path),
        "env": {"PATH": os.environ["PATH"]},
        "limits": {"seconds": 60},
    }
    thread = threading.Thread(target=_expect_death, args=(server.run, order))
    thread.start()
    outside = psutil.Process(server.pid)
    assert until(lambda: sum(p.name() == "sleep" for p in outside.children(recursive=True)) == 2)
    family = outside.children(recursive=True)
    outside.kill()
    server.stop()
    thread.join(20)
    assert until(lambda: not any(p.is_running() for p in family))


def test_stage_without_bubblewrap_says_so(tmp_path: Any) -> None:
    grounds = Grounds(top="/person", workspace=str(tmp_path))
    stage = build_stage(grounds, bubblewrap=Bubblewrap(reason="not here"), network=False)
    assert not stage.sandboxed
    assert stage.top == str(tmp_path)
    assert "no sandbox: not here" in stage.notes
    assert any("network" in note for note in stage.notes)

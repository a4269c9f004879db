"""Whatever a trial does, its outcome is right and nobody is left behind."""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest


def test_a_program_ends_with_its_own_exit_code_and_output(bench: Any, out: Any) -> None:
    ran = bench.sh("echo out; echo err >&2; exit 3")
    assert (ran["exit_code"], ran["signal"], ran["obstacle"]) == (3, None, None)
    assert (out(ran), out(ran, "stderr")) == (b"out\n", b"err\n")


def test_isolation_says_what_there_was(bench: Any) -> None:
    ran = bench.run("true")
    pids = "process-group" if "pid-namespace" in bench.without else "pid-namespace"
    files = "files-shared" if "overlay" in bench.without else "overlay"
    assert ran["isolation"] == [pids, files]


def test_writes_in_an_overlay_are_gone_after_the_trial(bench: Any) -> None:
    (bench.folder / "old").mkdir()
    (bench.folder / "old" / "file").write_text("as it was")
    ran = bench.sh("rm -r old && mkdir old && mv old new && echo x > new/file && cat new/file")
    assert ran["exit_code"] == 0
    kept = "overlay" in ran["isolation"]
    assert (bench.folder / "old" / "file").exists() is kept
    assert (bench.folder / "new").exists() is not kept


def test_output_of_300_megabytes_costs_no_memory_and_keeps_both_ends(bench: Any, out: Any) -> None:
    quiet = bench.run("true")
    ran = bench.sh("echo first; head -c 300000000 /dev/zero; echo last; exit 4")
    assert ran["exit_code"] == 4
    kept = out(ran)
    assert kept.startswith(b"first\n")
    assert kept.endswith(b"last\n")
    assert len(kept) + ran["stdout"]["dropped"] == 300_000_000 + len(b"first\nlast\n")
    assert ran["keeper_rss"] - quiet["keeper_rss"] <= 2 << 20


def test_output_need_not_be_text(bench: Any, out: Any) -> None:
    assert out(bench.sh(r"printf '\377\000\376'")) == b"\xff\x00\xfe"


def test_daemons_die_with_their_trial(bench: Any, out: Any) -> None:
    script = (
        "(setsid sh -c 'sleep 300 & sleep 300' &) ; setsid setsid sleep 300 & echo done; exit 5"
    )
    ran = bench.sh(script)
    assert (ran["exit_code"], out(ran)) == (5, b"done\n")
    assert bench.nothing_left()


def test_double_forked_daemon_in_a_session_of_its_own_dies(bench: Any) -> None:
    daemon = (
        "import os, time, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.close(1); os.close(2)\n"
        "        time.sleep(300)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    assert bench.run(sys.executable, "-I", "-S", "-c", daemon)["exit_code"] == 0
    assert bench.nothing_left()


def test_a_background_process_holding_the_pipes_does_not_hold_the_trial(bench: Any) -> None:
    ran = bench.sh("sleep 300 & echo started; exit 0")
    assert ran["exit_code"] == 0
    assert ran["seconds"] < 30
    assert bench.nothing_left()


def test_killing_the_parent_spares_the_trial(bench: Any, out: Any) -> None:
    for _ in range(40):  # the parent's death and the trial's own end race
        ran = bench.sh("kill -9 $PPID; echo survived; exit 6", limits={"seconds": 20.0})
        assert (ran["exit_code"], ran["obstacle"], out(ran)) == (6, None, b"survived\n")
    assert bench.nothing_left()


def test_killing_the_own_group_is_a_kill_of_the_trial(bench: Any) -> None:
    ran = bench.sh("sleep 300 & kill -9 0; sleep 300")
    assert (ran["exit_code"], ran["signal"], ran["obstacle"]) == (None, signal.SIGKILL, None)
    assert bench.nothing_left()


def test_killing_the_parents_group_spares_the_trial(bench: Any) -> None:
    killing = (
        "import os, signal\n"
        "try:\n"
        "    group = os.getpgid(os.getppid())\n"
        "    if group > 0: os.killpg(group, signal.SIGKILL)\n"
        "except OSError: pass\n"
        "raise SystemExit(7)\n"
    )
    ran = bench.run(sys.executable, "-I", "-S", "-c", killing)
    assert (ran["exit_code"], ran["obstacle"]) == (7, None)
    assert bench.run("true")["exit_code"] == 0


def test_killing_everyone_stays_in_the_pid_namespace(bench: Any) -> None:
    if "pid-namespace" in bench.without:
        pytest.skip("without a pid namespace this would kill everything of this user")
    ran = bench.sh("[ $$ -lt 10 ] || exit 1; sleep 300 & kill -9 -1; exit 8")
    assert (ran["exit_code"], ran["obstacle"]) == (8, None)
    assert bench.run("true")["exit_code"] == 0


def test_death_by_signal_is_told(bench: Any) -> None:
    ran = bench.sh("kill -SEGV $$")
    assert (ran["exit_code"], ran["signal"]) == (None, signal.SIGSEGV)


def test_time_limit_ends_the_trial_and_all_it_started(bench: Any) -> None:
    ran = bench.sh("setsid sleep 300 & trap '' TERM; sleep 300", limits={"seconds": 0.3})
    assert (ran["timed_out"], ran["exit_code"], ran["obstacle"]) == (True, None, None)
    assert ran["seconds"] < 30
    assert bench.nothing_left()


def test_output_before_the_time_limit_is_kept(bench: Any, out: Any) -> None:
    ran = bench.sh("echo before; exec sleep 300", limits={"seconds": 0.5})
    assert ran["timed_out"]
    assert out(ran) == b"before\n"


def test_a_program_waiting_for_input_finds_its_end(bench: Any, out: Any) -> None:
    assert bench.sh("cat; echo end")["exit_code"] == 0
    given = bench.folder / "given"
    given.write_bytes(b"some\xffbytes")
    assert out(bench.sh("cat", stdin=str(given))) == b"some\xffbytes"


def test_memory_limit_makes_allocation_fail(bench: Any, out: Any) -> None:
    code = "x = bytearray(1 << 30)"
    limits = {"seconds": 60.0, "memory": 256 << 20}
    ran = bench.run(sys.executable, "-I", "-S", "-c", code, limits=limits)
    assert ran["exit_code"] == 1
    assert b"MemoryError" in out(ran, "stderr")


def test_a_missing_command_is_named(bench: Any) -> None:
    obstacle = bench.run("no-such-command-h5", "x")["obstacle"]
    assert obstacle["slug"] == "command-missing"
    assert "no-such-command-h5" in obstacle["what"]


def test_a_file_that_is_no_program_is_told_apart_from_a_missing_one(bench: Any) -> None:
    file = bench.folder / "plain"
    file.write_text("text")
    assert bench.run("./plain")["obstacle"]["slug"] == "command-not-executable"


def test_a_missing_folder_is_an_obstacle(bench: Any) -> None:
    ran = bench.run("true", cwd=str(bench.folder / "nowhere"))
    assert ran["obstacle"]["slug"] == "folder-missing"
    assert bench.run("true")["exit_code"] == 0


def test_resources_of_the_whole_trial_are_measured(bench: Any) -> None:
    code = "import os\nx = bytearray(b'x') * (80 << 20)\nfor _ in range(6_000_000): pass"
    ran = bench.sh(f'{sys.executable} -I -S -c "{code}"')
    assert ran["exit_code"] == 0
    assert ran["max_rss"] > 80 << 20
    assert 0.05 < ran["cpu_seconds"] < 20


def test_environment_and_folder_are_those_ordered(bench: Any, out: Any) -> None:
    ran = bench.sh('printf "%s|%s" "$PWD" "$(env | wc -l)"', env={"ONE": "1"})
    folder, count = out(ran).split(b"|")
    assert folder == os.fsencode(bench.folder)
    assert int(count) <= 6  # those ordered, and what sh itself adds


def test_programs_hold_no_descriptor_of_the_server(bench: Any, out: Any) -> None:
    listing = "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))"
    shown = out(bench.run(sys.executable, "-I", "-S", "-c", listing))
    assert shown == b"['0', '1', '2', '3']\n"  # 3 is the listing itself


LIBRARY_SIGNALS = 0b11 << 31
"""Signals 32 and 33 are the C library's: what make starts ignores one, and nobody can undo it."""


def test_signals_are_as_a_shell_leaves_them(bench: Any, out: Any) -> None:
    lines = out(bench.sh("grep -E 'Sig(Blk|Ign)' /proc/self/status")).split()
    blocked, ignored = (int(mask, 16) & ~LIBRARY_SIGNALS for mask in lines[1::2])
    assert (blocked, ignored) == (0, 0)


def test_reports_of_processes_are_gathered(bench: Any, tmp_path: Path) -> None:
    report = tmp_path / "report"
    script = (
        "echo '{\"pid\": 7}' > $BECAUSAL_REPORT/process-7.json;"
        'printf \'{"id": "t"}\\n{"id": "cut\' > $BECAUSAL_REPORT/tests-7.jsonl;'
        "echo 'no json' > $BECAUSAL_REPORT/process-8.json"
    )
    ran = bench.sh(script, env={"BECAUSAL_REPORT": str(report)})
    side = json.loads(base64.b64decode(ran["side_b64"]))
    assert side["processes"] == [{"pid": 7}]
    assert side["tests"] == [{"id": "t"}]
    assert len(side["unread"]) == 1


def test_cancelled_trial_ends_and_the_server_goes_on(bench: Any, until: Any) -> None:
    order = bench.order("sleep", "300")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(bench.server.run(order)))
    thread.start()
    assert until(lambda: len(bench.left()) > 0)
    bench.server.cancel(order["ticket"])
    thread.join(20)
    assert answers[0]["obstacle"]["slug"] == "cancelled"
    assert bench.nothing_left()
    assert bench.run("true")["exit_code"] == 0


def _keeper_of(bench: Any) -> int:
    """The server's child: it keeps the trial."""
    children = (
        Path(f"/proc/{bench.server.pid}/task/{bench.server.pid}/children").read_text().split()
    )
    return int(children[0]) if children else 0


def test_killed_keeper_is_an_obstacle_and_leaves_nobody(bench: Any, until: Any) -> None:
    order = bench.order("sh", "-c", "setsid sleep 300 & sleep 300")
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(bench.server.run(order)))
    thread.start()
    assert until(lambda: len(bench.left()) >= 3)
    os.kill(_keeper_of(bench), signal.SIGKILL)
    thread.join(20)
    assert answers[0]["obstacle"]["slug"] == "keeper-killed"
    assert bench.nothing_left()
    assert bench.run("true")["exit_code"] == 0

"""What one warm trial is given, what it may do, and what it leaves behind."""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import pytest

from becausal.domain.recording import Recording


def words(recording: Recording, name: str = "test_it") -> str:
    """What a test printed after `name=`; every little test here ends by failing with its words."""
    return next(
        test.raised.message
        for test in recording.tests
        if name in test.id and test.raised is not None
    )


SAYS = "import pytest\ndef say(words): pytest.fail(str(words), pytrace=False)\n"


def test_sandboxed_trial_sees_the_workspace_at_the_original_place(boxed: Any) -> None:
    boxed.write(
        {
            "mod.py": "value = 1\n",
            "test_place.py": SAYS + "import mod, os\n"
            "def test_it(tmp_path):\n    open('made', 'w').close()\n    say(os.getcwd())\n",
        }
    )
    served = boxed.warm("-p", "no:cacheprovider")
    for recording in (served.run(), served.run(), boxed.cold("-p", "no:cacheprovider")):
        assert words(recording) == str(boxed.top)
        assert recording.imported == ("mod.py", "test_place.py")
        assert "sandbox" in recording.isolation
    assert not (boxed.folder / "made").exists()


def test_each_trial_starts_from_the_same_state(project: Any) -> None:
    project.write(
        {
            "conftest.py": "import pytest\nmade = []\n"
            "@pytest.fixture(scope='session')\n"
            "def thing(): made.append(1); return len(made)\n",
            "test_state.py": "state = []\n"
            "def test_it(thing):\n    state.append(1)\n    assert (state, thing) == ([1], 1)\n",
        }
    )
    runner = project.warm("-q")
    outcomes = [runner.run(seed=n).tests[0].outcome for n in range(3)]
    assert outcomes == ["passed"] * 3


def test_seed_decides_random_numbers(project: Any) -> None:
    project.write({"test_seed.py": SAYS + "import random\ndef test_it(): say(random.random())\n"})
    runner = project.warm()
    first, again, other = (words(runner.run(seed=n)) for n in (1, 1, 2))
    assert first == again != other


def test_same_seed_gives_same_numbers_cold(project: Any) -> None:
    project.write({"test_seed.py": SAYS + "import random\ndef test_it(): say(random.random())\n"})
    warm = words(project.warm().run(seed=7))
    assert words(project.cold(seed=7)) == warm


def test_hash_seed_is_that_of_the_server(project: Any) -> None:
    project.write({"test_hash.py": SAYS + "def test_it(): say(hash('x'))\n"})
    runner = project.warm(servers=2)
    seen = [words(runner.run(hash_seed=n)) for n in (0, 1, 2, 0)]
    assert seen[0] == seen[3]
    assert len(set(seen)) == 3


def test_writes_to_the_workspace_are_thrown_away(project: Any) -> None:
    project.write(
        {
            "data.txt": "old",
            "test_writes.py": "import os, pathlib\ndef test_it():\n"
            "    file = pathlib.Path('data.txt')\n    assert file.read_text() == 'old'\n"
            "    file.write_text('new'); os.mkdir('made')\n",
        }
    )
    runner = project.warm()
    recordings = [runner.run() for _ in range(2)]
    if "overlay" not in recordings[0].isolation:
        pytest.skip("no overlay here")
    assert [r.exit_code for r in recordings] == [0, 0]
    assert (project.folder / "data.txt").read_text() == "old"
    assert not (project.folder / "made").exists()


@pytest.mark.parametrize(
    ("ending", "exit_code", "number"),
    [
        ("os._exit(9)", 9, None),
        ("os.abort()", None, signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGKILL)", None, signal.SIGKILL),
        ("ctypes.string_at(0)", None, signal.SIGSEGV),
        ("pytest.exit('enough', returncode=6)", 6, None),
    ],
)
def test_a_violent_end_is_told_and_leaves_the_server_usable(
    project: Any, ending: str, exit_code: int | None, number: int | None
) -> None:
    project.write(
        {
            "test_end.py": "import ctypes, os, signal\nimport pytest\n"
            f"def test_first(): pass\ndef test_it():\n    {ending}\n"
        }
    )
    runner = project.warm("-q")
    for _ in range(2):
        recording = runner.run()
        assert (recording.exit_code, recording.signal) == (exit_code, number)
        assert recording.tests[0].id == "test_end.py::test_first"
        assert "test_end.py" in recording.imported
    if number == signal.SIGSEGV:
        assert b"Segmentation fault" in recording.stderr.joined()


def test_a_hanging_test_is_timed_out(project: Any) -> None:
    project.write({"test_hang.py": "import threading\ndef test_it(): threading.Event().wait()\n"})
    recording = project.warm().run(seconds=0.5)
    assert recording.timed_out
    assert recording.exit_code is None
    assert recording.imported == ("test_hang.py",)


def test_a_thread_that_is_no_daemon_is_waited_for_as_by_python(project: Any) -> None:
    project.write(
        {
            "test_thread.py": "import threading\n"
            "def test_it(): threading.Thread(target=threading.Event().wait).start()\n"
        }
    )
    recording = project.warm().run(seconds=1.0)
    assert recording.timed_out
    assert recording.tests[0].outcome == "passed"


def test_exit_functions_of_the_trial_run(project: Any) -> None:
    project.write(
        {
            "conftest.py": "import atexit\natexit.register(print, 'of the server')\n",
            "test_exit.py": "import atexit\n"
            "def test_it(): atexit.register(print, 'of the trial')\n",
        }
    )
    shown = project.warm("-q").run().stdout.joined()
    assert b"of the trial" in shown
    assert b"of the server" not in shown


def test_output_belongs_to_its_trial_alone(project: Any) -> None:
    project.write(
        {"test_out.py": "import os\ndef test_it():\n    print('seen', os.urandom(4).hex())\n"}
    )
    runner = project.warm("-q", "-s")
    first, second = (runner.run().stdout.joined() for _ in range(2))
    assert first.count(b"seen") == second.count(b"seen") == 1
    assert first != second


def test_temporary_folders_are_apart_and_removed(project: Any) -> None:
    project.write({"test_temp.py": SAYS + "def test_it(tmp_path): say(tmp_path)\n"})
    runner = project.warm("--basetemp", "given")
    first, second = (runner.run() for _ in range(2))
    assert words(first) != words(second)
    assert not os.path.exists(words(first))
    assert any("--basetemp" in note for note in first.notes)


def test_chosen_tests_run_in_the_order_given(project: Any) -> None:
    project.write({"test_many.py": "def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n"})
    runner = project.warm()
    chosen = ["test_many.py::test_c", "test_many.py::test_a"]
    recording = runner.run(tests=chosen)
    assert [test.id for test in recording.tests] == chosen
    unknown = runner.run(tests=["test_many.py::test_z"])
    assert unknown.obstacle is not None
    assert unknown.obstacle.slug == "test-not-found"


def test_a_changed_source_restarts_the_server(project: Any) -> None:
    project.write(
        {
            "mod.py": "value = 1\n",
            "test_mod.py": SAYS + "import mod\ndef test_it(): say(mod.value)\n",
        }
    )
    runner = project.warm()
    before = runner.run()
    project.write({"mod.py": "value = 2\n"})
    after = runner.run()
    assert (words(before), words(after)) == ("1", "2")
    assert before.server != after.server


def test_environment_set_by_a_conftest_is_kept(project: Any) -> None:
    project.write(
        {
            "conftest.py": "import os\nos.environ['SET'] = 'yes'\nos.environ.pop('GONE')\n",
            "test_env.py": SAYS + "import os\n"
            "def test_it(): say((os.environ.get('SET'), os.environ.get('GONE')))\n",
        }
    )
    assert words(project.warm(GONE="here").run()) == "('yes', None)"


def test_options_that_do_mischief_are_off_and_said(project: Any) -> None:
    pytest.importorskip("xdist")
    project.write({"test_a.py": "def test_it(): pass\n"})
    recording = project.warm("-n", "2", "--junitxml", "out.xml", "--sw").run()
    said = " ".join(recording.notes)
    assert recording.exit_code == 0
    assert all(option in said for option in ("-n ", "--junitxml", "--sw"))


def test_lines_run_are_told_for_each_test(project: Any) -> None:
    project.write(
        {
            "mod.py": "def f(x):\n    if x:\n        return 1\n    return 2\n",
            "test_lines.py": "import mod\ndef test_a(): mod.f(1)\ndef test_b(): mod.f(0)\n",
        }
    )
    for recording in (project.warm().run(lines=True), project.cold(lines=True)):
        assert recording.lines["test_lines.py::test_a"]["mod.py"] == [2, 3]
        assert recording.lines["test_lines.py::test_b"]["mod.py"] == [2, 4]


def test_what_a_subprocess_imported_is_told(project: Any) -> None:
    project.write(
        {
            "other.py": "x = 1\n",
            "test_sub.py": "import subprocess, sys\n"
            "def test_it(): subprocess.run([sys.executable, '-c', 'import other'], check=True)\n",
        }
    )
    assert "other.py" in project.warm().run().imported


def test_tests_that_start_pytest_do_not_report(project: Any) -> None:
    project.write(
        {
            "inner/test_inner.py": "def test_inner(): assert 0\n",
            "test_outer.py": "import subprocess, sys\n"
            "inner = [sys.executable, '-m', 'pytest', 'inner']\n"
            "def test_it(): assert subprocess.call(inner) == 1\n",
        }
    )
    arguments = ("test_outer.py",)
    for recording in (project.warm(*arguments).run(), project.cold(*arguments)):
        assert [test.id for test in recording.tests] == ["test_outer.py::test_it"]
        assert recording.exit_code == 0


@pytest.mark.parametrize("arguments", [("-n", "2"), ("-n", "2", "--dist", "loadfile"), ()])
def test_cold_reports_are_the_same_under_xdist(project: Any, arguments: tuple[str, ...]) -> None:
    pytest.importorskip("xdist")
    project.write(
        {
            "mod.py": "def f(): raise LookupError('deep')\n",
            "test_a.py": "import mod\ndef test_it(): mod.f()\ndef test_fine(): pass\n",
            "test_b.py": "def test_fine(): pass\n",
            "test_c.py": "import no_such_module\n",
        }
    )
    recording = project.cold("--continue-on-collection-errors", *arguments)
    told = {test.id: (test.outcome, test.raised and test.raised.kind) for test in recording.tests}
    assert told == {
        "test_a.py::test_it": ("failed", "LookupError"),
        "test_a.py::test_fine": ("passed", None),
        "test_b.py::test_fine": ("passed", None),
        "test_c.py": ("error", "ModuleNotFoundError"),
    }
    assert {"mod.py", "test_a.py", "test_b.py"} <= set(recording.imported)


def test_plugins_a_person_names_are_still_loaded(project: Any) -> None:
    project.write(
        {
            "helper.py": "import pytest\n@pytest.fixture\ndef thing(): return 5\n",
            "test_a.py": "import os\n"
            "def test_it(thing): assert thing == 5 and os.environ['PYTEST_PLUGINS'] == 'helper'\n",
        }
    )
    for recording in (
        project.warm(PYTEST_PLUGINS="helper").run(),
        project.cold(PYTEST_PLUGINS="helper"),
    ):
        assert [test.outcome for test in recording.tests] == ["passed"]


@pytest.mark.parametrize(("arguments", "seen"), [((), "b''"), (("-s",), "b'given'")])
def test_standard_input_reaches_tests_only_when_nothing_is_captured(
    project: Any, arguments: tuple[str, ...], seen: str
) -> None:
    project.write({"test_in.py": SAYS + "import os\ndef test_it(): say(os.read(0, 9))\n"})
    warm = project.warm(*arguments).run(input=b"given")
    assert words(warm) == words(project.cold(*arguments, input=b"given")) == seen


def test_output_of_a_trial_that_died_is_not_shown_by_the_next(project: Any) -> None:
    project.write(
        {
            "test_out.py": "import os, random\ndef test_it():\n"
            "    print('seen by', random.random())\n"
            "    if random.random() < 0.5: os._exit(9)\n    assert 0\n"
        }
    )
    served = project.warm()
    dies, fails = (next(n for n in range(99) if _second(n) is low) for low in (True, False))
    assert served.run(seed=dies).exit_code == 9
    failed = served.run(seed=fails)
    assert failed.exit_code == 1
    assert failed.stdout.joined().count(b"seen by") == 2  # in the source shown, and printed


def _second(seed: int) -> bool:
    """Whether the second random number of a seed is low."""
    generator = random.Random(seed)
    generator.random()
    return generator.random() < 0.5


def test_temporary_folder_made_at_the_start_is_not_shared(project: Any) -> None:
    project.write(
        {
            "conftest.py": "def pytest_sessionstart(session):\n"
            "    session.config._tmp_path_factory.getbasetemp()\n",
            "test_temp.py": SAYS + "def test_it(tmp_path): say(tmp_path)\n",
        }
    )
    served = project.warm()
    first, second = words(served.run()), words(served.run())
    assert first != second
    assert not os.path.exists(first)


def test_only_the_last_attempt_of_a_rerun_test_is_told(project: Any) -> None:
    """As pytest-rerunfailures does it: reports of an attempt, then all over again."""
    project.write(
        {
            "conftest.py": "from _pytest.runner import runtestprotocol\n"
            "def pytest_runtest_protocol(item, nextitem):\n"
            "    log = item.ihook.pytest_runtest_logreport\n"
            "    for report in runtestprotocol(item, nextitem=item, log=False):\n"
            "        if report.failed: report.outcome = 'rerun'\n"
            "        log(report=report)\n"
            "    for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
            "        log(report=report)\n"
            "    return True\n",
            "test_a.py": "def test_it(): assert 0\n",
        }
    )
    for recording in (project.warm().run(), project.cold()):
        assert [test.outcome for test in recording.tests] == ["failed"]


@pytest.mark.parametrize("flags", [("-I",), ("-E", "-B"), ("-X", "dev", "-W", "error"), ("-O",)])
def test_flags_of_the_interpreter_are_kept(project: Any, flags: tuple[str, ...]) -> None:
    project.flags = flags
    project.write(
        {
            "test_a.py": SAYS + "import sys\n"
            "def test_it(): say((sys.flags.isolated, sys.flags.optimize, sys.flags.dev_mode))\n"
        }
    )
    warm, cold = project.warm("-p", "no:asyncio").run(), project.cold("-p", "no:asyncio")
    assert (warm.exit_code, cold.exit_code) == (1, 1)
    expected = str((int("-I" in flags), int("-O" in flags), "dev" in flags))
    assert words(warm) == expected
    assert expected.encode() in cold.stdout.joined()

"""Warm and cold trials must see the same in every kind of test that pytest knows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from becausal.domain.recording import Recording

CONFTEST = """
import random
import pytest

def pytest_addoption(parser):
    parser.addini("little_word", "a word of the ini file", default="none")

@pytest.fixture(scope="session")
def session_thing():
    yield {"made": 1}

@pytest.fixture(scope="package")
def package_thing(session_thing):
    return dict(session_thing)

@pytest.fixture(scope="module")
def module_thing(package_thing):
    package_thing["made"] += 1
    return package_thing

@pytest.fixture
def breaks():
    raise LookupError("the fixture breaks")

@pytest.fixture
def breaks_later():
    yield
    raise ArithmeticError("the end breaks")
"""

LITTLE = {
    "passes": "def test_it(): assert 1 + 1 == 2\n",
    "fails": "def test_it():\n    have = [1, 2, 3]\n    assert have == [1, 2, 4]\n",
    "raises": """
class Custom(Exception):
    pass
def deep(n):
    if n == 0:
        raise Custom("at the bottom")
    deep(n - 1)
def test_it():
    deep(3)
""",
    "chained": """
def test_it():
    try:
        {}["missing"]
    except KeyError as error:
        raise RuntimeError("while looking") from error
""",
    "context": """
def test_it():
    try:
        {}["missing"]
    except KeyError:
        int("no number")
""",
    "unreadable": """
class Unreadable(Exception):
    def __str__(self):
        raise ValueError("no words")
def test_it():
    raise Unreadable()
""",
    "fixture_breaks": "def test_it(breaks): pass\n",
    "teardown_breaks": "def test_it(breaks_later): pass\ndef test_both(breaks_later): assert 0\n",
    "scopes": """
def test_a(module_thing, session_thing): assert module_thing["made"] == 2
def test_b(module_thing, package_thing): assert package_thing is module_thing
""",
    "parametrised": """
import pytest
@pytest.mark.parametrize("word", ["", "a b", "ü", "x" * 40])
@pytest.mark.parametrize("n", [1, 2])
def test_it(word, n): assert len(word) * n != 2
""",
    "classes": """
class TestThing:
    @classmethod
    def setup_class(cls): cls.count = 0
    def setup_method(self): type(self).count += 1
    def test_a(self): assert self.count == 1
    def test_b(self): assert self.count == 1
""",
    "unittest_case": """
import unittest
class Thing(unittest.TestCase):
    def setUp(self): self.value = 3
    def test_equal(self): self.assertEqual(self.value, 4)
    def test_fine(self): self.assertTrue(self.value)
    def test_error(self): raise OSError(5, "broken")
    @unittest.skip("not now")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail("as expected")
""",
    "marks": """
import pytest
@pytest.mark.skip(reason="no")
def test_skip(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.xfail(strict=True)
def test_strict(): pass
@pytest.mark.skipif("sys.platform == 'never'")
def test_runs(): pass
def test_skips_itself(): pytest.skip("inside")
""",
    "outcomes": """
import pytest
def test_fail(): pytest.fail("said so", pytrace=False)
def test_importorskip(): pytest.importorskip("no_such_module_at_all")
def test_exit_inside(): raise SystemExit(3)
""",
    "asynchronous": """
import asyncio
import pytest
@pytest.fixture
async def made():
    await asyncio.sleep(0)
    return 4
async def test_it(made): assert made == 4
async def test_fails(made):
    await asyncio.gather(asyncio.sleep(0))
    assert made == 5
""",
    "captured": """
import os, sys
def test_capsys(capsys):
    print("out"); print("err", file=sys.stderr)
    assert capsys.readouterr() == ("out\\n", "err\\n")
def test_capfd(capfd):
    os.write(1, b"direct")
    assert capfd.readouterr().out == "direct"
def test_shown():
    print("in the report")
    assert 0
def test_stdin():
    assert os.read(0, 10) == b""
""",
    "logged": """
import logging
def test_caplog(caplog):
    logging.getLogger("x").warning("careful")
    assert caplog.messages == ["careful"]
""",
    "temporary": """
import os
def test_tmp_path(tmp_path):
    assert not list(tmp_path.iterdir())
    (tmp_path / "f").write_text("x")
def test_factory(tmp_path_factory):
    a, b = tmp_path_factory.mktemp("n"), tmp_path_factory.mktemp("n")
    assert a != b and a.parent == b.parent
""",
    "patched": """
import os
def test_env(monkeypatch):
    monkeypatch.setenv("LITTLE", "1")
    assert os.environ["LITTLE"] == "1"
def test_env_is_back(): assert "LITTLE" not in os.environ
def test_chdir(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
def test_cwd(request): assert os.getcwd() == str(request.config.invocation_params.dir)
""",
    "warned": """
import warnings
import pytest
def test_warns():
    warnings.warn("old", DeprecationWarning)
def test_recorded():
    with pytest.warns(UserWarning): warnings.warn("seen")
@pytest.mark.filterwarnings("error")
def test_strict(): warnings.warn("fatal")
""",
    "threads": """
import threading
def test_it():
    seen = []
    t = threading.Thread(target=seen.append, args=(1,)); t.start(); t.join()
    assert seen == [1] and threading.current_thread() is threading.main_thread()
def test_daemon_left():
    threading.Thread(target=threading.Event().wait, daemon=True).start()
""",
    "processes": """
import multiprocessing, os, subprocess, sys
def work(n): return n * 2
def test_subprocess():
    assert subprocess.check_output([sys.executable, "-c", "print(5)"]) == b"5\\n"
def test_fork():
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool: assert pool.map(work, [1, 2]) == [2, 4]
def test_exit_code():
    assert subprocess.call([sys.executable, "-c", "import sys; sys.exit(7)"]) == 7
""",
    "process_of_its_own": """
import __main__, sys
def test_argv(): assert sys.argv[0].endswith("__main__.py") and "--color=no" in sys.argv
def test_main(): assert __main__.__file__.endswith("__main__.py")
def test_path(): assert not [p for p in sys.path if "becausal_payload" in p or "/payload/" in p]
def test_modules(): assert "pytest" in sys.modules
""",
    "doctested": '''
def double(n):
    """
    >>> double(2)
    4
    >>> double(3)
    7
    """
    return n * 2
''',
    "settings": """
def test_ini(request): assert request.config.getini("little_word") == "hello"
def test_option(request): assert request.config.getoption("verbose") == 0
def test_cache(cache): cache.set("little/x", 1)
""",
    "groups": """
import sys
import pytest
@pytest.mark.skipif(sys.version_info < (3, 11), reason="no groups")
def test_group():
    raise ExceptionGroup("several", [ValueError("first"), KeyError("second")])
""",
    "random_order_of_sets": """
def test_it(): assert list({"a", "b", "c", "d", "e", "f", "g", "h"}) != []
""",
}

INI = """
[pytest]
addopts = -p no:cacheprovider --doctest-modules
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
little_word = hello
"""

Both = tuple[Recording, Recording]


# Python, and what is installed in it. The first is the one that runs this test.
PYTHONS: list[tuple[str, tuple[str, ...]]] = [
    ("", ()),
    ("3.11", ("pytest==6.2.5", "pytest-asyncio==0.16.0")),
    ("3.8", ("pytest==7.4.4", "pytest-asyncio==0.21.2")),
    ("3.12", ("pytest==8.4.2", "pytest-asyncio==1.2.0")),
    ("3.13", ("pytest==9.0.1", "pytest-asyncio==1.3.0")),
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=[pytest.mark.faults] if each[1] else [], id=" ".join(each[1][:1]))
        for each in PYTHONS
    ],
)
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    version, packages = request.param
    if not packages:
        return sys.executable
    versions = Path.home() / ".pyenv" / "versions"
    found = sorted(versions.glob(f"{version}.*/bin/python"))
    if not found:
        pytest.skip(f"there is no Python {version} here")
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([found[-1], "-m", "venv", venv], check=True, capture_output=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "-q", *packages]
    subprocess.run(pip, check=True, capture_output=True)
    return str(venv / "bin" / "python")


@pytest.fixture(scope="module")
def both(shared_project: Callable[..., Any], python: str) -> Both:
    """The little files run once warm and once cold."""
    files = {f"test_{name}.py": text for name, text in LITTLE.items()}
    files = {**files, "conftest.py": CONFTEST, "pytest.ini": INI}
    project = shared_project(files, python=python)
    return project.warm("--color=no").run(), project.cold("--color=no")


@pytest.mark.parametrize("name", sorted(LITTLE))
def test_warm_reports_what_cold_reports(both: Both, name: str) -> None:
    warm, cold = (_of(recording, name) for recording in both)
    assert cold, "the cold run reported nothing"
    assert warm == cold


def test_exit_code_and_imports_agree(both: Both) -> None:
    warm, cold = both
    assert (warm.exit_code, warm.obstacle) == (cold.exit_code, cold.obstacle) == (1, None)
    assert warm.imported == cold.imported
    assert {"conftest.py", "test_passes.py"} <= set(warm.imported)


def test_output_agrees_but_for_times(both: Both) -> None:
    warm, cold = (_timeless(recording.stdout.joined()) for recording in both)
    assert warm == cold


def _of(recording: Recording, name: str) -> list[str]:
    found = [test for test in recording.tests if test.id.startswith(f"test_{name}.py::")]
    plain = [msgspec.structs.replace(test, seconds=0.0) for test in found]
    return [_timeless_text(msgspec.json.encode(test).decode()) for test in plain]


def _timeless_text(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+|pytest-\d+|trial-\d+", "…", text)


def _timeless(output: bytes) -> str:
    text = re.sub(r"in \d+\.\d+s", "in …", output.decode())
    return _timeless_text(text)

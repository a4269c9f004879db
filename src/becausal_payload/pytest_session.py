"""A pytest session in two halves: up to the collected tests once, from there on in every trial."""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
import time
from typing import Any, Dict, List, Optional, Sequence

from becausal_payload import neutral, streams
from becausal_payload.test_reports import Record, TestReports

OLDEST, NEWEST = (6, 2), (9, 99)


class Refused(Exception):
    """This command cannot be served warm; the reason is for people."""

    def __init__(self, slug: str, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.slug, self.what, self.hint = slug, what, hint


class OpenSession:
    """The first half done: configured and collected, nothing run."""

    def __init__(self, arguments: List[str]) -> None:
        self._pytest = _import_pytest()
        self._records: List[Record] = []
        self._emit: Any = self._records.append
        switch = neutral.Neutraliser()
        try:
            self._open(arguments, switch)
        except (Refused, KeyboardInterrupt):
            raise
        except BaseException as failure:
            raise self._refusal(failure) from failure
        self.notes, self._collected = switch.notes, switch.collected
        self.items: Dict[str, List[Any]] = {}
        for item in self.session.items:
            self.items.setdefault(item.nodeid, []).append(item)

    def _open(self, arguments: List[str], switch: neutral.Neutraliser) -> None:
        prepare = importlib.import_module("_pytest.config")._prepareconfig
        session_class = importlib.import_module("_pytest.main").Session
        config = self.config = prepare(list(arguments), [switch])
        reason = neutral.unfit(config.option)
        if reason:
            raise Refused("not-a-test-run", reason)
        if neutral.order_is_fixed_at_start(config.option):
            raise Refused("order-is-random", "pytest-random-order shuffles the tests only once")
        if neutral.shuffles(config.option):
            switch.notes.append("pytest-randomly uses the seed of each trial, not the one it names")
        switch.switch_off(config.option)
        self.reports = TestReports(lambda record: self._emit(record))
        self.session = session_class.from_config(config)
        self.session.exitstatus = 0
        config._do_configure()
        config.pluginmanager.register(self.reports, "becausal-test-reports")
        neutral.forget_cache(config)
        config.hook.pytest_sessionstart(session=self.session)
        config.hook.pytest_collection(session=self.session)
        if self.session.testsfailed:
            names = ", ".join(record["id"] for record in self._records[:3])
            raise Refused("collection-fails", "tests cannot be collected: %s" % names)
        if not self.session.items:
            raise Refused("no-tests", "pytest collects no test for this command")
        self._capture_fds = _capture_files(config)
        _import_late_ones()

    def run(self, order: Dict[str, Any], temp: str, emit: Any) -> int:
        """The second half, in a trial: run tests, end as pytest does, give its exit code."""
        self._emit = emit
        if hasattr(self.config.option, "randomly_seed"):
            self.config.option.randomly_seed = int(order["seed"]) % 2**32
        tests: Optional[Sequence[str]] = order.get("tests")
        if tests is None and neutral.shuffles(self.config.option):
            self._shuffle_again()
        if tests is not None:
            self.session.items = [item for test in tests for item in self.items[test]]
            self.session.testscollected = len(self.session.items)
        for fd in self._capture_fds:
            streams.renew(fd)
        factory = self.config._tmp_path_factory
        factory._given_basetemp = pathlib.Path(temp)
        factory._basetemp = None
        self._restart_clock()
        try:
            self._loop()
        finally:
            self._finish()
        return int(self.session.exitstatus)

    def _shuffle_again(self) -> None:
        """Let the plugins choose and order the tests anew, now by the seed of this trial."""
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        reporter.stats.pop("deselected", None)  # about to be counted again
        items = list(self._collected)
        self.config.hook.pytest_collection_modifyitems(
            session=self.session, config=self.config, items=items
        )
        self.session.items = items

    def unknown(self, tests: Sequence[str]) -> List[str]:
        return [test for test in tests if test not in self.items]

    def _loop(self) -> None:
        """As `_pytest.main.wrap_session` does, which cannot be cut in two from outside."""
        config, session = self.config, self.session
        try:
            config.hook.pytest_runtestloop(session=session)
            session.exitstatus = 1 if session.testsfailed else 0
        except session.Failed:
            session.exitstatus = 1
        except (KeyboardInterrupt, self._pytest.exit.Exception):
            info = _current()
            code = getattr(info.value, "returncode", None)
            session.exitstatus = 2 if code is None else code
            config.hook.pytest_keyboard_interrupt(excinfo=info)
        except BaseException:  # noqa: BLE001 - pytest reports it as its internal error
            session.exitstatus = 3
            config.notify_exception(_current(), config.option)

    def _finish(self) -> None:
        config, session = self.config, self.session
        os.chdir(str(config.invocation_params.dir))
        try:
            config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
        except self._pytest.exit.Exception as stop:
            if stop.returncode is not None:
                session.exitstatus = stop.returncode
            sys.stderr.write("%s: %s\n" % (type(stop).__name__, stop))
        config._ensure_unconfigure()
        self.reports.close()

    def _restart_clock(self) -> None:
        """The summary tells how long the trial took, not how long ago the server was started."""
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if hasattr(reporter, "_session_start"):
            reporter._session_start = type(reporter._session_start)()
        elif hasattr(reporter, "_sessionstarttime"):
            reporter._sessionstarttime = time.time()

    def _refusal(self, failure: BaseException) -> Refused:
        kind = type(failure).__name__
        if kind == "UsageError":
            return Refused("pytest-usage", str(failure))
        if kind in ("Interrupted", "CollectError", "ConftestImportFailure"):
            return Refused("collection-fails", "tests cannot be collected: %s" % failure)
        return Refused("warm-start-failed", "pytest ends before a test: %s: %s" % (kind, failure))


def _import_late_ones() -> None:
    """Import now what a plugin would import in every failing trial (hypothesis: 0.2 to 0.7 s)."""
    for plugin, module in (("_hypothesis_pytestplugin", "hypothesis"),):
        if plugin in sys.modules:
            importlib.import_module(module)


def _capture_files(config: Any) -> List[int]:
    """Descriptors of the files that output is captured in; none with `-s` or in memory."""
    capture = config.pluginmanager.getplugin("capturemanager")._global_capturing
    found = []
    for stream in (capture.out, capture.err):
        file: Any = getattr(stream, "tmpfile", None)
        try:
            found.append(file.fileno())
        except (AttributeError, OSError):
            continue  # captured in memory, or not at all
    return found


def _current() -> Any:
    return importlib.import_module("_pytest._code").ExceptionInfo.from_current()


def _import_pytest() -> Any:
    try:
        pytest = importlib.import_module("pytest")
    except ImportError as missing:
        raise Refused("pytest-missing", "pytest cannot be imported: %s" % missing) from missing
    version = tuple(int(part) for part in pytest.__version__.split(".")[:2] if part.isdigit())
    if not OLDEST <= version <= NEWEST:
        raise Refused(
            "pytest-unknown",
            "pytest %s is not one of those that can be driven warm (6 to 9)" % pytest.__version__,
        )
    return pytest

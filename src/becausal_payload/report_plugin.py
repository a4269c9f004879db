"""The pytest plugin of cold runs: leaves `tests-<pid>.jsonl` in the report folder.

PYTEST_DONT_REWRITE: nothing here is worth rewriting, and every run would pay for it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Dict, Generator, Optional

from becausal_payload import imports, process_report, seeds
from becausal_payload.hooks import hookimpl
from becausal_payload.lines import Lines, LinesOfTests
from becausal_payload.test_reports import TestReports, conftest_failure, runner_folders

NAME = "becausal_payload.report_plugin"


class _Session:
    """The state of the one session that reports: the first of the process, never a nested one."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "tests-%d.jsonl" % os.getpid())
        self.pid = os.getpid()
        self.config: Any = None
        self.reports: Optional[TestReports] = None

    def emit(self, record: Dict[str, Any]) -> None:
        if os.getpid() != self.pid:
            # A child that a test forked and that runs on as if it were the session.
            return
        line = json.dumps(record) + "\n"
        with open(self.path, "a", encoding="ascii") as file:
            file.write(line)

    def emit_lines(self, test: str, lines: Lines) -> None:
        self.emit({"lines": {test: lines}})


_session: Optional[_Session] = None


@hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: Any) -> Generator[None, Any, None]:
    global _session
    if _session is None and os.environ.get("BECAUSAL_REPORT"):
        _session = _Session(os.environ["BECAUSAL_REPORT"])
        _session.config = early_config
        _session.emit({"started": True})
    outcome = yield
    error = outcome.excinfo[1] if outcome.excinfo else None
    if error is not None and _is_ours(early_config):
        record = conftest_failure(error, runner_folders())
        if record is not None and _session is not None:
            _session.emit(record)


@hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    """Under xdist only the controller tells; its workers attach what they saw to their reports."""
    if not _is_ours(config) or _session is None:
        return
    worker = hasattr(config, "workerinput")
    _session.reports = TestReports(_silent if worker else _session.emit)
    config.pluginmanager.register(_session.reports, "becausal-test-reports")
    if os.environ.get("BECAUSAL_LINES"):
        roots = imports.given_roots()
        config.pluginmanager.register(LinesOfTests(roots, _session.emit_lines), "becausal-lines")


@hookimpl(tryfirst=True)
def pytest_collection(session: Any) -> None:
    """Tests that start pytest themselves must not report: take the plugin out of their way."""
    if not _is_ours(session.config):
        return
    names = os.environ.get("PYTEST_PLUGINS", "").split(",")
    left = ",".join(name for name in names if name != NAME)
    if left:
        os.environ["PYTEST_PLUGINS"] = left
    else:
        os.environ.pop("PYTEST_PLUGINS", None)


@hookimpl(tryfirst=True)
def pytest_runtestloop(session: Any) -> None:
    """The proof of what ran, before a test can end the process; and the seed of the trial."""
    if not _is_ours(session.config) or _session is None:
        return
    process_report.write(_session.folder)
    seed = os.environ.pop("BECAUSAL_SEED", "")
    if seed:
        seeds.reseed(int(seed))


@hookimpl(trylast=True)
def pytest_sessionfinish(session: Any, exitstatus: Any) -> None:
    if not _is_ours(session.config) or _session is None:
        return
    if _session.reports is not None:
        _session.reports.close()
    process_report.write(_session.folder)
    error = sys.exc_info()[1]
    if int(exitstatus) == 4 and error is not None:
        _session.emit({"usage": str(error)})
    elif not hasattr(session.config, "workerinput"):
        _session.emit({"collected": session.testscollected})


def _is_ours(config: Any) -> bool:
    return _session is not None and _session.config is config


def _silent(record: Dict[str, Any]) -> None:
    """A worker of xdist has nobody to tell."""

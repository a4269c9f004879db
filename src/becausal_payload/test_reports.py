"""What each test did, as pytest tells it; one record a test, warm and cold alike."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Callable, Dict, Generator, List, Optional, Set, Tuple

from becausal_payload import raised
from becausal_payload.hooks import hookimpl

TEXT_BYTES = 1 << 16
_RAISED = "becausal_raised"

Record = Dict[str, Any]
# In rising order: what happened in one phase of a test gives way to a later entry.
_ORDER = ("passed", "skipped", "xpassed", "xfailed", "error", "failed")


class TestReports:
    """A pytest plugin that tells `emit` one record for each test, and each failed collection."""

    __test__ = False

    def __init__(self, emit: Callable[[Record], None]) -> None:
        self._emit = emit
        self._open: Dict[Tuple[str, str], Record] = {}
        self._given_up: Set[Tuple[str, str]] = set()
        self._runner = runner_folders()

    @hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        if report.outcome == "failed" and call.excinfo is not None:
            # On the report, as plain data: under xdist it travels from worker to controller so.
            setattr(report, _RAISED, self._describe(call.excinfo.value))

    @hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        call = getattr(report, "call", None)
        if report.outcome == "failed" and call is not None and call.excinfo is not None:
            setattr(report, _RAISED, self._describe(call.excinfo.value))

    @hookimpl(trylast=True)
    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._emit(_record(report.nodeid or ".", "error", 0.0, report))

    @hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        worker = getattr(getattr(report, "node", None), "gateway", None)
        key = (report.nodeid, str(getattr(worker, "id", "")))
        if report.outcome == "rerun":
            self._open.pop(key, None)
            self._given_up.add(key)
        elif report.when == "setup":
            self._given_up.discard(key)
        if key in self._given_up:
            return  # an attempt that another one stands in for
        record = _record(report.nodeid, _outcome(report), report.duration, report)
        before = self._open.get(key)
        if before is not None:
            record = _worse(before, record)
        self._open[key] = record
        if report.when == "teardown":
            self._emit(self._open.pop(key))

    @hookimpl(trylast=True)
    def pytest_internalerror(self, excrepr: Any, excinfo: Any) -> None:
        self._emit(
            {
                "id": "pytest: internal error",
                "outcome": "error",
                "seconds": 0.0,
                "raised": self._describe(excinfo.value),
                "text": _capped(str(excrepr)),
            }
        )

    def close(self) -> None:
        """Tell of tests whose end never came: a worker that died, a run that was cut short."""
        for key in sorted(self._open):
            self._emit(self._open.pop(key))

    def _describe(self, error: BaseException) -> Record:
        cause = error.__cause__
        if type(error).__name__ == "CollectError" and cause is not None:
            error = cause
        return raised.describe(error, skip=self._runner)


def conftest_failure(error: BaseException, runner: List[str]) -> Optional[Record]:
    """A conftest that could not be imported, as the failed collection that it is."""
    if type(error).__name__ != "ConftestImportFailure":
        return None
    excinfo = getattr(error, "excinfo", None)
    cause = getattr(error, "cause", None) or (excinfo[1] if excinfo else None)
    record = raised.describe(cause if cause is not None else error, skip=runner)
    path = str(getattr(error, "path", "conftest.py"))
    return {"id": path, "outcome": "error", "seconds": 0.0, "raised": record, "text": str(error)}


def _outcome(report: Any) -> str:
    if hasattr(report, "wasxfail") and report.outcome in ("skipped", "passed"):
        return "xfailed" if report.outcome == "skipped" else "xpassed"
    if report.outcome == "failed" and report.when != "call":
        return "error"
    return str(report.outcome)


def _worse(before: Record, after: Record) -> Record:
    """Two phases of one test as one record; the first failure stays."""
    kept, other = before, after
    if _ORDER.index(after["outcome"]) > _ORDER.index(before["outcome"]):
        kept, other = after, before
    return dict(kept, seconds=kept["seconds"] + other["seconds"])


def _record(test: str, outcome: str, seconds: float, report: Any) -> Record:
    failed = outcome in ("failed", "error")
    return {
        "id": test,
        "outcome": outcome,
        "seconds": seconds,
        "raised": getattr(report, _RAISED, None) if failed else None,
        "text": _capped(report.longreprtext) if failed else "",
    }


def _capped(text: str) -> str:
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= TEXT_BYTES:
        return data.decode("utf-8")
    half = TEXT_BYTES // 2
    return "%s\n[... %d bytes left out ...]\n%s" % (
        data[:half].decode("utf-8", "ignore"),
        len(data) - 2 * half,
        data[-half:].decode("utf-8", "ignore"),
    )


def runner_folders() -> List[str]:
    """Folders of the runner itself, whose frames lead to every test."""
    folders = []
    for name in ("_pytest", "pluggy"):
        module = sys.modules.get(name) or importlib.import_module(name)
        if module.__file__ is not None:
            folders.append(os.path.dirname(os.path.abspath(module.__file__)) + os.sep)
    return folders

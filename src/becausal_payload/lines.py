"""Which lines each test runs: by sys.monitoring, or by a tracer that gives up early."""

from __future__ import annotations

import dis
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Generator, List, Optional, Sequence, Set

from becausal_payload.hooks import hookimpl

Lines = Dict[str, List[int]]


class LinesOfTests:
    """A pytest plugin that tells `emit` the lines of each test: set-up, call and tear-down."""

    def __init__(self, roots: Sequence[str], emit: Callable[[str, Lines], None]) -> None:
        self._recorder = recorder(roots)
        self._emit = emit

    @hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, None, None]:
        self._recorder.start()
        yield
        self._emit(item.nodeid, self._recorder.stop())


def recorder(roots: Sequence[str]) -> "Recorder":
    if hasattr(sys, "monitoring"):
        return MonitoringRecorder(roots)
    return TracingRecorder(roots)


class Recorder:
    """Collects lines of files under the roots between `start` and `stop`."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(root.rstrip("/") + "/" for root in roots)
        self._seen: Dict[CodeType, Set[int]] = {}

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> Lines:
        raise NotImplementedError

    def _wanted(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self._roots)

    def _taken(self) -> Lines:
        files: Dict[str, Set[int]] = {}
        for code, lines in self._seen.items():
            files.setdefault(code.co_filename, set()).update(lines)
        self._seen = {}
        return {name: sorted(lines) for name, lines in files.items() if lines}


class MonitoringRecorder(Recorder):
    """Each line costs once a test: its event is switched off as soon as it has been seen."""

    def __init__(self, roots: Sequence[str]) -> None:
        super().__init__(roots)
        self._monitoring: Any = getattr(sys, "monitoring")  # noqa: B009 - Pythons before 3.12
        free = [tool for tool in (3, 4, 1, 2, 0) if self._monitoring.get_tool(tool) is None]
        self._tool = free[0]
        self._monitoring.use_tool_id(self._tool, "becausal")

    def start(self) -> None:
        events = self._monitoring.events
        self._monitoring.register_callback(self._tool, events.PY_START, self._started)
        self._monitoring.register_callback(self._tool, events.LINE, self._line)
        self._monitoring.set_events(self._tool, events.PY_START)
        self._monitoring.restart_events()

    def stop(self) -> Lines:
        self._monitoring.set_events(self._tool, 0)
        for event in (self._monitoring.events.PY_START, self._monitoring.events.LINE):
            self._monitoring.register_callback(self._tool, event, None)
        return self._taken()

    def _started(self, code: CodeType, offset: int) -> Any:
        if self._wanted(code):
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        self._seen.setdefault(code, set()).add(line)
        return self._monitoring.DISABLE


class TracingRecorder(Recorder):
    """Follows a function only until all its lines were seen; other files are never followed."""

    def __init__(self, roots: Sequence[str]) -> None:
        super().__init__(roots)
        self._all: Dict[CodeType, Set[int]] = {}
        self._before: Any = None

    def start(self) -> None:
        self._before = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> Lines:
        sys.settrace(self._before)
        threading.settrace(self._before)
        return self._taken()

    def _call(self, frame: FrameType, event: str, argument: object) -> Optional[Any]:
        code = frame.f_code
        if not self._wanted(code) or self._exhausted(code):
            return None
        self._seen.setdefault(code, set())
        return self._step

    def _step(self, frame: FrameType, event: str, argument: object) -> Optional[Any]:
        if event == "line":
            self._seen.setdefault(frame.f_code, set()).add(frame.f_lineno)
        return self._step

    def _exhausted(self, code: CodeType) -> bool:
        seen = self._seen.get(code)
        if seen is None:
            return False
        if code not in self._all:
            lines = {line for _, line in dis.findlinestarts(code) if line is not None}
            # The line of the `def` starts the code of a function without ever being run.
            self._all[code] = lines - {code.co_firstlineno}
        return seen >= self._all[code]

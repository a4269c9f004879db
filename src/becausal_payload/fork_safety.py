"""Whether a process may be forked for trials after its imports, and if not, in whose words why."""

from __future__ import annotations

import gc
import os
import stat
import sys
import threading
from typing import List, Optional, Sequence, Tuple

from becausal_payload.streams import open_descriptors

# Libraries whose worker threads are known to survive a fork: they start them anew in the child.
_BLAS = ("openblas", "libmkl", "libblis", "libarmpl", "accelerate")
# Modules that break, hang or misbehave in a forked child once imported, whatever threads they have.
_UNSAFE = (
    ("grpc._cython.cygrpc", "grpc"),
    ("tensorflow", "tensorflow"),
    ("jaxlib", "jax"),
    ("cupy", "cupy"),
    ("pycuda.driver", "pycuda"),
)


def find_objection(own_fds: Sequence[int]) -> Optional[Tuple[str, str, str]]:
    """The first reason not to fork, as (slug, what, hint); None when there is none."""
    for check in (_threads, _modules, _children, _loops):
        found = check()
        if found is not None:
            return found
    return _connections(own_fds)


def native_threads() -> int:
    """Threads that Python does not know: the allowed ones, once `find_objection` found nothing."""
    return len(_task_ids()) - len(sys._current_frames())


def _threads() -> Optional[Tuple[str, str, str]]:
    tasks = _task_ids()
    if len(tasks) == 1:
        return None
    known = [t for t in threading.enumerate() if t is not threading.main_thread()]
    if known:
        names = ", ".join(sorted(t.name for t in known)[:5])
        return (
            "threads-at-import",
            "conftest, a plugin or a test module starts threads at import: %s" % names,
            "start them in a fixture to let trials run warm",
        )
    frames = len(sys._current_frames())
    if frames > 1:
        return (
            "threads-at-import",
            "%d unnamed threads were started at import" % (frames - 1),
            "start them in a fixture to let trials run warm",
        )
    if _mapped(_BLAS):
        return None
    comms = ", ".join(sorted({_comm(task) for task in tasks}))
    return (
        "threads-at-import",
        "a native library starts threads at import: %d of %s" % (len(tasks) - 1, comms),
        "",
    )


def _modules() -> Optional[Tuple[str, str, str]]:
    for module, name in _UNSAFE:
        if module in sys.modules:
            return ("fork-unsafe-module", "%s is imported, which does not bear a fork" % name, "")
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and cuda.is_initialized():
        return ("fork-unsafe-module", "CUDA is in use after import, which does not bear a fork", "")
    return None


def _children() -> Optional[Tuple[str, str, str]]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return (
        "children-at-import",
        "conftest, a plugin or a test module leaves child processes running at import",
        "start them in a fixture to let trials run warm",
    )


def _loops() -> Optional[Tuple[str, str, str]]:
    """An event loop made at import holds a selector, and trials would share its registrations."""
    events = sys.modules.get("asyncio.base_events")
    if events is None:
        return None
    for thing in gc.get_objects():
        if issubclass(type(thing), events.BaseEventLoop) and not thing.is_closed():
            state = "running" if thing.is_running() else "open"
            return (
                "event-loop-at-import",
                "an event loop is %s after import; forked trials would share it" % state,
                "make it in a fixture or in the test to let trials run warm",
            )
    return None


def _connections(own_fds: Sequence[int]) -> Optional[Tuple[str, str, str]]:
    """A socket opened at import would be shared by all trials: one would read another's answers."""
    for fd in open_descriptors():
        if fd > 2 and fd not in own_fds and stat.S_ISSOCK(os.fstat(fd).st_mode):
            return (
                "connection-at-import",
                "conftest, a plugin or a test module opens a socket at import",
                "open it in a fixture to let trials run warm",
            )
    return None


def _task_ids() -> "set[int]":
    return {int(name) for name in os.listdir("/proc/self/task")}


def _comm(task: int) -> str:
    try:
        with open("/proc/self/task/%d/comm" % task) as file:
            return file.read().strip()
    except OSError:
        return "?"  # it ended while we looked


def _mapped(names: Sequence[str]) -> List[str]:
    with open("/proc/self/maps") as file:
        maps = file.read().lower()
    return [name for name in names if name in maps]

"""The cold server: starts any program, each in a kept trial.

Started as `python -I -S …/becausal_payload/spawner.py FD`: alone, quick, and untouched by the
environment of the program under study.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Dict, List, NoReturn, Optional

if __name__ == "__main__":  # isolated mode leaves the payload home off the path
    sys.path[0:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]

from becausal_payload import isolation, keeper, wire

REPORT = "BECAUSAL_REPORT"
_REPORT_LIMIT = 32 << 20


def serve(fd: int) -> None:
    """Answer orders until the other side closes."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            _keep_from_programs(int(name))
    without = os.environ.get("BECAUSAL_WITHOUT", "").split()
    means = isolation.means(without)
    wire.send(fd, {"ready": {"pid": os.getpid(), "means": _tell(means)}})
    while True:
        message = wire.receive(fd)
        if message is None:
            keeper.end_everything()
            return
        order = message.get("run")
        if order is not None:
            order.setdefault("without", without)
            wire.send(fd, {"ran": run(order, fd)})


def _keep_from_programs(fd: int) -> None:
    """Our socket and a workspace's lock are ours to hold, not a program's."""
    try:
        os.set_inheritable(fd, False)
    except OSError:
        return  # the listing's own descriptor, closed again


def run(order: Dict[str, Any], fd: int) -> Dict[str, Any]:
    """One trial of a program; what its Python processes reported is gathered into the side."""
    ready = _obstacle_before(order)
    if ready is not None:
        return keeper.obstacle(**ready)
    result = keeper.run_kept(order, lambda side: _execute(order, side), fd)
    words = wire.as_bytes(result["side_b64"])
    if words and not result["obstacle"]:
        result["obstacle"] = json.loads(words.decode())
    result["side_b64"] = wire.as_text(json.dumps(gather(order)).encode())
    return result


def gather(order: Dict[str, Any]) -> Dict[str, List[Any]]:
    """The reports that processes of the trial left in its report folder."""
    found: Dict[str, List[Any]] = {"processes": [], "tests": [], "unread": []}
    folder = order["env"].get(REPORT)
    if not folder or not os.path.isdir(folder):
        return found
    room = _REPORT_LIMIT
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                data = file.read(room + 1)
            room -= len(data)
            if room < 0:
                raise ValueError("the reports of this trial are too large")
            if name.startswith("process-"):
                found["processes"].append(json.loads(data.decode()))
            elif name.startswith("tests-"):
                found["tests"].extend(_whole_lines(data))
        except (OSError, ValueError) as failure:
            found["unread"].append("%s: %s" % (name, failure))
    return found


def _whole_lines(data: bytes) -> List[Any]:
    """A process killed while writing leaves half a line, which is left out."""
    return [json.loads(line.decode()) for line in data.split(b"\n")[:-1] if line]


def _obstacle_before(order: Dict[str, Any]) -> Optional[Dict[str, str]]:
    argv = order.get("argv")
    if not argv:
        return {"slug": "command-missing", "what": "there is no command to run", "hint": ""}
    folder = order["env"].get(REPORT)
    if folder:
        os.makedirs(folder, exist_ok=True)
    return None


def _execute(order: Dict[str, Any], side: int) -> NoReturn:
    """Become the program. Whatever stands in the way is told through the side pipe."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores these, programs do not
    argv, env = order["argv"], order["env"]
    name = argv[0]
    refused: Optional[OSError] = None
    for path in _places(name, env.get("PATH", os.defpath)):
        try:
            os.execve(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refused = refused or error
    wire.write_all(side, json.dumps(_refusal(name, refused)).encode())
    os._exit(127)


def _places(name: str, path: str) -> List[str]:
    if "/" in name:
        return [name]
    return [os.path.join(folder or ".", name) for folder in path.split(os.pathsep)]


def _refusal(name: str, refused: Optional[OSError]) -> Dict[str, str]:
    if refused is None:
        return {
            "slug": "command-missing",
            "what": "there is no command %s" % name,
            "hint": "check the spelling, the folder it is run in and PATH",
        }
    hint = "make it executable and give it a first line such as #!/bin/sh, or name its interpreter"
    what = "the command %s cannot be executed: %s" % (name, refused.strerror)
    return {"slug": "command-not-executable", "what": what, "hint": hint}


def _tell(means: isolation.Means) -> Dict[str, Any]:
    return {
        isolation.PID_NAMESPACE: means.pids,
        isolation.OVERLAY: bool(means.overlay),
        "reasons": means.reasons,
    }


if __name__ == "__main__":
    serve(int(sys.argv[1]))

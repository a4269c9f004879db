"""The warm server: imports and collects once, then forks one trial per order.

Started by path with the interpreter and flags of the command under study:
`python … <payload home>/becausal_payload/warm.py FD`. The first frame on FD says what to collect;
the answer is `ready` or `refused`; every further frame is the order of one trial.
"""

from __future__ import annotations

import os
import sys


def _import_payload() -> None:
    """Make `becausal_payload` importable without leaving a trace on sys.path."""
    here = os.path.dirname(os.path.abspath(__file__))
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        del sys.path[0]  # the folder of this script: not what pytest would have there
    home = os.path.dirname(here)
    sys.path.insert(0, home)
    import becausal_payload.warm_server  # noqa: F401

    sys.path.remove(home)


if __name__ == "__main__":
    _import_payload()
    from becausal_payload.warm_server import serve

    serve(int(sys.argv[1]))

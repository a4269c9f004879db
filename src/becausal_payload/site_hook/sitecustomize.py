"""Found first on PYTHONPATH by every Python process of a trial; must change nothing it can see.

Written for any Python, 2 included: programs under study start whatever interpreter they like.
It chains to the program's own sitecustomize, takes its own folder off sys.path again (the package
`becausal_payload` stays importable), and asks for a report at exit.
"""

import os
import sys


def _here():
    # type: () -> str
    return os.path.dirname(os.path.abspath(__file__))


def _hide():
    # type: () -> None
    home = os.path.realpath(_here())
    sys.path[:] = [p for p in sys.path if not p or os.path.realpath(p) != home]


def _prepare():
    # type: () -> None
    report = os.environ.get("BECAUSAL_REPORT")
    if sys.version_info < (3, 8):
        # pytest imports what PYTEST_PLUGINS names; an old one gets an empty plugin.
        kind = type(sys)
        package = kind("becausal_payload", "PYTEST_DONT_REWRITE")
        package.__path__ = []
        plugin = kind("becausal_payload.report_plugin", "PYTEST_DONT_REWRITE")
        package.report_plugin = plugin
        sys.modules["becausal_payload"] = package
        sys.modules["becausal_payload.report_plugin"] = plugin
        return
    import becausal_payload

    if report:
        import atexit

        try:
            start = os.getcwd()
        except OSError:
            start = ""  # the folder is gone already; relative names mean nothing then
        atexit.register(_at_exit, report, start, becausal_payload.__name__)


def _at_exit(report, start, package):
    # type: (str, str, str) -> None
    from importlib import import_module

    import_module(package + ".process_report").at_exit(report, start)


def _chain():
    # type: () -> None
    """Import the sitecustomize that would have been found without ours."""
    ours = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError as missing:
        # Python 2 has the name in the message only: "No module named sitecustomize".
        name = getattr(missing, "name", None) or str(missing).split()[-1]
        if name != "sitecustomize":
            raise
        # None of its own: a program that asks finds none, as without us.
        sys.modules.pop("sitecustomize", None)
    # site's `import sitecustomize` looks for the module it started when it returns.
    sys.modules.setdefault("sitecustomize", ours)


_prepare()
_hide()
_chain()

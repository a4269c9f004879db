"""The payload is at home in a stranger's program: standard library only, down to Python 3.8."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from house.tree import Module, Tree, imported

OLDEST = (3, 8)
# In the standard library of some of the versions that the payload has to run on, not of all.
COMES_OR_GOES = {
    *("graphlib", "tomllib", "zoneinfo"),
    *("asynchat", "asyncore", "binhex", "cgi", "cgitb", "chunk", "crypt", "distutils", "formatter"),
    *("imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "parser"),
    *("pipes", "smtpd", "sndhdr", "spwd", "sunau", "symbol", "telnetlib", "uu", "xdrlib"),
}
# The program's own test runner, asked for only where the program uses it already, and the
# program's own start-up hook, which ours hands over to.
HOSTS = {"pytest", "_pytest", "sitecustomize"}
AT_HOME = (sys.stdlib_module_names - COMES_OR_GOES) | HOSTS | {"becausal_payload"}


def offences(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.within("becausal_payload"):
            yield from _strangers(module)
            yield from _too_new(module)


def _strangers(module: Module) -> Iterator[str]:
    for statement, name in imported(module.syntax):
        package = name.partition(".")[0]
        if package not in AT_HOME:
            yield (
                f"{module.path}:{statement.lineno}: imports {package}, which is not in the"
                " standard library of every Python that the payload serves"
            )


def _too_new(module: Module) -> Iterator[str]:
    try:
        ast.parse(module.text, module.path, feature_version=OLDEST)
    except SyntaxError as error:
        yield f"{module.path}:{error.lineno}: not the grammar of Python 3.8: {error.msg}"

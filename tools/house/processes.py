"""Only the lab starts processes, through whichever door of the standard library.

The import contract forbids the modules made for it; `os` and `asyncio` have doors of their own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from house.tree import Tree, imported

STARTERS = re.compile(
    r"(os|posix)\.(fork|forkpty|system|popen|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?)"
    r"|asyncio\.(subprocess\.)?create_subprocess_(exec|shell)"
)


def offences(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if module.within("becausal/lab", "becausal_payload"):
            continue
        for line, name in _named(module.syntax):
            if STARTERS.fullmatch(name):
                yield f"{module.path}:{line}: {name} starts a process, which only lab does"


def _named(syntax: ast.Module) -> Iterator[tuple[int, str]]:
    for statement, name in imported(syntax):
        yield statement.lineno, name
    for node in ast.walk(syntax):
        if isinstance(node, ast.Attribute):
            yield node.lineno, ast.unparse(node)

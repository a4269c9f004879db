"""Modules and functions stay small enough to hold in the head."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from house.tree import Tree

MODULE_LINES = 300
FUNCTION_LINES = 60


def offences(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        lines = len(module.text.splitlines())
        if lines > MODULE_LINES:
            yield f"{module.path}: {lines} lines, at most {MODULE_LINES} are held in the head"
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    yield (
                        f"{module.path}:{node.lineno}: {node.name} has {length} lines,"
                        f" at most {FUNCTION_LINES}"
                    )

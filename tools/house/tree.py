"""The repository as the rules see it: parsed modules, and documents."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class Module:
    """A source file; `path` is relative to the top."""

    path: str
    text: str
    syntax: ast.Module

    def within(self, *folders: str) -> bool:
        return any(self.path.startswith(f"src/{folder}/") for folder in folders)


@dataclass(frozen=True)
class Tree:
    top: Path

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        return tuple(self._parsed())

    def _parsed(self) -> Iterator[Module]:
        for file in sorted((self.top / "src").rglob("*.py")):
            path = file.relative_to(self.top).as_posix()
            text = file.read_text(encoding="utf-8")
            yield Module(path, text, ast.parse(text, path))

    def document(self, path: str) -> str:
        return (self.top / path).read_text(encoding="utf-8")


def imported(syntax: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Every absolute import with the dotted name it asks for, lazy ones included."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}"

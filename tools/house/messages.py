"""Every slug that src can say is explained in docs/messages.md, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from house.tree import Module, Tree

PAGE = "docs/messages.md"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def offences(tree: Tree) -> Iterator[str]:
    sections = _sections(tree.document(PAGE))
    titles = [title for title, _ in sections]
    for before, after in pairwise(titles):
        if before >= after:
            yield f"{PAGE}: `{after}` belongs before `{before}`: sections stand in order, once each"
    for title, text in sections:
        if not SLUG.fullmatch(title):
            yield f"{PAGE}: `{title}` is no slug"
        if not text.strip():
            yield f"{PAGE}: `{title}` is not explained"
    takers = _takers(tree)
    for module in tree.modules:
        for line, slug in _said(module, takers):
            if slug not in titles:
                yield f"{module.path}:{line}: slug `{slug}` is not explained in {PAGE}"
    known = {
        node.value
        for module in tree.modules
        for node in ast.walk(module.syntax)
        if isinstance(node, ast.Constant)
    }
    for title in titles:
        if title not in known:
            yield f"{PAGE}: nothing in src says `{title}`"


def _sections(page: str) -> list[tuple[str, str]]:
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    return [(t.strip().strip("`"), text) for t, text in zip(parts[::2], parts[1::2], strict=True)]


def _takers(tree: Tree) -> dict[str, int]:
    """Names that are called with a slug, and its place among the arguments."""
    takers: dict[str, int] = {}
    bases: dict[str, list[str]] = {}
    for module in tree.modules:
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [_last_name(base) for base in node.bases]
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                        takers.update(_place(node.name, part))
            elif isinstance(node, ast.FunctionDef) and node.name != "__init__":
                takers.update(_place(node.name, node))
    while heirs := {
        name: takers[base]
        for name, over in bases.items()
        for base in over
        if base in takers and name not in takers
    }:
        takers.update(heirs)
    return takers


def _place(name: str, function: ast.FunctionDef) -> dict[str, int]:
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    if "slug" not in names:
        return {}
    return {name: names.index("slug") - (names[0] in ("self", "cls"))}


def _said(module: Module, takers: dict[str, int]) -> Iterator[tuple[int, str]]:
    """Slugs written down where one is taken. What is only passed on was written elsewhere."""
    constants = {
        target.id: node.value
        for node in module.syntax.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module.syntax):
        for value in _slug_values(node, takers):
            if isinstance(value, ast.Name):
                value = constants.get(value.id, value)
            options = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
            for option in options:
                if isinstance(option, ast.Constant) and isinstance(option.value, str):
                    yield option.lineno, option.value


def _slug_values(node: ast.AST, takers: dict[str, int]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        place = takers.get(_last_name(node.func))
        if place is not None and place < len(node.args):
            yield node.args[place]
        yield from (k.value for k in node.keywords if k.arg == "slug")
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "slug":
                yield value


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

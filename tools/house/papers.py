"""What is written down agrees with what is there: glossary, decisions, changelog."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from house.tree import Module, Tree

GLOSSARY = "docs/glossary.md"
DECISIONS = "docs/decisions"
ROW = re.compile(r"^\| \*\*(?P<word>[^*]+)\*\* \|.*\|(?P<where>[^|]*)\|$", re.MULTILINE)


def offences(tree: Tree) -> Iterator[str]:
    yield from _glossary(tree)
    yield from _decisions(tree)
    if not re.search(r"^## \[?Unreleased\]?$", tree.document("CHANGELOG.md"), re.MULTILINE):
        yield "CHANGELOG.md: there is no section `Unreleased`"


def _glossary(tree: Tree) -> Iterator[str]:
    """A capitalised word names a class; the last column says in which file of src/becausal."""
    classes = {module.path: _defined(module) for module in tree.modules}
    rows = list(ROW.finditer(tree.document(GLOSSARY)))
    if not rows:
        yield f"{GLOSSARY}: no word is explained"
    for row in rows:
        word, where = row["word"].strip(), row["where"].strip().strip("`")
        name = "".join(part[:1].upper() + part[1:] for part in word.split())
        if not word[0].isupper():
            continue
        if where and name not in classes.get(f"src/becausal/{where}", ()):
            yield f"{GLOSSARY}: `{word}` says there is a {name} in {where}, and there is not"
        if not where and (homes := [path for path, names in classes.items() if name in names]):
            yield f"{GLOSSARY}: `{word}` does not say that it is in {homes[0]}"


def _defined(module: Module) -> set[str]:
    names = {n.name for n in module.syntax.body if isinstance(n, ast.ClassDef)}
    for node in module.syntax.body:
        if isinstance(node, ast.Assign):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return names


def _decisions(tree: Tree) -> Iterator[str]:
    index = tree.document(f"{DECISIONS}/README.md")
    for file in sorted((tree.top / DECISIONS).glob("[0-9]*.md")):
        if f"({file.name})" not in index:
            yield f"{DECISIONS}/README.md: {file.name} is not listed"

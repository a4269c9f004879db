"""The tree a workspace gets: the source's, with the content of inner repositories filled in."""

from __future__ import annotations

import secrets
from pathlib import Path

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.lab.capture import GITLINK, shown
from becausal.lab.git import Git, split_z
from becausal.lab.home import Home
from becausal.lab.manifest import Carried, Manifest, source_gone


def whole_tree(git: Git, home: Home, source: Source) -> str:
    """The git tree that a source names; raises `source-gone` when it is not here."""
    name = source.folder or source.tree or source.revision
    if name is None:
        raise CouldNotRun(
            "source-empty", "This source names neither a commit nor a tree.", value=repr(source)
        )
    tree = git.resolve(f"{name}^{{tree}}")
    if tree is None:
        raise source_gone(home, name)
    return tree


def compose(
    git: Git, home: Home, source: Source, manifest: Manifest, scratch: Path
) -> tuple[str, list[str]]:
    """Fill submodules and untracked clones in. Answers the tree, and notes on what is not here."""
    tree = whole_tree(git, home, source)
    modules = [entry for entry in manifest.entries if entry.kind == "module"]
    if not modules:
        return tree, []
    notes: list[str] = []
    index = {"GIT_INDEX_FILE": str(scratch / f"compose-{secrets.token_hex(4)}")}
    git.run("read-tree", tree, env=index)
    for module in modules:  # sorted: an outer one comes before those inside it
        links = _gitlinks(git, index)
        content, note = _content(git, module, links.get(module.path))
        notes += note
        if content is None:
            continue
        path = module.path
        git.run("update-index", "-z", "--force-remove", "--stdin", input=path + b"\0", env=index)
        done = git.try_run("read-tree", f"--prefix={_text(path)}/", content, env=index)
        if done.exit_code != 0:
            notes.append(f"not carried, the tree has this path: {shown(path)}")
    composed = git.run("write-tree", env=index).decode().strip()
    Path(index["GIT_INDEX_FILE"]).unlink()
    return composed, notes


def _content(git: Git, module: Carried, link: str | None) -> tuple[str | None, list[str]]:
    """The tree to put at a module's path, where the outer tree has commit `link` there."""
    if link is None:
        if module.over or not module.what:
            return None, []  # a submodule that this revision does not have
        return module.what, []
    if module.what and module.over == link:
        return module.what, []
    tree = git.resolve(f"{link}^{{tree}}")
    if tree is None:
        return None, [
            f"submodule {shown(module.path)} is left empty: {link[:12]} was never fetched"
        ]
    return tree, []


def _gitlinks(git: Git, index: dict[str, str]) -> dict[bytes, str]:
    found: dict[bytes, str] = {}
    for line in split_z(git.run("ls-files", "-s", "-z", env=index)):
        head, path = line.split(b"\t", 1)
        mode, oid, _stage = head.decode().split(" ")
        if mode == GITLINK:
            found[path] = oid
    return found


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")

"""Captures a work tree as a git tree without the person's repository noticing.

A copy of their index is the starting point, so that only what changed is read; new objects go to
our own object folder. Nothing is ever written below the person's folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from becausal.domain.errors import CouldNotRun
from becausal.lab.git import Git, copy_index, split_z
from becausal.lab.home import Home
from becausal.lab.status import Changes, read_status

GITLINK = "160000"


class Entry(msgspec.Struct, frozen=True):
    """One tracked file: octal mode and object."""

    mode: str
    oid: str


class Module(msgspec.Struct, frozen=True, kw_only=True):
    """A repository inside the repository: submodule, or untracked clone, whose content is
    carried."""

    path: bytes
    commit: str | None
    tree: str


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """A work tree as it was at one moment."""

    tree: str
    entries: dict[bytes, Entry]
    changes: Changes
    modules: tuple[Module, ...] = ()
    notes: tuple[str, ...] = ()


def shown(path: bytes) -> str:
    """A path for people and records: what is not UTF-8 is written as escapes."""
    return path.decode("utf-8", "backslashreplace")


def object_folders(objects: str) -> list[str]:
    """An object folder and, in turn, those it borrows from."""
    found: list[str] = []
    waiting = [os.path.realpath(objects)]
    while waiting:
        folder = waiting.pop(0)
        if folder in found:
            continue
        found.append(folder)
        alternates = Path(folder, "info", "alternates")
        if alternates.is_file():
            lines = os.fsdecode(alternates.read_bytes()).splitlines()
            named = (line for line in lines if line and not line.startswith("#"))
            waiting += [os.path.realpath(os.path.join(folder, line)) for line in named]
    return found


def capture(top: str, home: Home) -> Capture:
    """Capture the work tree at `top` (the person's, or a repository inside it)."""
    git_dir = Path(Git(top).text("rev-parse", "--absolute-git-dir"))
    with home.temporary() as scratch:
        index = scratch / "index"
        _copy_index(git_dir, index, scratch)
        git = Git(top, git_dir=git_dir, objects=home.objects, index=index)
        notes = _show_hidden(git)
        changes = read_status(git)
        skipped = _add(git, changes)
        if skipped:
            names = ", ".join(shown(path) for path in skipped[:5])
            notes.append(f"unreadable untracked files are left out: {names}")
        tree = git.text("write-tree")
        entries = read_entries(git)
    modules: list[Module] = []
    for path in _inner_repositories(top, entries, changes):
        modules += _capture_module(top, path, home)
    if changes.unmerged:
        notes.append("the tree is in the middle of a merge: conflicted files are taken as they are")
    return Capture(
        tree=tree, entries=entries, changes=changes, modules=tuple(modules), notes=tuple(notes)
    )


def read_entries(git: Git) -> dict[bytes, Entry]:
    """What the index of `git` holds."""
    entries: dict[bytes, Entry] = {}
    for line in split_z(git.run("ls-files", "-s", "-z")):
        head, path = line.split(b"\t", 1)
        mode, oid, _stage = head.decode().split(" ")
        entries[path] = Entry(mode, oid)
    return entries


def _copy_index(git_dir: Path, index: Path, scratch: Path) -> None:
    """Copy the person's index. A split one is joined in a git folder of our own: to read it in
    place would touch its shared half."""
    shared = list(git_dir.glob("sharedindex.*"))
    if not (git_dir / "index").exists():
        return
    if not shared:
        copy_index(git_dir / "index", index)
        return
    copy = scratch / "git"
    for folder in ("objects", "refs"):
        (copy / folder).mkdir(parents=True)
    (copy / "HEAD").write_text("ref: refs/heads/none\n")
    for path in (git_dir / "index", *shared):
        copy_index(path, copy / path.name)
    when = (copy / "index").stat().st_mtime_ns
    Git(scratch, git_dir=copy).run("update-index", "--force-write-index")
    os.replace(copy / "index", index)
    os.utime(index, ns=(when, when))


def _show_hidden(git: Git) -> list[str]:
    """Make git look at files that the person told it not to look at: they are in the tree that
    runs."""
    lines = split_z(git.run("ls-files", "-v", "-z"))
    assumed = [line[2:] for line in lines if line[:1].islower()]
    skipped = [line[2:] for line in lines if line[:1] in (b"S", b"s")]
    present = [
        path for path in skipped if os.path.lexists(os.path.join(os.fsencode(git.top), path))
    ]
    for option, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", present)):
        if paths:
            git.run("update-index", "-z", option, "--stdin", input=joined(paths))
    absent = len(skipped) - len(present)
    if not absent:
        return []
    return [
        f"sparse checkout: {absent} files that you do not have checked out are in the workspace"
    ]


def _add(git: Git, changes: Changes) -> list[bytes]:
    """Put the work tree's state of every changed and untracked path into the index."""
    for path in changes.worktree:
        if _unreadable(git.top, path):
            raise CouldNotRun(
                "file-unreadable",
                "A changed file cannot be read, so the tree cannot be captured.",
                value=shown(path),
                hint="Make it readable, or run with `--tree head`.",
            )
    skipped = [path for path in changes.untracked if _unreadable(git.top, path)]
    unread = set(skipped)
    added = [path for path in changes.untracked if path not in unread]
    paths = [*changes.worktree, *added]
    if paths:
        git.run(
            "update-index", "-z", "--add", "--remove", "--replace", "--stdin", input=joined(paths)
        )
    return skipped


def _unreadable(top: str, path: bytes) -> bool:
    full = os.path.join(os.fsencode(top), path)
    try:
        mode = os.lstat(full).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(mode) and not os.access(full, os.R_OK)


def _inner_repositories(top: str, entries: dict[bytes, Entry], changes: Changes) -> Iterable[bytes]:
    """Paths of checked-out submodules and of untracked clones."""
    links = [path for path, entry in entries.items() if entry.mode == GITLINK]
    for path in sorted({*links, *changes.clones}):
        if os.path.lexists(os.path.join(os.fsencode(top), path, b".git")):
            yield path


def _capture_module(top: str, path: bytes, home: Home) -> list[Module]:
    folder = os.path.join(top, os.fsdecode(path))
    git = Git(folder)
    common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
    home.borrow(object_folders(os.path.join(common, "objects")))
    inner = capture(folder, home)
    module = Module(path=path, commit=git.resolve("HEAD"), tree=inner.tree)
    deeper = [
        msgspec.structs.replace(each, path=os.path.join(path, each.path)) for each in inner.modules
    ]
    return [module, *deeper]


def joined(paths: Iterable[bytes]) -> bytes:
    """Paths as `-z --stdin` reads them."""
    return b"".join(path + b"\0" for path in paths)

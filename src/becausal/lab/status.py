"""Reads `git status`: what is changed, untracked and ignored, in one pass over the work tree."""

from __future__ import annotations

import os

import msgspec

from becausal.lab.git import Git, split_z


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """How a work tree differs from its commit. Paths are bytes: git allows any name."""

    staged: tuple[bytes, ...] = ()
    """Index differs from the commit."""
    worktree: tuple[bytes, ...] = ()
    """Work tree differs from the index, conflicts included."""
    untracked: tuple[bytes, ...] = ()
    clones: tuple[bytes, ...] = ()
    """Untracked folders that are repositories of their own."""
    linked: tuple[bytes, ...] = ()
    """Untracked virtual environments and `node_modules`: used in place, no part of the tree."""
    ignored: tuple[bytes, ...] = ()
    """Ignored files, and folders (ending in `/`) that are ignored as a whole."""
    unmerged: bool = False

    @property
    def dirty(self) -> tuple[bytes, ...]:
        """Every path with uncommitted or untracked work, sorted."""
        return tuple(sorted({*self.staged, *self.worktree, *self.untracked, *self.clones}))


def read_status(git: Git) -> Changes:
    """Ask git how the work tree differs, submodules included."""
    output = git.run(
        "status",
        "--porcelain=v2",
        "-z",
        "--no-renames",
        "--untracked-files=all",
        "--ignored=matching",
        "--ignore-submodules=none",
    )
    staged: list[bytes] = []
    worktree: list[bytes] = []
    others: list[bytes] = []
    ignored: list[bytes] = []
    unmerged = False
    for line in split_z(output):
        kind, rest = line[:1], line[2:]
        if kind == b"1":
            path = rest.split(b" ", 7)[7]
            if rest[:1] != b".":
                staged.append(path)
            if rest[1:2] != b".":
                worktree.append(path)
        elif kind == b"u":
            unmerged = True
            worktree.append(rest.split(b" ", 9)[9])
        elif kind == b"?":
            others.append(rest)
        elif kind == b"!":
            ignored.append(rest)
    untracked, clones, linked = _sort_untracked(others)
    return Changes(
        staged=tuple(staged),
        worktree=tuple(worktree),
        untracked=tuple(untracked),
        clones=tuple(clones),
        linked=tuple(linked),
        ignored=tuple(ignored),
        unmerged=unmerged,
    )


def _sort_untracked(paths: list[bytes]) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """Tell work from environments: an untracked virtual environment is nobody's uncommitted
    work."""
    roots = {os.path.dirname(path) for path in paths if os.path.basename(path) == b"pyvenv.cfg"}
    untracked: list[bytes] = []
    clones: list[bytes] = []
    linked: set[bytes] = set()
    for path in paths:
        parts = path.split(b"/")
        above = [b"/".join(parts[:count]) for count in range(1, len(parts))]
        root = next(
            (
                each
                for each in above
                if each in roots or each.rsplit(b"/", 1)[-1] == b"node_modules"
            ),
            None,
        )
        if parts[0] == b".becausal":
            continue
        if root is not None:
            linked.add(root)
        elif path.endswith(b"/"):
            clones.append(path.rstrip(b"/"))
        else:
            untracked.append(path)
    return untracked, clones, sorted(linked)

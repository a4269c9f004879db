"""The person's code under git: opened, captured and read, never changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.domain.identity import bytes_id
from becausal.domain.observation import RecentChange
from becausal.lab.capture import Capture, capture, object_folders, shown
from becausal.lab.carried import Chooser, carried_roots
from becausal.lab.conversion import Conversions
from becausal.lab.folder import PlainFolder
from becausal.lab.git import Git, split_z
from becausal.lab.home import Home
from becausal.lab.manifest import Carried, Manifest, Shelf
from becausal.lab.settings import read_settings
from becausal.ports.repository import Snapshot, TreeChoice

MOST_PATCH = 64 * 1024 * 1024
"""A larger patch is not kept: the tree in the cache still holds the work."""


def open_repository(start: Path, cache: Path) -> GitRepository | PlainFolder:
    """The repository that holds `start`, or the folder itself when there is none."""
    if not start.is_dir():
        raise CouldNotRun("folder-missing", "The folder does not exist.", value=str(start))
    git = Git(start.resolve())
    done = git.try_run("rev-parse", "--is-bare-repository", "--is-inside-work-tree")
    if done.exit_code != 0:
        if b"not a git repository" in done.stderr:
            return PlainFolder(start.resolve(), cache)
        raise CouldNotRun(
            "git-failed", f"git cannot read this repository: {done.complaint()}", value=str(start)
        )
    bare, inside = done.stdout.decode().split()
    if inside == "true":
        return GitRepository(git.text("rev-parse", "--show-toplevel"), cache)
    kind = "bare" if bare == "true" else "the inside of a git folder"
    raise CouldNotRun(
        "repository-bare",
        f"This repository has no work tree here: it is {kind}.",
        value=str(start),
        hint="Run the command in a checkout of it (git clone, or git worktree add).",
    )


class GitRepository:
    """A checkout with a work tree."""

    kind: Literal["git"] = "git"

    def __init__(self, top: str, cache: Path) -> None:
        self._top = top
        self.home = Home(cache, top)
        git = Git(top)
        self.git_dir = Path(git.text("rev-parse", "--absolute-git-dir"))
        common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
        self.common_dir = Path(common)
        self.home.prepare(object_folders(os.path.join(common, "objects")))
        # Even reading may touch a split index, or fetch what a partial clone lacks: so no index is
        # seen, and whatever arrives lands in our object folder.
        self._git = Git(
            top,
            git_dir=self.git_dir,
            objects=self.home.objects,
            index=self.home.scratch / "no-index",
        )

    @property
    def top(self) -> str:
        return self._top

    def snapshot(self, tree: TreeChoice = "worktree") -> Snapshot:
        """Capture the source without touching tree, index, stash, refs or config."""
        revision = self._git.resolve("HEAD")
        if tree == "head" and revision is None:
            raise CouldNotRun(
                "no-commit",
                "There is no commit to run: the branch is still empty.",
                value=self._top,
                hint="Commit first, or run with `--tree worktree`.",
            )
        captured = capture(self._top, self.home)
        fingerprint, carried, notes = self._carry(captured, tree)
        if tree == "head":
            return Snapshot(
                source=Source(revision=revision, carried=fingerprint),
                dirty=tuple(shown(path) for path in captured.changes.dirty),
                carried=carried,
                notes=notes,
            )
        whole = self._git.text("rev-parse", f"{revision}^{{tree}}") if revision else None
        patch = None if captured.tree == whole else _patch(self._git, revision, captured.tree)
        if patch is not None and len(patch) > MOST_PATCH:
            notes = (*notes, f"the uncommitted work is too large to travel ({len(patch)} bytes)")
            patch = None
        return Snapshot(
            source=Source(
                revision=revision,
                tree=None if captured.tree == whole else captured.tree,
                patch=None if patch is None else bytes_id(patch),
                carried=fingerprint,
            ),
            patch=patch,
            dirty=tuple(shown(path) for path in captured.changes.dirty),
            carried=carried,
            notes=notes,
        )

    def recent_changes(self, limit: int = 10) -> tuple[RecentChange, ...]:
        """The last commits, newest first, as the branch tells them."""
        if self._git.resolve("HEAD") is None:
            return ()
        form = "%x1e%H%x00%ct%x00%an%x00%s%x00"
        output = self._git.run(
            "log", f"-{limit}", "-z", "--first-parent", "-m", "--no-renames", "--name-only",
            "--no-color", "--no-show-signature", "--no-ext-diff", f"--format={form}",
        )  # fmt: skip
        return tuple(_recent_change(record) for record in output.split(b"\x1e")[1:])

    def branch(self) -> str:
        """Name of the branch, empty when detached."""
        done = self._git.try_run("symbolic-ref", "--quiet", "--short", "HEAD")
        return os.fsdecode(done.stdout).strip() if done.exit_code == 0 else ""

    def configuration(self) -> dict[str, str]:
        """What git's configuration says here, all levels together."""
        found: dict[str, str] = {}
        for line in split_z(self._git.run("config", "--list", "-z")):
            name, has_value, value = os.fsdecode(line).partition("\n")
            found[name] = value if has_value else "true"
        # Ours, given on the command line, are in that list as well: what a file says counts.
        for setting in self._git.settings:
            found.pop(setting.partition("=")[0].lower(), None)
        return found

    def references(self) -> bytes:
        """Branches, tags and replacements in the form of a `packed-refs` file."""
        lines = [b"# pack-refs with: peeled fully-peeled sorted \n"]
        form = "%(objectname) %(refname)%00%(*objectname)"
        kinds = ("refs/heads", "refs/tags", "refs/remotes", "refs/replace")
        for line in self._git.run("for-each-ref", f"--format={form}", *kinds).splitlines():
            name, peeled = line.split(b"\0")
            if name.endswith(b"/HEAD"):
                continue
            lines.append(name + b"\n" + (b"^" + peeled + b"\n" if peeled else b""))
        return b"".join(lines)

    def information(self, name: str) -> bytes:
        """A file of the git folder shared by all worktrees, empty when there is none."""
        file = self.common_dir / name
        return file.read_bytes() if file.is_file() else b""

    def _carry(
        self, captured: Capture, tree: TreeChoice
    ) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
        """Fingerprint of what is laid over the tree, its ignored paths in short, and notes."""
        shelf = Shelf(self.home)
        chooser = Chooser(self._top, read_settings(self._top))
        changes, tracked = captured.changes, captured.entries
        choice = chooser.choose(changes.ignored, changes.linked, tracked, shelf)
        notes = [*captured.notes, *choice.notes]
        entries = [*choice.entries, *_modules(captured, tree)]
        if tree == "worktree":
            conversions = Conversions(self._top, self.common_dir, self.configuration(), shelf)
            converted = conversions.find(tracked)
            notes += converted.notes
            for path in converted.different:
                entry = chooser.entry(path, shelf)
                if entry is not None:
                    entries.append(msgspec.structs.replace(entry, over=tracked[path].oid))
        fingerprint = shelf.keep(Manifest(entries=tuple(sorted(entries))))
        return fingerprint, carried_roots(entries, tracked), tuple(notes)


def _modules(captured: Capture, tree: TreeChoice) -> list[Carried]:
    """Inner repositories as they are; with the tree of the commit, submodules as it names them."""
    found: list[Carried] = []
    for module in captured.modules:
        link = captured.entries.get(module.path)
        if tree == "worktree":
            over = link.oid if link is not None else ""
            found.append(Carried(path=module.path, kind="module", what=module.tree, over=over))
        elif link is not None:
            found.append(Carried(path=module.path, kind="module"))
    return found


def _patch(git: Git, revision: str | None, tree: str) -> bytes:
    """The uncommitted work as a binary diff that `git apply` understands anywhere."""
    base = revision or git.run("hash-object", "-w", "-t", "tree", "--stdin", input=b"")
    return git.run(
        "diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff",
        "--no-textconv", "--no-color", "-U3", "--submodule=short", "--ignore-submodules=none",
        "--src-prefix=a/", "--dst-prefix=b/",
        base if isinstance(base, str) else base.decode().strip(), tree,
    )  # fmt: skip


def _recent_change(record: bytes) -> RecentChange:
    revision, when, author, summary, *files = record.split(b"\0")
    return RecentChange(
        revision=revision.decode(),
        when=float(when),
        author=shown(author),
        summary=shown(summary),
        files=tuple(shown(path.lstrip(b"\n")) for path in files if path.strip()),
    )

"""One leased workspace: switched from source to source, and put back after a trial."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from types import TracebackType

import msgspec

from becausal.domain.condition import Source
from becausal.domain.errors import BecausalError, CouldNotRun
from becausal.lab.capture import joined, read_entries
from becausal.lab.compose import compose
from becausal.lab.folder import PlainFolder
from becausal.lab.git import Git, copy_index, split_z
from becausal.lab.gitdir import RAW, make_git_dir
from becausal.lab.laying import Layer
from becausal.lab.manifest import Carried, Shelf
from becausal.lab.putback import PutBack, told
from becausal.lab.repository import GitRepository
from becausal.lab.scan import Marks, digest, merged, prune_to, scan, scan_again, settle, stand
from becausal.lab.slot import Slot, State
from becausal.lab.visible_git import VisibleGit


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader must know of a switch, and how long it took."""

    notes: tuple[str, ...] = ()
    seconds: float = 0.0


class Lease:
    """The only right to use one workspace, until it is closed or its holder dies.

    A process that inherits `fence`, the lock's file descriptor, keeps the workspace leased while
    it lives.
    """

    def __init__(self, repository: GitRepository | PlainFolder, slot: Slot, *, bound: bool) -> None:
        self._slot = slot
        self._home = repository.home
        self._shelf = Shelf(self._home)
        self._bound = bound
        self.path = str(slot.workspace)
        self.top = repository.top
        self._top = os.fsencode(self.path)
        self._git = Git(
            self.path, git_dir=slot.control, objects=self._home.objects, keep=(slot.fd,)
        )
        self._layer = Layer(self._top, self.top, self._shelf, bound=bound)
        self._visible: VisibleGit | None = None
        self._laid: dict[bytes, Carried] = {}
        self._marks: Marks | None = None
        self._revision: str | None = None
        self._tree = ""
        self._visible_index = slot.scratch / "visible-index"
        self._build(repository)
        self._recall()

    @property
    def token(self) -> int:
        """Grows with every lease of this workspace: of two that claim it, the larger one holds
        it."""
        return self._slot.token

    @property
    def fence(self) -> int:
        """The file descriptor of the lock."""
        return self._slot.fd

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """(path in the workspace, the person's path) of everything used in place."""
        paths = [os.fsdecode(path) for path, each in self._laid.items() if each.kind == "link"]
        return tuple(
            (os.path.join(self.path, path), os.path.join(self.top, path)) for path in sorted(paths)
        )

    @property
    def objects(self) -> tuple[tuple[str, str], ...]:
        """(link in the cache, real folder) of the object folders that the workspace's `.git`
        reads."""
        return self._home.borrowed()

    def switch(self, source: Source) -> Switched:
        """Make the workspace hold exactly this source."""
        start = time.monotonic()
        self._slot.check()
        manifest = self._shelf.manifest(source.carried)
        tree, notes = compose(self._git, self._home, source, manifest, self._slot.scratch)
        wanted = {entry.path: entry for entry in manifest.entries if entry.kind != "module"}
        if self._marks is not None:
            self.restore()
        known, self._marks = self._marks, None
        changed = self._changes(tree, wanted) if known is not None else set()
        kept = self._keep(wanted) if known is not None else {}
        if not self._read_tree(tree):
            known = None
        tracked: dict[bytes, str] = {}
        if known is None or any(entry.over for entry in wanted.values()):
            tracked = {path: entry.oid for path, entry in read_entries(self._git).items()}
        if known is None:
            prune_to(self._top, tracked)
        kept = {path: entry for path, entry in kept.items() if self._intact(path, known)}
        missing = [entry for path, entry in sorted(wanted.items()) if path not in kept]
        laid, lay_notes = self._layer.lay(missing, tracked)
        self._laid = kept | {entry.path: entry for entry in laid}
        self._revision, self._tree = source.revision, tree
        self._make_visible(source, tree)
        self._marks = self._settled(known, changed)
        return Switched(notes=(*notes, *lay_notes), seconds=time.monotonic() - start)

    def restore(self) -> tuple[str, ...]:
        """Put back what changed since the switch; answers the paths, sorted."""
        self._slot.check()
        if self._marks is None:
            raise CouldNotRun(
                "workspace-empty", "The workspace holds no source yet.", value=self.path
            )
        stand(self._top)
        before, now = self._marks, scan(self._top)
        if now == before:
            return ()
        self._marks = None
        changed = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        PutBack(self._top, before, now, changed).run(
            laid=self._lay_again, tracked=self._check_out, git=self._write_git
        )
        after = self._settled(before, changed)
        if {path: mark[:1] for path, mark in after.items()} != {
            path: mark[:1] for path, mark in before.items()
        }:
            raise CouldNotRun(
                "workspace-busy",
                "The workspace still changes while it is being restored.",
                value=self.path,
                hint="A process that a trial left behind writes to it: end that process.",
            )
        self._marks = after
        return told(before, now, changed)

    def close(self) -> None:
        """Give the workspace back, with a note of what it holds for the next holder."""
        if self._slot.fd < 0:
            return
        if self._marks is not None:
            self._slot.mark(
                State(
                    marks=digest(self._marks),
                    bound=self._bound,
                    tree=self._tree,
                    revision=self._revision,
                    laid=tuple(self._laid.values()),
                )
            )
        self._slot.give_up()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _build(self, repository: GitRepository | PlainFolder) -> None:
        """Make what is missing; locks that a killed git left behind are nobody's, as we hold
        ours."""
        self._slot.workspace.parent.mkdir(parents=True, exist_ok=True)
        stand(self._top)
        self._slot.scratch.mkdir(exist_ok=True)
        for stale in (*self._slot.control.glob("*.lock"), *self._slot.scratch.iterdir()):
            stale.unlink()
        configuration: dict[str, str] = {}
        if isinstance(repository, GitRepository):
            configuration = repository.configuration()
            self._visible = VisibleGit(self.path, repository)
        # Stored bytes are laid out as they are: what filters and line ends make of them on the
        # person's disk is carried, so that no program of the person's runs here.
        make_git_dir(self._slot.control, configuration=configuration, attributes=RAW)

    def _recall(self) -> None:
        """Take over what the last holder left, if nothing was changed since it was sure of it."""
        state = self._slot.state()
        self._slot.mark(None)
        if state is None or state.bound != self._bound:
            return
        marks = scan(self._top)
        if digest(marks) == state.marks:
            self._marks = marks
            self._laid = {entry.path: entry for entry in state.laid}
            self._revision, self._tree = state.revision, state.tree

    def _keep(self, wanted: dict[bytes, Carried]) -> dict[bytes, Carried]:
        """Leave carried files that the next source wants as well, take the others away."""
        kept = {path: each for path, each in self._laid.items() if wanted.get(path) == each}
        self._layer.take_away(each for path, each in self._laid.items() if path not in kept)
        return kept

    def _intact(self, path: bytes, known: Marks | None) -> bool:
        """Whether a carried path is still what it was before the tree was switched."""
        try:
            state = os.lstat(os.path.join(self._top, path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        mark = (known or {}).get(path, ())
        return len(mark) == 1 or mark[3:] == (state.st_ctime_ns, state.st_ino)

    def _read_tree(self, tree: str) -> bool:
        """Switch the tracked files. False when the workspace had to be emptied for it."""
        try:
            self._git.run("read-tree", "-u", "--reset", tree)
        except BecausalError as error:
            if error.slug != "git-failed":
                raise
        else:
            return True
        prune_to(self._top, ())
        (self._slot.control / "index").unlink(missing_ok=True)
        done = self._git.try_run("read-tree", "-u", "--reset", tree)
        if done.exit_code != 0:
            raise CouldNotRun(
                "checkout-failed",
                f"The source cannot be checked out: {done.complaint()}",
                value=tree,
                hint="If objects are missing (a partial clone): git fetch --refetch",
            )
        return False

    def _make_visible(self, source: Source, tree: str) -> None:
        """Write `.git`, its index at the revision: uncommitted work is unstaged there."""
        if self._visible is None:
            return
        self._visible_index.unlink(missing_ok=True)
        if source.revision is not None:
            copy_index(self._slot.control / "index", self._visible_index)
            if self._git.resolve(f"{source.revision}^{{tree}}") != tree:
                env = {"GIT_INDEX_FILE": str(self._visible_index)}
                self._git.run("read-tree", "--reset", source.revision, env=env)
        self._write_git()

    def _write_git(self) -> bool:
        if self._visible is None:
            return False
        self._visible.write(self._revision, self._visible_index)
        return True

    def _lay_again(self, path: bytes) -> bool:
        entry = self._laid.get(path)
        if entry is not None:
            self._layer.put(entry)
        return entry is not None

    def _check_out(self, paths: Iterable[bytes]) -> None:
        self._git.run("checkout-index", "-f", "-u", "-z", "--stdin", input=joined(paths))

    def _changes(self, tree: str, wanted: dict[bytes, Carried]) -> set[bytes]:
        """Every path that a switch to this tree, with these carried entries, may touch."""
        touched = {path for path, each in self._laid.items() if each.over}
        touched.update(path for path in self._laid if self._laid[path] != wanted.get(path))
        touched.update(path for path in wanted if self._laid.get(path) != wanted[path])
        if tree != self._tree:
            output = self._git.run(
                "diff-tree", "-r", "-z", "--name-only", "--no-renames", self._tree, tree
            )
            touched.update(split_z(output))
        return touched | ({b".git"} if self._visible is not None else set())

    def _settled(self, before: Marks | None, changed: set[bytes]) -> Marks:
        """Marks that no later change can resemble; where they are known, only `changed` is looked
        at."""
        fresh = scan(self._top) if before is None else scan_again(self._top, before, changed)
        settle(fresh, self._slot.clock)
        return merged(before or {}, fresh)

"""The stage a trial plays on: a sandbox where bubblewrap works, else this machine as it is."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence

import msgspec

_PROBE_SECONDS = 10.0


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """The folders that a stage is built from."""

    top: str
    """Where the person has the source: what the trial shall see there is the workspace."""
    workspace: str
    links: tuple[str, ...] = ()
    """Paths below the top used in place: virtual environments, node_modules."""
    borrowed: tuple[tuple[str, str], ...] = ()
    """(link, folder): object folders of the person, by the links that the workspace reads."""
    writable: tuple[str, ...] = ()
    """Folders of becausal that trials write to: scratch, bytecode."""
    readable: tuple[str, ...] = ()
    """What a trial must reach even when it lies in a folder that the sandbox makes its own."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server, and what the trial calls the paths."""

    prefix: tuple[str, ...] = ()
    """Put before the argv of a server."""
    top: str
    """Where the trial sees the source."""
    throwaway: tuple[str, ...]
    """Folders whose changes must not outlive a trial."""
    throwaway_too: tuple[str, ...] = ()
    """Those for which that is a comfort: without it they cannot be written, or are private."""
    isolation: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    grounds: Grounds

    @property
    def sandboxed(self) -> bool:
        return bool(self.prefix)

    @property
    def used_in_place(self) -> tuple[str, ...]:
        """Folders below the top that are the person's own: virtual environments."""
        return self.grounds.links

    def inside(self, path: str) -> str:
        """What the trial calls a path of ours: of the person's tree or of the workspace."""
        top = self.grounds.top
        linked = tuple(os.path.join(top, link) for link in self.grounds.links)
        if not self.sandboxed and _below(path + "/", linked) is not None:
            return path  # used in place
        for root in (self.grounds.workspace, top):
            if path == root or path.startswith(root.rstrip("/") + "/"):
                return os.path.normpath(self.top + path[len(root.rstrip("/")) :])
        return path

    def relative(self, path: str) -> str | None:
        """A path the trial named, below the top of the source; None when it is elsewhere."""
        return _below(path, (self.top, os.path.realpath(self.top)))

    def original(self, path: str) -> str | None:
        """A path of the person's own tree that should not have been used, below the top."""
        if self.sandboxed or self.grounds.top == self.grounds.workspace:
            return None
        top = self.grounds.top
        found = _below(path, (top, os.path.realpath(top)))
        linked = any(found == link or _below(found or "", (link,)) for link in self.grounds.links)
        return None if linked or self.relative(path) is not None else found


def _below(path: str, roots: Iterable[str]) -> str | None:
    for root in roots:
        start = root.rstrip("/") + "/"
        if path.startswith(start):
            return path[len(start) :]
    return None


class Bubblewrap(msgspec.Struct, frozen=True, kw_only=True):
    """Whether bubblewrap works here."""

    path: str = ""
    """Empty: it does not."""
    reason: str = ""
    user: bool = False
    """Started by a person who is not root: it needs a user namespace, and is given its capabilities
    there so that keepers can go on to make theirs."""


@functools.cache
def find_bubblewrap(name: str = "bwrap") -> Bubblewrap:
    """Find it by really using it, once per process: being installed is not being allowed."""
    if sys.platform != "linux":
        return Bubblewrap(reason="bubblewrap is for Linux")
    path = shutil.which(name)
    if path is None:
        return Bubblewrap(reason="bubblewrap is not installed")
    reason = ""
    for user in (os.geteuid() != 0, True):
        with tempfile.TemporaryDirectory(prefix="becausal-probe-") as folder:
            found = Bubblewrap(path=path, user=user)
            grounds = Grounds(top=folder, workspace=folder)
            argv = [*_sandbox(found, grounds, network=True), "/bin/sh", "-c", "exit 42"]
            try:
                ran = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=_PROBE_SECONDS,
                    start_new_session=True,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return Bubblewrap(reason=f"bubblewrap does not work here: {error}")
        if ran.returncode == 42:
            return found
        reason = ran.stderr.decode("utf-8", "replace").strip()[-300:]
    return Bubblewrap(reason=f"bubblewrap does not work here: {reason}")


def build_stage(
    grounds: Grounds, *, network: bool = True, bubblewrap: Bubblewrap | None = None
) -> Stage:
    """The best stage there is; `bubblewrap` is found by itself unless it is given."""
    found = find_bubblewrap() if bubblewrap is None else bubblewrap
    if not found.path:
        notes = [f"no sandbox: {found.reason}"]
        if not network:
            notes.append("the network could not be taken away")
        return Stage(
            top=grounds.workspace,
            throwaway=(grounds.workspace,),
            notes=tuple(notes),
            grounds=grounds,
        )
    home = os.path.expanduser("~")
    too = ["/tmp"]
    if home.startswith("/") and home not in ("/", "/tmp", grounds.top) and os.path.isdir(home):
        too.append(home)
    return Stage(
        prefix=tuple(_sandbox(found, grounds, network=network)),
        top=grounds.top,
        throwaway=(grounds.top,),
        throwaway_too=tuple(too),
        isolation=("sandbox",) if network else ("sandbox", "no-network"),
        grounds=grounds,
    )


def _sandbox(found: Bubblewrap, grounds: Grounds, *, network: bool) -> list[str]:
    """The argv of bubblewrap. No `--die-with-parent`: the end of a thread of ours would kill it."""
    argv = [found.path, "--unshare-pid", "--unshare-ipc"]
    if found.user:
        argv += ["--unshare-user"]
    argv += ["--cap-add", "ALL"]
    if not network:
        argv += ["--unshare-net"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in ("/tmp", "/var/tmp"):
        if os.path.isdir(folder) and not os.path.islink(folder):
            argv += ["--perms", "1777", "--tmpfs", folder]
    for path in _hidden_by_private_folders(grounds.readable):
        argv += ["--ro-bind", path, path]
    argv += ["--bind", grounds.workspace, grounds.top]
    if grounds.workspace != grounds.top and os.path.isdir(grounds.workspace):
        argv += _borrowed_objects(grounds)
    for link in grounds.links:
        path = os.path.join(grounds.top, link)
        if os.path.exists(path):
            argv += ["--ro-bind", path, path]
    for folder in grounds.writable:
        argv += ["--bind", folder, folder]
    return [*argv, "--chdir", "/", "--"]


def _borrowed_objects(grounds: Grounds) -> list[str]:
    """Put the person's object folders where the workspace's alternates name them.

    Those names are links into the person's `.git`, which the workspace covers here.
    """
    argv: list[str] = []
    for folder in sorted({os.path.dirname(link) for link, _ in grounds.borrowed}):
        argv += ["--tmpfs", folder]
    for link, folder in grounds.borrowed:
        if os.path.isdir(folder):
            argv += ["--ro-bind", folder, link]
    return argv


def _hidden_by_private_folders(paths: Iterable[str]) -> Sequence[str]:
    """Paths that the sandbox's own /tmp would hide, outermost first, each once."""
    real = sorted({os.path.abspath(path) for path in paths if os.path.lexists(path)}, key=len)
    hidden: list[str] = []
    for path in real:
        private = path.startswith(("/tmp/", "/var/tmp/"))
        if private and not any(path.startswith(outer + "/") for outer in hidden):
            hidden.append(path)
    return hidden

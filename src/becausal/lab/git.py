"""git, run so that it can only do what was asked: no hooks, prompts, daemons or optional writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from becausal.domain.errors import BecausalError, CouldNotRun
from becausal.lab.process import Completed, run_tool

# Whatever a repository's or a person's configuration says, these hold for our calls.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.pager=cat",
    "core.editor=true",
    "core.quotePath=false",
    "core.preloadIndex=true",
    "core.trustctime=true",
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "core.checkStat=default",
    "index.sparse=false",
    "index.threads=true",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "credential.helper=",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
)

_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "LC_ALL": "C",
}


class Git:
    """git in one work tree, or with a git folder, index and object folder of our own."""

    settings = _SETTINGS

    def __init__(
        self,
        top: str | os.PathLike[str],
        *,
        git_dir: Path | None = None,
        objects: Path | None = None,
        index: Path | None = None,
        keep: tuple[int, ...] = (),
    ) -> None:
        self.top = os.fspath(top)
        self._keep = keep
        self._env = dict(_ENVIRONMENT)
        if git_dir is not None:
            self._env |= {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": self.top}
        if objects is not None:
            self._env["GIT_OBJECT_DIRECTORY"] = str(objects)
        if index is not None:
            self._env["GIT_INDEX_FILE"] = str(index)

    def try_run(
        self,
        *arguments: str,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        settings: Iterable[str] = (),
        timeout: float = 600.0,
    ) -> Completed:
        """Run git; a non-zero exit code is an answer."""
        chosen = [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]
        try:
            done = run_tool(
                ["git", *chosen, *arguments],
                cwd=self.top,
                env={**self._env, **(env or {})},
                input=input,
                timeout=timeout,
                keep=self._keep,
            )
        except BecausalError as error:
            if error.slug != "tool-missing":
                raise
            raise CouldNotRun(
                "git-missing",
                "git is not installed.",
                value="git",
                hint="Install git (for example: apt install git), then run the command again.",
            ) from error
        if b"dubious ownership" in done.stderr:
            raise CouldNotRun(
                "git-ownership",
                "git refuses this repository because another user owns it.",
                value=self.top,
                hint=f"If you trust it: git config --global --add safe.directory {self.top}",
            )
        return done

    def run(
        self,
        *arguments: str,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        settings: Iterable[str] = (),
        timeout: float = 600.0,
    ) -> bytes:
        """Run git and answer its output; a non-zero exit code raises `git-failed`."""
        done = self.try_run(*arguments, input=input, env=env, settings=settings, timeout=timeout)
        if done.exit_code != 0 or done.dropped:
            raise self._failure(arguments[0], done)
        return done.stdout

    def text(self, *arguments: str) -> str:
        """One line of output, as a path or name may hold any bytes."""
        return os.fsdecode(self.run(*arguments)).removesuffix("\n")

    def resolve(self, name: str) -> str | None:
        """The object a name stands for, None when there is none."""
        done = self.try_run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        if done.exit_code not in (0, 1):
            raise self._failure("rev-parse", done)
        return done.stdout.decode().strip() if done.exit_code == 0 else None

    def _failure(self, command: str, done: Completed) -> CouldNotRun:
        reason = done.complaint() or f"exit code {done.exit_code}"
        if done.dropped:
            reason = f"it wrote {done.dropped} bytes more than can be kept"
        return CouldNotRun(
            "git-failed",
            f"git {command} failed: {reason}",
            value=self.top,
            hint="Run the same git command by hand in that folder to see what is wrong.",
        )


def split_z(output: bytes) -> list[bytes]:
    """The fields of `-z` output."""
    return output.split(b"\0")[:-1] if output else []


def copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time: files as young as that are read again by git, as their stat may
    lie."""
    with source.open("rb") as file:
        when = os.fstat(file.fileno()).st_mtime_ns
        target.write_bytes(file.read())
    os.utime(target, ns=(when, when))

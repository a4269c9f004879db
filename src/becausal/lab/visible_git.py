"""The `.git` that a program in a workspace sees: its own, so that nothing it does reaches the
person's."""

from __future__ import annotations

import os
from pathlib import Path

from becausal.lab.git import copy_index
from becausal.lab.gitdir import make_git_dir
from becausal.lab.home import write_atomically
from becausal.lab.repository import GitRepository
from becausal.lab.scan import remove


class VisibleGit:
    """Writes and rewrites `.git` of one workspace: the person's branches and tags, a detached
    head, and an index in which uncommitted work is unstaged."""

    def __init__(self, top: str, repository: GitRepository) -> None:
        self._folder = Path(top, ".git")
        self._objects = repository.home.objects
        self._configuration = repository.configuration()
        self._references = repository.references()
        self._exclude = repository.information("info/exclude")
        self._attributes = repository.information("info/attributes")
        self._shallow = repository.information("shallow")
        self._branch = repository.branch() or "main"

    def write(self, revision: str | None, index: Path) -> None:
        """Make `.git` say what it should, whatever it is now."""
        remove(os.fsencode(self._folder))
        make_git_dir(
            self._folder,
            objects=self._objects,
            configuration=self._configuration,
            attributes=self._attributes,
            exclude=self._exclude,
        )
        head = f"ref: refs/heads/{self._branch}\n" if revision is None else f"{revision}\n"
        write_atomically(self._folder / "HEAD", os.fsencode(head))
        write_atomically(self._folder / "packed-refs", self._references)
        if self._shallow:
            write_atomically(self._folder / "shallow", self._shallow)
        if index.exists():
            copy_index(index, self._folder / "index")

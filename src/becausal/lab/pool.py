"""The pool of workspaces of one repository."""

from __future__ import annotations

import os
from pathlib import Path

from becausal.lab.folder import PlainFolder
from becausal.lab.home import Home
from becausal.lab.repository import GitRepository
from becausal.lab.slot import Slot
from becausal.lab.workspace import Lease


class Pool:
    """Workspaces in the cache: leased to one holder at a time, made when all are held.

    `bound`: the workspace will be shown at the person's path, so that what is used in place gets a
    place to bind onto instead of a link.
    """

    def __init__(
        self, repository: GitRepository | PlainFolder, cache: Path, *, bound: bool = False
    ) -> None:
        self._repository = repository
        self._slots = Home(cache, repository.top).slots
        self._bound = bound

    def lease(self) -> Lease:
        """Lease a free workspace, or a new one."""
        name = os.path.basename(self._repository.top) or "root"
        number = 0
        while True:
            slot = Slot.take(self._slots / str(number), name)
            if slot is not None:
                try:
                    return Lease(self._repository, slot, bound=self._bound)
                except BaseException:
                    slot.give_up()
                    raise
            number += 1

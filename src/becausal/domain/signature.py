"""Failure signatures: which failure it is, whatever line, address, path, id or time it showed."""

from __future__ import annotations

import msgspec

from becausal.domain.identity import content_id


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """Names a failure: two runs with equal signatures showed the same failure."""

    kind: str
    """Exception type (`ValueError`, `pkg.mod.Error`), or `exit 3`, `signal SEGV`, `hang`,
    `measure`, `output`."""
    message: str = ""
    """Normalised: numbers, addresses, paths, ids, times and reprs masked."""
    frames: tuple[str, ...] = ()
    """Own frames as `module.function`, outermost first, recursion collapsed."""

    @property
    def id(self) -> str:
        return content_id(self)

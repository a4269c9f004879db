"""Findings: what a search established, citing the trials it rests on."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from becausal.domain.condition import Warmth
from becausal.domain.signature import Signature

Reproducibility = Literal["consistent", "intermittent", "not-reproduced", "could-not-run"]


class Stratum(msgspec.Struct, frozen=True, kw_only=True):
    """Trials that may be counted together: same condition, same warmth."""

    mode: Warmth
    trials: int
    """Trials that ran to an end: passed, failed, failed otherwise or timed out."""
    failures: int
    rate: float | None
    interval: tuple[float, float]
    """95 % confidence sequence of the failure rate: valid whenever one stops."""
    otherwise: int = 0
    timed_out: int = 0
    could_not_run: int = 0


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two strata whose failure rates differ beyond chance: a finding in itself."""

    between: tuple[str, str]
    e_value: float
    reason: str
    """The likely reason, as a word: `hash-seed`, `import-order`, `leftover-state`, `unknown`."""
    detail: str


class Reproduction(msgspec.Struct, frozen=True, kw_only=True, tag="reproduction"):
    """How often the failure shows, and how sure that is."""

    verdict: Reproducibility
    strata: tuple[Stratum, ...]
    mode: Warmth
    """The stratum that `rate` and `interval` speak of."""
    signature: Signature | None
    gone_runs: tuple[tuple[float, int], ...]
    """Level and the clean runs in a row that `gone` needs at it, from the rate's lower bound."""
    disagreement: Disagreement | None = None
    stopped: Literal["precise", "runs", "seconds"] = "precise"
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @property
    def main(self) -> Stratum:
        return next(s for s in self.strata if s.mode == self.mode)


Finding = Reproduction
"""The union of all findings; each is a tagged record."""


def as_plain(record: Any) -> Any:
    """A record as dictionaries and lists, for `--json`."""
    return msgspec.to_builtins(record)

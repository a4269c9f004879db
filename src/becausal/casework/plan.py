"""Plans: a pure search together with the conditions that its arms stand for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from becausal.domain.condition import Condition
from becausal.domain.signature import Signature
from becausal.domain.trial import Trial, TrialKey
from becausal.inquiry.search import Search

FindingT = TypeVar("FindingT")


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What the search calls by a name: a condition, and the hash seed its processes get."""

    condition: Condition
    hash_seed: int | None = None
    """None: every trial has its own, derived from its key."""


@dataclass(frozen=True, kw_only=True)
class Plan(Generic[FindingT]):
    """A question ready to be conducted. `parameters` decide the search, so they are journalled."""

    question: str
    version: int
    search: Callable[[int], Search[FindingT]]
    """Builds the search from its seed."""
    parameters: Mapping[str, Any]
    arms: Mapping[str, Arm]
    complete: Callable[[FindingT, Sequence[Trial], Signature | None], FindingT]
    """Adds to the finding what counts alone do not tell: the signature, the cost."""
    spent: float = 0.0
    """Of the time, what preparing took."""
    seconds: float | None = None
    """Time that may be spent; the search is told when it is over."""


def derived_seed(seed: int, key: TrialKey, purpose: str) -> int:
    """A trial's own seed: the same for the same place in the same search."""
    text = f"{seed}|{purpose}|{key.search}|{key.step}|{key.condition}|{key.repeat}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")

"""Amounts of memory, as people write them."""

from __future__ import annotations

import re

from becausal.domain.errors import WrongUse

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """`500M` as bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise WrongUse(
            "size-unreadable",
            "this is no amount of memory",
            value=text,
            hint="write a number with K, M or G after it, such as 500M",
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])

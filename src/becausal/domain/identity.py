"""Content identity: equal records have equal names, on every machine."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

_canonical = msgspec.json.Encoder(order="deterministic")


def content_id(record: Any) -> str:
    """Name a record by what it says: 16 hex digits of BLAKE2b over canonical JSON."""
    return hashlib.blake2b(_canonical.encode(record), digest_size=8).hexdigest()


def bytes_id(data: bytes) -> str:
    """Name bytes by what they are: 32 hex digits of BLAKE2b."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()

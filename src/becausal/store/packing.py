"""Artifacts, packed for the disk and checked when they come back."""

from __future__ import annotations

from becausal.domain.errors import BecausalError
from becausal.domain.identity import bytes_id

LIMIT = 256 << 20
"""Bytes of one artifact. Outputs are capped far below; only a patch can come near."""
_WORTH_PACKING = 256


def packed(data: bytes) -> tuple[str, bytes]:
    """How it is packed, and the bytes to keep."""
    if len(data) > LIMIT:
        raise BecausalError(
            "artifact-too-large",
            f"an artifact has {len(data)} bytes; the store keeps up to {LIMIT}",
            hint="leave large files out of the uncommitted work, or commit them",
        )
    if len(data) >= _WORTH_PACKING:
        import zstandard  # not before it is needed: listing cases must stay quick

        body = zstandard.ZstdCompressor(level=3).compress(data)
        if len(body) < len(data):
            return "zstd", body
    return "none", data


def unpacked(digest: str, size: int, packing: str, body: bytes) -> bytes:
    """The bytes as they were given; raises `artifact-damaged` when they are others."""
    data = _unpacked(size, body) if packing == "zstd" else body
    if data is None or bytes_id(data) != digest:
        raise BecausalError(
            "artifact-damaged",
            "the bytes of an artifact are not what was kept",
            value=digest,
            hint="the disk or another program changed the store; restore it from a copy",
        )
    return data


def _unpacked(size: int, body: bytes) -> bytes | None:
    import zstandard

    try:
        # A damaged header could ask for any amount of memory.
        if zstandard.frame_content_size(body) != size:
            return None
        return zstandard.ZstdDecompressor().decompress(body)
    except zstandard.ZstdError:
        return None

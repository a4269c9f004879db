"""Frames between becausal and its servers: a length, then JSON. Bytes travel as base64."""

from __future__ import annotations

import base64
import json
import os
import struct
from typing import Any, Dict, List, Optional

_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 18

Message = Dict[str, Any]


class BrokenFrame(Exception):
    """The other side ended in the middle of a frame, or sent something that is no frame."""


def send(fd: int, message: Message) -> None:
    """Write one frame, whole."""
    body = json.dumps(message, separators=(",", ":")).encode()
    write_all(fd, _LENGTH.pack(len(body)))
    write_all(fd, body)


def receive(fd: int) -> Optional[Message]:
    """Read one frame; None when the other side has closed between frames."""
    head = _read_exactly(fd, _LENGTH.size)
    if not head:
        return None
    size = _LENGTH.unpack(head)[0]
    body = _read_exactly(fd, size)
    if len(body) != size:
        raise BrokenFrame("the frame ends early")
    message = json.loads(body.decode())
    if not isinstance(message, dict):
        raise BrokenFrame("a frame holds one object")
    return message


def as_text(data: bytes) -> str:
    """Bytes as a field whose name ends in `_b64` holds them."""
    return base64.b64encode(data).decode("ascii")


def as_bytes(text: str) -> bytes:
    return base64.b64decode(text)


def write_all(fd: int, data: Any) -> None:
    """Write every byte of a bytes-like object."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK]) :]


def read_to_end(fd: int) -> bytes:
    """Everything until the other side closes."""
    parts: List[bytes] = []
    while True:
        part = os.read(fd, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _read_exactly(fd: int, size: int) -> bytes:
    """`size` bytes, nothing at a clean end; a broken start is an error as well."""
    parts = []
    missing = size
    while missing:
        part = os.read(fd, min(missing, _CHUNK))
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    got = b"".join(parts)
    if got and missing:
        raise BrokenFrame("the frame ends early")
    return got

"""A stream of any length in fixed memory."""

from __future__ import annotations

import os

import pytest

from becausal_payload.capture import Capture


def captured(data: bytes, limit: int, piece: int) -> tuple[bytes, bytes, int]:
    read, write = os.pipe()
    try:
        capture = Capture(read, limit)
        for start in range(0, len(data), piece):
            os.write(write, data[start : start + piece])
            while capture.pump() and _waiting(read):
                pass
        os.close(write)
        write = -1
        capture.drain()
        head, tail, dropped = capture.kept()
        return b"".join(head), b"".join(tail), dropped
    finally:
        os.close(read)
        if write >= 0:
            os.close(write)


def _waiting(fd: int) -> bool:
    import select

    return bool(select.select([fd], [], [], 0)[0])


@pytest.mark.parametrize("size", [0, 1, 49, 50, 51, 99, 100, 101, 149, 150, 151, 1000, 4097])
@pytest.mark.parametrize("piece", [1, 7, 50, 1000])
def test_head_and_tail_are_exact_whatever_the_pieces(size: int, piece: int) -> None:
    data = bytes(place * 7 % 251 for place in range(size))
    head, tail, dropped = captured(data, 100, piece)
    assert head == data[:50]
    assert tail == data[50:][-50:]
    assert dropped == max(0, size - 100)


def test_end_of_the_stream_is_told() -> None:
    read, write = os.pipe()
    capture = Capture(read, 10)
    assert capture.pump()  # nothing there yet
    os.close(write)
    assert not capture.pump()
    os.close(read)

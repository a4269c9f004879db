"""Marks of files: what changed cannot look unchanged."""

from __future__ import annotations

import os
from pathlib import Path

from becausal.lab.scan import remove, scan, settle


def test_change_right_after_a_settled_scan_is_always_seen(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    file = top / "file"
    for turn in range(100):
        file.write_text("one")
        before = scan(os.fsencode(top))
        settle(before, tmp_path / "clock")
        state = file.stat()
        file.write_text("two")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert scan(os.fsencode(top)) != before, turn


def test_removal_does_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/file").write_text("1")
    (tmp_path / "top").mkdir()
    (tmp_path / "top/link").symlink_to(tmp_path / "kept")
    remove(os.fsencode(tmp_path / "top"))
    assert not (tmp_path / "top").exists()
    assert (tmp_path / "kept/file").read_text() == "1"

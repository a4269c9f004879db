"""A folder without a repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from becausal.domain.errors import CouldNotRun
from becausal.lab.folder import PlainFolder
from becausal.lab.pool import Pool


@pytest.fixture
def plain(tmp_path: Path, cache: Path) -> PlainFolder:
    top = tmp_path / "plain"
    (top / "deep/empty").mkdir(parents=True)
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / ".gitignore").write_text("*\n")
    (top / ".gitattributes").write_text("* text eol=crlf\n")
    (top / "dos.txt").write_bytes(b"1\r\n2\n")
    (top / "link").symlink_to("dos.txt")
    (top / ".venv").mkdir()
    (top / ".venv/pyvenv.cfg").write_text("")
    return PlainFolder(top, cache)


def test_trials_get_a_copy_without_git(plain, cache) -> None:
    with Pool(plain, cache).lease() as lease:
        lease.switch(plain.snapshot().source)
        there = Path(lease.path)
        assert sorted(os.listdir(there)) == sorted(os.listdir(plain.top))
        assert (there / "dos.txt").read_bytes() == b"1\r\n2\n"
        assert os.access(there / "run.sh", os.X_OK)
        assert os.readlink(there / "link") == "dos.txt"
        assert (there / "deep/empty").is_dir()
        assert (there / ".venv").is_symlink()
        (there / "run.sh").write_text("changed")
        (there / ".git").mkdir()
        (there / ".git/config").write_text("")
        assert lease.restore() == (".git/config", "run.sh")
        assert not (there / ".git").exists()
    assert Path(plain.top, "run.sh").read_text() == "#!/bin/sh\n"
    assert not Path(plain.top, ".git").exists()


def test_content_is_the_identity(plain) -> None:
    first = plain.snapshot().source
    assert plain.snapshot().source == first
    Path(plain.top, "dos.txt").write_bytes(b"2\r\n1\n")
    second = plain.snapshot().source
    assert second != first
    Path(plain.top, "dos.txt").unlink()
    assert plain.snapshot().source not in (first, second)
    Path(plain.top, "dos.txt").write_bytes(b"1\r\n2\n")
    assert plain.snapshot().source == first


def test_change_of_same_size_and_time_is_another_source(plain) -> None:
    path = Path(plain.top, "dos.txt")
    for turn in range(4):
        path.write_text(f"{turn}")
        state = path.stat()
        first = plain.snapshot().source
        path.write_text("x")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert plain.snapshot().source != first, turn


def test_repositories_inside_are_files_like_others(plain, cache) -> None:
    inner = Path(plain.top, "inner")
    (inner / ".git").mkdir(parents=True)
    (inner / "code.py").write_text("1\n")
    with Pool(plain, cache).lease() as lease:
        lease.switch(plain.snapshot().source)
        assert Path(lease.path, "inner/code.py").read_text() == "1\n"


def test_too_large_a_folder_is_a_clear_error(plain, cache) -> None:
    small = PlainFolder(Path(plain.top), cache, most_files=3)
    with pytest.raises(CouldNotRun) as refused:
        small.snapshot()
    assert refused.value.slug == "folder-too-large"
    assert "becausal.toml" in refused.value.hint


def test_folder_has_no_head(plain) -> None:
    with pytest.raises(CouldNotRun) as refused:
        plain.snapshot("head")
    assert refused.value.slug == "no-commit"
    assert (plain.branch(), plain.recent_changes()) == ("", ())

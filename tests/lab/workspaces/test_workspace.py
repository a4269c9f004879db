"""Switching a workspace, and putting it back."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository
from becausal.lab.workspace import Lease


def git(lease: Lease, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=lease.path, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def lease(busy, repository, cache) -> Iterator[Lease]:
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot().source)
        yield lease


def test_uncommitted_work_shows_unstaged(lease) -> None:
    assert git(lease, "status", "--porcelain") == " M src/crew.py\n M src/ship.py\n?? src/new.py\n"


def test_head_is_detached_and_branches_and_tags_are_there(lease, person) -> None:
    assert git(lease, "rev-parse", "HEAD").strip() == person.git("rev-parse", "HEAD")
    assert git(lease, "describe", "--tags").strip() == "v1"
    assert git(lease, "rev-parse", "main").strip() == person.git("rev-parse", "main")
    assert git(lease, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD\n"


def test_whatever_a_trial_does_to_git_stays_in_the_workspace(lease, busy) -> None:
    before = busy.fingerprint()
    assert git(lease, "stash", "list") == ""
    git(lease, "add", "-A")
    git(lease, "commit", "-q", "-m", "trial")
    git(lease, "tag", "trial")
    git(lease, "branch", "-D", "main")
    git(lease, "config", "user.name", "Trial")
    Path(lease.path, "README").write_text("trial\n")
    git(lease, "stash")
    git(lease, "gc", "-q", "--prune=now")
    lease.restore()
    assert git(lease, "tag").split() == ["v1"]
    assert git(lease, "status", "--porcelain") == " M src/crew.py\n M src/ship.py\n?? src/new.py\n"
    assert busy.fingerprint() == before


def test_restore_names_and_undoes_every_change(lease) -> None:
    there = Path(lease.path)
    assert lease.restore() == ()
    (there / "README").write_text("changed\n")
    (there / "src/crew.py").unlink()
    (there / "src/ship.py").chmod(0o600)
    (there / "made/deep").mkdir(parents=True)
    (there / "made/deep/file").write_text("1\n")
    (there / "noise.log").write_text("ignored\n")
    (there / "hollow").mkdir()
    assert lease.restore() == (
        "README", "hollow", "made/deep/file", "noise.log", "src/crew.py", "src/ship.py",
    )  # fmt: skip
    assert (there / "README").read_text() == "harbour\n"
    assert (there / "src/crew.py").read_text() == "CREW = 7\n"
    assert (there / "src/ship.py").stat().st_mode & 0o777 == 0o644
    assert sorted(os.listdir(there)) == [".env", ".git", ".gitignore", "README", "src"]
    assert lease.restore() == ()


def test_change_with_same_size_and_time_is_seen(lease) -> None:
    path = Path(lease.path, "src/ship.py")
    state = path.stat()
    with path.open("r+") as file:
        file.write("SPEED = 8\n")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert lease.restore() == ("src/ship.py",)
    assert path.read_text() == "SPEED = 3\n"


def test_locked_folder_is_put_back(lease) -> None:
    there = Path(lease.path)
    (there / "made/locked").mkdir(parents=True)
    (there / "made/locked/file").write_text("1\n")
    (there / "made/locked").chmod(0)
    (there / "src").chmod(0o500)
    assert "src" in lease.restore()
    assert (there / "src").stat().st_mode & 0o777 == 0o755
    assert not (there / "made").exists()


def test_folder_replaced_by_a_link_to_the_person_is_not_written_through(lease, busy) -> None:
    before = busy.fingerprint()
    there = Path(lease.path)
    shutil.rmtree(there / "src")
    (there / "src").symlink_to(busy.top / "src")
    shutil.rmtree(there / ".git")
    (there / ".git").symlink_to(busy.top / ".git")
    lease.restore()
    assert (there / "src/ship.py").read_text() == "SPEED = 3\n"
    assert not (there / "src").is_symlink()
    assert not (there / ".git").is_symlink()
    assert busy.fingerprint() == before


def test_links_below_git_are_not_written_through(lease, busy) -> None:
    before = busy.fingerprint()
    info = Path(lease.path, ".git/objects/info")
    shutil.rmtree(info)
    info.symlink_to(busy.top / ".git/info")
    lease.restore()
    lease.switch(Source(revision=busy.git("rev-parse", "HEAD~1")))
    assert busy.fingerprint() == before
    assert git(lease, "log", "--oneline").count("\n") == 1


def test_configuration_planted_by_a_trial_does_not_run(lease, tmp_path) -> None:
    ran = tmp_path / "ran"
    git(lease, "config", "core.fsmonitor", f"touch {ran}")
    git(lease, "config", "filter.x.smudge", f"touch {ran}; cat")
    Path(lease.path, ".gitattributes").write_text("* filter=x\n")
    Path(lease.path, "README").write_text("changed\n")
    lease.restore()
    lease.switch(Source(revision=git(lease, "rev-parse", "HEAD~1").strip()))
    assert not ran.exists()


def test_fifty_quick_switches_of_same_size_files_are_all_right(person, repository, cache) -> None:
    one, two = person.git("rev-parse", "HEAD~1"), person.git("rev-parse", "HEAD")
    expected = {one: "SPEED = 1\n", two: "SPEED = 2\n"}
    with Pool(repository, cache).lease() as lease:
        path = Path(lease.path, "src/ship.py")
        for turn in range(50):
            revision = (one, two)[turn % 2]
            lease.switch(Source(revision=revision))
            assert path.read_text() == expected[revision], turn
            assert git(lease, "diff", "--stat") == ""
            path.write_text("SPEED = 0\n")
            if turn % 3:
                assert lease.restore() == ("src/ship.py",)
                assert path.read_text() == expected[revision], turn


def test_switch_leaves_nothing_of_the_source_before(busy, repository, lease) -> None:
    lease.switch(Source(revision=busy.git("rev-parse", "HEAD~1")))
    there = Path(lease.path)
    assert sorted(os.listdir(there)) == [".git", ".gitignore", "README", "src"]
    assert sorted(os.listdir(there / "src")) == ["crew.py", "ship.py"]
    assert git(lease, "status", "--porcelain", "--ignored") == ""


def test_next_lease_takes_over_a_workspace_that_nobody_changed(busy, repository, cache) -> None:
    source = repository.snapshot().source
    with Pool(repository, cache).lease() as first:
        first.switch(source)
        marks = os.stat(os.path.join(first.path, "README")).st_ctime_ns
    with Pool(repository, cache).lease() as second:
        assert second.path == first.path
        assert second.token == first.token + 1
        second.switch(source)
        assert os.stat(os.path.join(second.path, "README")).st_ctime_ns == marks


def test_next_lease_cleans_a_workspace_that_was_changed(busy, repository, cache) -> None:
    source = repository.snapshot().source
    with Pool(repository, cache).lease() as first:
        first.switch(source)
        Path(first.path, "README").write_text("CHANGED\n")
        Path(first.path, "left.log").write_text("1\n")
        Path(first.path, ".env").write_text("TOKEN=9\n")
    with Pool(repository, cache).lease() as second:
        second.switch(source)
        assert Path(second.path, "README").read_text() == "harbour\n"
        assert Path(second.path, ".env").read_text() == "TOKEN=1\n"
        assert not Path(second.path, "left.log").exists()


def test_unknown_source_is_a_clear_error(lease) -> None:
    for source in (Source(revision="1" * 40), Source(revision="HEAD", carried="0" * 16)):
        with pytest.raises(CouldNotRun) as refused:
            lease.switch(source)
        assert refused.value.slug == "source-gone"
    assert lease.restore() == ()


def test_closed_lease_does_nothing_more(lease, repository) -> None:
    lease.close()
    lease.close()
    with pytest.raises(CouldNotRun) as refused:
        lease.restore()
    assert refused.value.slug == "lease-lost"


def test_captured_work_outlives_the_person_changing_it(busy, cache) -> None:
    repository = open_repository(busy.top, cache)
    source = repository.snapshot().source
    busy.git("reset", "-q", "--hard")
    (busy.top / ".env").unlink()
    with Pool(repository, cache).lease() as lease:
        lease.switch(source)
        assert Path(lease.path, "src/ship.py").read_text() == "SPEED = 3\n"
        assert Path(lease.path, ".env").read_text() == "TOKEN=1\n"

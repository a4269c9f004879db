"""What a snapshot captures, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.lab.folder import PlainFolder
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository


def tree_of(folder: Path) -> dict[bytes, tuple[str, bytes]]:
    """Every file below a folder but `.git`: kind with executable bit, and content."""
    found = {}
    top = os.fsencode(folder)
    for here, folders, files in os.walk(top):
        if here == top and b".git" in folders:
            folders.remove(b".git")
        for name in [
            *files,
            *(each for each in folders if os.path.islink(os.path.join(here, each))),
        ]:
            path = os.path.join(here, name)
            if name == b".git":
                continue
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = ("link", os.readlink(path))
            else:
                kind = "x" if os.stat(path).st_mode & 0o100 else "-"
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = (kind, file.read())
        folders[:] = [each for each in folders if each != b".git"]
    return found


@pytest.fixture
def assert_same(cache: Path) -> Callable[..., tuple[str, ...]]:
    """Snapshot a folder, switch a workspace to it and compare every byte; the folder is
    untouched."""

    def check(person, start: Path | None = None) -> tuple[str, ...]:  # type: ignore[no-untyped-def]
        before = person.fingerprint()
        repository = open_repository(start or person.top, cache)
        snapshot = repository.snapshot()
        with Pool(repository, cache).lease() as lease:
            switched = lease.switch(snapshot.source)
            assert tree_of(Path(lease.path)) == tree_of(Path(repository.top))
            lease.restore()
        assert person.fingerprint() == before
        return (*snapshot.notes, *switched.notes)

    return check


def test_clean_tree_is_the_commit(person, cache) -> None:
    snapshot = open_repository(person.top, cache).snapshot()
    assert snapshot.source.revision == person.git("rev-parse", "HEAD")
    assert snapshot.source.tree is None
    assert snapshot.patch is None
    assert snapshot.dirty == ()


def test_every_kind_of_work_is_captured_and_nothing_touched(busy, cache, assert_same) -> None:
    busy.write("bytes.bin", bytes(range(256)) * 20)
    (busy.top / "README").unlink()
    (busy.top / "link").symlink_to("src/ship.py")
    (busy.top / "src/crew.py").chmod(0o755)
    busy.write("noise.log", "ignored\n")
    assert_same(busy)
    snapshot = open_repository(busy.top, cache).snapshot()
    assert set(snapshot.dirty) == {
        "README", "bytes.bin", "link", "src/crew.py", "src/new.py", "src/ship.py",
    }  # fmt: skip


def test_patch_makes_the_same_tree_elsewhere(busy, cache, tmp_path) -> None:
    busy.write("bytes.bin", bytes(range(256)) * 20)
    (busy.top / "README").unlink()
    snapshot = open_repository(busy.top, cache).snapshot()
    clone = tmp_path / "clone"
    busy.git("clone", "-q", str(busy.top), str(clone))
    subprocess.run(["git", "apply", "--index"], cwd=clone, input=snapshot.patch, check=True)
    assert busy.git("write-tree", cwd=clone) == snapshot.source.tree


def test_same_work_is_the_same_source_and_other_work_is_not(busy, cache) -> None:
    repository = open_repository(busy.top, cache)
    first = repository.snapshot()
    assert repository.snapshot() == first
    busy.write("src/new.py", "NEW = 2\n")
    assert repository.snapshot().source != first.source


def test_head_leaves_uncommitted_work_out(busy, cache) -> None:
    repository = open_repository(busy.top, cache)
    snapshot = repository.snapshot("head")
    assert (snapshot.source.tree, snapshot.patch) == (None, None)
    assert "src/new.py" in snapshot.dirty
    with Pool(repository, cache).lease() as lease:
        lease.switch(snapshot.source)
        assert Path(lease.path, "src/ship.py").read_text() == "SPEED = 2\n"
        assert not Path(lease.path, "src/new.py").exists()


def test_repository_without_commit(empty, cache, assert_same) -> None:
    empty.write("first.py", "1\n")
    assert_same(empty)
    repository = open_repository(empty.top, cache)
    snapshot = repository.snapshot()
    assert snapshot.source.revision is None
    assert b"first.py" in (snapshot.patch or b"")
    assert repository.recent_changes() == ()
    with pytest.raises(CouldNotRun) as refused:
        repository.snapshot("head")
    assert refused.value.slug == "no-commit"


def test_detached_head(busy, cache, assert_same) -> None:
    busy.git("checkout", "-q", "--detach")
    assert_same(busy)
    assert open_repository(busy.top, cache).branch() == ""


def test_linked_worktree_of_the_person(busy, tmp_path, assert_same) -> None:
    linked = tmp_path / "linked"
    busy.git("worktree", "add", "-q", str(linked), "HEAD~1")
    (linked / "more.py").write_text("1\n")
    assert_same(busy, linked)


def test_nested_folder_finds_the_top(busy, cache) -> None:
    assert open_repository(busy.top / "src", cache).top == str(busy.top)


def test_shallow_clone(busy, tmp_path, assert_same) -> None:
    clone = tmp_path / "shallow"
    busy.git("clone", "-q", "--depth=1", f"file://{busy.top}", str(clone))
    (clone / "README").write_text("changed\n")
    assert_same(busy, clone)


def test_repository_that_borrows_objects(busy, tmp_path, assert_same) -> None:
    clone = tmp_path / "borrowing"
    busy.git("clone", "-q", "--shared", str(busy.top), str(clone))
    assert_same(busy, clone)


def test_partial_clone_runs_what_it_has_and_says_what_it_lacks(
    busy, tmp_path, cache, assert_same
) -> None:
    clone = tmp_path / "partial"
    busy.git("config", "uploadpack.allowFilter", "true")
    busy.git("clone", "-q", "--filter=blob:none", f"file://{busy.top}", str(clone))
    assert_same(busy, clone)
    repository = open_repository(clone, cache)
    older = Source(revision=busy.git("rev-parse", "HEAD~1"))
    with Pool(repository, cache).lease() as lease:
        with pytest.raises(CouldNotRun) as refused:
            lease.switch(older)
        assert refused.value.slug == "checkout-failed"
        lease.switch(repository.snapshot().source)
        assert tree_of(Path(lease.path)) == tree_of(clone)


def test_bare_repository_is_a_clear_error(person, tmp_path, cache) -> None:
    bare = tmp_path / "bare.git"
    person.git("clone", "-q", "--bare", str(person.top), str(bare))
    with pytest.raises(CouldNotRun) as refused:
        open_repository(bare, cache)
    assert refused.value.slug == "repository-bare"


def test_merge_conflict_is_taken_as_it_is(person, cache, assert_same) -> None:
    person.git("checkout", "-q", "-b", "side", "HEAD~1")
    person.write("src/ship.py", "SPEED = 9\n")
    person.commit("Sail otherwise")
    subprocess.run(["git", "merge", "main"], cwd=person.top, capture_output=True, check=False)
    assert "<<<<" in (person.top / "src/ship.py").read_text()
    assert any("merge" in note for note in assert_same(person))


def test_files_hidden_from_git_are_captured(person, assert_same) -> None:
    person.git("update-index", "--assume-unchanged", "src/ship.py")
    person.git("update-index", "--skip-worktree", "src/crew.py")
    person.write("src/ship.py", "SPEED = 4\n")
    person.write("src/crew.py", "CREW = 4\n")
    assert_same(person)


def test_intent_to_add(person, assert_same) -> None:
    person.write("planned.py", "1\n")
    person.git("add", "-N", "planned.py")
    assert_same(person)


def test_split_index(busy, assert_same) -> None:
    busy.git("update-index", "--split-index")
    busy.write("after.py", "1\n")
    busy.git("add", "after.py")
    assert_same(busy)


def test_sparse_checkout_says_what_is_added(person, cache) -> None:
    person.write("docs/map", "here\n")
    person.commit("Draw a map")
    person.git("sparse-checkout", "set", "src")
    before = person.fingerprint()
    snapshot = open_repository(person.top, cache).snapshot()
    assert snapshot.source.tree is None
    assert any("sparse" in note for note in snapshot.notes)
    assert person.fingerprint() == before


@pytest.mark.parametrize("split", [False, True])
def test_change_of_same_size_and_time_as_the_commit_is_captured(
    person, cache, split, assert_same
) -> None:
    if split:
        person.git("update-index", "--split-index")
    for turn in range(4):
        path = person.write("src/ship.py", f"SPEED = {turn}\n")
        state = path.stat()
        person.git("add", "src/ship.py")
        path.write_text("SPEED = x\n")
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert_same(person)


def test_hostile_names(person, assert_same) -> None:
    top = os.fsencode(person.top)
    for name in (
        b"new\nline",
        b"-rf",
        b":(top)x",
        b"caf\xe9",
        b'quo"te',
        b"back\\slash",
        b" lead",
        b"*",
    ):
        with open(os.path.join(top, name), "wb") as file:
            file.write(name)
    assert_same(person)
    person.commit("Odd names")
    with open(os.path.join(top, b"caf\xe9"), "ab") as file:
        file.write(b"more")
    assert_same(person)


def test_file_that_became_a_folder_and_back(person, assert_same) -> None:
    (person.top / "README").unlink()
    person.write("README/inside", "1\n")
    (person.top / "src/ship.py").unlink()
    (person.top / "src/crew.py").unlink()
    (person.top / "src").rmdir()
    person.write("src", "no folder\n")
    assert_same(person)


def test_submodule_content_is_carried_with_its_work(person, tmp_path, cache, assert_same) -> None:
    other = tmp_path / "other"
    person.git("clone", "-q", str(person.top), str(other))
    person.git("submodule", "--quiet", "add", str(other), "deps/other")
    person.commit("Depend on another")
    assert_same(person)
    person.write("deps/other/src/ship.py", "SPEED = 5\n")
    person.write("deps/other/extra.py", "1\n")
    assert_same(person)
    repository = open_repository(person.top, cache)
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot("head").source)
        assert Path(lease.path, "deps/other/src/ship.py").read_text() == "SPEED = 2\n"


def test_untracked_clone_is_carried(person, tmp_path, assert_same) -> None:
    person.git("clone", "-q", str(person.top), "vendor/inner")
    person.write("vendor/inner/src/ship.py", "SPEED = 6\n")
    assert_same(person)


def test_filtered_files_have_the_bytes_on_disk_and_filters_do_not_run(
    person, tmp_path, assert_same
) -> None:
    ran = tmp_path / "ran"
    person.git("config", "filter.lfs.clean", "sed s/content/pointer/")
    person.git("config", "filter.lfs.smudge", f"touch {ran}; sed s/pointer/content/")
    person.git("config", "filter.lfs.required", "true")
    person.write(".gitattributes", "*.big filter=lfs\n")
    person.write("data.big", "the content\n")
    person.commit("Store a large file")
    assert person.git("show", "HEAD:data.big") == "the pointer"
    notes = assert_same(person)
    assert any("on disk" in note for note in notes)
    assert not ran.exists()


def test_line_ends_are_those_on_disk(person, assert_same) -> None:
    person.git("config", "core.autocrlf", "true")
    person.write("dos.txt", "one\r\ntwo\r\n")
    person.write("unix.txt", "one\ntwo\n")
    person.commit("Two kinds of lines")
    person.write("dos2.txt", "one\r\ntwo\r\n")
    assert_same(person)


def test_lfs_pointers_are_told(person, cache) -> None:
    person.write(".gitattributes", "*.big filter=lfs\n")
    person.write("data.big", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    person.commit("A pointer")
    assert any(
        "LFS pointers" in note for note in open_repository(person.top, cache).snapshot().notes
    )


def test_own_folder_is_no_part_of_the_tree(person, cache) -> None:
    person.write(".becausal/journal.db", "x")
    assert open_repository(person.top, cache).snapshot().source.tree is None


def test_hooks_and_monitors_of_the_person_do_not_run(person, tmp_path, assert_same) -> None:
    ran = tmp_path / "ran"
    hook = person.write(".git/hooks/post-checkout", f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    (person.top / ".git/hooks/post-index-change").symlink_to("post-checkout")
    person.git("config", "core.fsmonitor", str(hook))
    person.write("src/crew.py", "CREW = 2\n")
    assert_same(person)
    assert not ran.exists()


def test_environment_of_a_hook_does_not_steer(busy, cache, monkeypatch) -> None:
    expected = open_repository(busy.top, cache).snapshot()
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    assert open_repository(busy.top, cache).snapshot() == expected


def test_recent_changes_name_commits_and_files(person, cache) -> None:
    repository = open_repository(person.top, cache)
    newest, oldest = repository.recent_changes()
    assert (newest.summary, newest.files) == ("Sail faster", ("src/ship.py",))
    assert newest.author == "Ada"
    assert "README" in oldest.files
    assert repository.recent_changes(1) == (newest,)
    assert repository.branch() == "main"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_repository_of_another_user_is_a_clear_error(person, cache) -> None:
    for path in (person.top, person.top / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(CouldNotRun) as refused:
        open_repository(person.top, cache)
    assert refused.value.slug == "git-ownership"
    assert str(person.top) in refused.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_changed_file_is_a_clear_error(person, cache) -> None:
    person.write("src/crew.py", "CREW = 100\n").chmod(0)
    with pytest.raises(CouldNotRun) as refused:
        open_repository(person.top, cache).snapshot()
    assert refused.value.slug == "file-unreadable"


def test_missing_git_is_a_clear_error(person, cache, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CouldNotRun) as refused:
        open_repository(person.top, cache)
    assert refused.value.slug == "git-missing"


def test_folder_without_repository_is_a_plain_folder(tmp_path, cache) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    assert isinstance(open_repository(folder, cache), PlainFolder)

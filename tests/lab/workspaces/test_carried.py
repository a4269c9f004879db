"""Which ignored files reach a workspace, and how."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from becausal.domain.errors import WrongUse
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository
from becausal.lab.settings import read_settings


def switched(person, cache: Path, *, bound: bool = False):
    repository = open_repository(person.top, cache)
    snapshot = repository.snapshot()
    lease = Pool(repository, cache, bound=bound).lease()
    return lease, snapshot, lease.switch(snapshot.source)


def test_small_ignored_files_are_copied_and_caches_left(busy, cache) -> None:
    busy.write("build/lib/native.so", b"\x7fELF").chmod(0o755)
    (busy.top / "build/empty").mkdir()
    (busy.top / "build/latest").symlink_to("lib")
    busy.write("src/__pycache__/ship.pyc", "x")
    lease, _, _ = switched(busy, cache)
    with lease:
        there = Path(lease.path)
        assert (there / ".env").read_text() == "TOKEN=1\n"
        assert os.access(there / "build/lib/native.so", os.X_OK)
        assert (there / "build/empty").is_dir()
        assert os.readlink(there / "build/latest") == "lib"
        assert not (there / "src/__pycache__").exists()


def test_carried_paths_are_named_in_short(busy, cache) -> None:
    busy.write("build/lib/native.so", b"\x7fELF")
    busy.write("build/lib/other.so", b"\x7fELF")
    busy.write("env/pyvenv.cfg", "home = /usr\n")
    lease, snapshot, _ = switched(busy, cache)
    with lease:
        assert snapshot.carried == (".env", "build", "env")


def test_trial_changing_a_copy_does_not_reach_the_person(busy, cache) -> None:
    lease, _, _ = switched(busy, cache)
    with lease:
        Path(lease.path, ".env").write_text("TOKEN=2\n")
        assert lease.restore() == (".env",)
        assert Path(lease.path, ".env").read_text() == "TOKEN=1\n"
    assert (busy.top / ".env").read_text() == "TOKEN=1\n"


def test_environment_is_used_in_place(busy, cache) -> None:
    busy.write(".venv/pyvenv.cfg", "home = /usr\n")
    busy.write(".venv/.gitignore", "*\n")
    busy.write(".venv/lib/module.py", "1\n")
    lease, _, _ = switched(busy, cache)
    with lease:
        link = os.path.join(lease.path, ".venv")
        assert lease.links == ((link, str(busy.top / ".venv")),)
        assert Path(link, "lib/module.py").read_text() == "1\n"


@pytest.mark.parametrize("name", ["env/pyvenv.cfg", "web/node_modules/left/index.js"])
def test_untracked_environment_is_no_uncommitted_work(person, cache, name) -> None:
    person.write(name, "1\n")
    lease, snapshot, _ = switched(person, cache)
    with lease:
        assert snapshot.source.tree is None
        assert [os.path.basename(target) for _, target in lease.links] == [
            "node_modules" if "node" in name else "env"
        ]


def test_bound_workspace_has_a_place_where_a_link_would_be(busy, cache) -> None:
    busy.write(".venv/pyvenv.cfg", "home = /usr\n")
    lease, _, _ = switched(busy, cache, bound=True)
    with lease:
        place = Path(lease.links[0][0])
        assert place.is_dir()
        assert not place.is_symlink()
        assert os.listdir(place) == []
    lease, _, _ = switched(busy, cache)
    with lease:
        assert Path(lease.links[0][0]).is_symlink()


def test_what_does_not_fit_the_budget_is_used_in_place_and_said(busy, cache) -> None:
    busy.write("becausal.toml", "[lab]\nbudget = 1000\n")
    busy.write("build/large.bin", b"x" * 2000)
    lease, snapshot, _ = switched(busy, cache)
    with lease:
        assert Path(lease.path, "build").is_symlink()
        assert not Path(lease.path, ".env").is_symlink()
    assert any("too large to copy" in note and "build" in note for note in snapshot.notes)


def test_settings_choose(busy, cache) -> None:
    busy.write(
        "becausal.toml",
        '[lab]\nbudget = 100\ncopy = ["build/*.bin"]\nlink = ["build/share"]\nleave = [".env"]\n',
    )
    busy.write("build/large.bin", b"x" * 2000)
    busy.write("build/share/data", "1\n")
    lease, _, _ = switched(busy, cache)
    with lease:
        there = Path(lease.path)
        assert (there / "build/large.bin").stat().st_size == 2000
        assert (there / "build/share").is_symlink()
        assert not (there / ".env").exists()


def test_carried_content_is_part_of_the_source(busy, cache) -> None:
    repository = open_repository(busy.top, cache)
    first = repository.snapshot()
    busy.write(".env", "TOKEN=2\n")
    second = repository.snapshot()
    assert first.source.tree == second.source.tree
    assert first.source.carried != second.source.carried
    with Pool(repository, cache).lease() as lease:
        lease.switch(first.source)
        assert Path(lease.path, ".env").read_text() == "TOKEN=1\n"
        lease.switch(second.source)
        assert Path(lease.path, ".env").read_text() == "TOKEN=2\n"


def test_tracked_file_wins_over_a_carried_one(person, cache) -> None:
    older = person.git("rev-parse", "HEAD")
    person.git("rm", "-q", "src/crew.py")
    person.write(".gitignore", "*.log\nsrc/crew.py\n")
    person.commit("Generate the crew")
    person.write("src/crew.py", "CREW = 'generated'\n")
    repository = open_repository(person.top, cache)
    now = repository.snapshot().source
    then = type(now)(revision=older, carried=now.carried)
    with Pool(repository, cache).lease() as lease:
        for _ in range(2):
            lease.switch(now)
            assert Path(lease.path, "src/crew.py").read_text() == "CREW = 'generated'\n"
            notes = lease.switch(then).notes
            assert Path(lease.path, "src/crew.py").read_text() == "CREW = 1\n"
            assert any("src/crew.py" in note for note in notes)


def test_settings_of_pyproject_are_read(person) -> None:
    person.write("pyproject.toml", '[tool.becausal.lab]\nleave = ["a"]\n')
    assert read_settings(str(person.top)).leave == ("a",)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("[lab]\ncopi = []\n", "setting-unknown"),
        ("[laboratory]\nx = 1\n", "setting-unknown"),
        ("[lab]\nbudget = 'x'\n", "setting-wrong"),
        ("[lab\n", "setting-wrong"),
        ("lab = 1\n", "setting-wrong"),
    ],
)
def test_wrong_settings_are_refused(person, text, slug) -> None:
    person.write("becausal.toml", text)
    with pytest.raises(WrongUse) as refused:
        read_settings(str(person.top))
    assert refused.value.slug == slug

"""Leases among processes: exclusive, given back by death, repaired, listed and collected."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from becausal.domain.condition import Source
from becausal.domain.errors import CouldNotRun
from becausal.lab.housekeeping import pool_clean, pool_report
from becausal.lab.pool import Pool
from becausal.lab.repository import open_repository

HOLDER = Path(__file__).with_name("keeper_of_leases.py")


@pytest.fixture
def start(cache: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a holder process; all are ended with the test."""
    with contextlib.ExitStack() as ending:

        def begin(top: Path, what: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, str(HOLDER), str(top), str(cache), what],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            ending.callback(process.communicate)
            ending.callback(process.kill)
            return process

        yield begin


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_two_leases_in_one_process_are_two_workspaces(repository, cache) -> None:
    pool = Pool(repository, cache)
    with pool.lease() as one, pool.lease() as two:
        assert one.path != two.path


def test_two_processes_get_two_workspaces(busy, start, repository, cache) -> None:
    one = said(start(busy.top, "hold"))
    two = said(start(busy.top, "hold"))
    with Pool(repository, cache).lease() as three:
        assert len({one, two, three.path}) == 3
        assert all(os.path.isdir(path) for path in (one, two, three.path))


def test_killed_holder_gives_lease_back_at_once(busy, start, repository, cache) -> None:
    holder = start(busy.top, "hold")
    path = said(holder)
    Path(path, "README").write_text("half a trial\n")
    holder.kill()
    holder.wait()
    with Pool(repository, cache).lease() as lease:
        assert lease.path == path
        assert lease.token == 2
        lease.switch(repository.snapshot().source)
        assert Path(path, "README").read_text() == "harbour\n"


def test_process_that_inherited_the_fence_keeps_the_workspace(repository, cache) -> None:
    pool = Pool(repository, cache)
    first = pool.lease()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=(first.fence,))
    first.close()
    with pool.lease() as second:
        assert second.path != first.path
    child.communicate()
    with pool.lease() as third:
        assert third.path == first.path


def test_lease_with_an_older_token_is_refused(person, repository, cache) -> None:
    with Pool(repository, cache).lease() as lease:
        token = Path(lease.path).parents[1] / "token"
        token.write_text("99")
        with pytest.raises(CouldNotRun) as refused:
            lease.switch(Source(revision=person.git("rev-parse", "HEAD")))
        assert refused.value.slug == "lease-lost"


@pytest.mark.parametrize("harm", ["control/index", "control/HEAD", "control", "at", "token", "all"])
def test_half_made_workspace_is_repaired(busy, repository, cache, harm) -> None:
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot().source)
        slot = Path(lease.path).parents[1]
    (slot / "state.json").unlink()
    for name in ("control", "at") if harm == "all" else (harm,):
        path = slot / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.write_bytes(b"damaged")
    (slot / "control").mkdir(exist_ok=True)
    (slot / "control/index.lock").touch()
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot().source)
        assert Path(lease.path, "src/ship.py").read_text() == "SPEED = 3\n"
        assert Path(lease.path, "README").read_text() == "harbour\n"
        assert lease.restore() == ()


def killed_at(busy, start, cache: Path, delay: float, *, fresh: bool) -> None:
    """Kill a working process; the repository is as before, and the workspace is usable."""
    if fresh and cache.exists():
        shutil.rmtree(cache)
    before = busy.fingerprint()
    worker = start(busy.top, "work")
    assert said(worker) == "begin"
    with contextlib.suppress(subprocess.TimeoutExpired):
        worker.wait(delay)
    assert worker.poll() is None, "the worker ended by itself"
    worker.kill()
    worker.wait()
    assert busy.fingerprint() == before
    repository = open_repository(busy.top, cache)
    source = repository.snapshot().source
    with Pool(repository, cache).lease() as lease:
        lease.switch(source)
        assert Path(lease.path, "src/ship.py").read_text() == "SPEED = 3\n"
        assert Path(lease.path, "README").read_text() == "harbour\n"
        names = [".env", ".git", ".gitignore", "README", "src"]
        assert sorted(os.listdir(lease.path)) == names
    assert busy.fingerprint() == before
    assert _nobody_works_below(cache)


def test_killed_at_any_moment_leaves_the_repository_alone(busy, start, cache) -> None:
    moments = random.Random(4)
    for turn in range(10):
        killed_at(busy, start, cache, moments.uniform(0, 0.4), fresh=turn % 2 == 0)


@pytest.mark.faults
def test_killed_at_120_moments_leaves_the_repository_alone(busy, start, cache) -> None:
    moments = random.Random(7)
    for turn in range(120):
        killed_at(busy, start, cache, moments.uniform(0, 0.6), fresh=turn % 3 == 0)


def test_report_tells_leased_free_and_damaged(busy, repository, cache) -> None:
    assert pool_report(cache) == ()
    pool = Pool(repository, cache)
    source = repository.snapshot().source
    with pool.lease() as one, pool.lease() as two:
        one.switch(source)
        two.switch(source)
        leased = pool_report(cache)
        assert [each.state for each in leased] == ["leased", "leased"]
        assert leased[0].repository == str(busy.top)
        assert leased[0].path == one.path
        assert leased[0].size > 0
        assert abs(leased[0].last_used - time.time()) < 600
    assert [each.state for each in pool_report(cache)] == ["free", "free"]
    Path(two.path, "README").write_text("somebody's notes\n")
    assert [each.state for each in pool_report(cache)] == ["free", "damaged"]


def test_only_free_workspaces_are_collected(busy, repository, cache) -> None:
    pool = Pool(repository, cache)
    source = repository.snapshot().source
    with pool.lease() as held, pool.lease() as free, pool.lease() as changed:
        for lease in (held, free, changed):
            lease.switch(source)
        free.close()
        changed.close()
        Path(changed.path, "README").write_text("somebody's notes\n")
        assert [each.path for each in pool_clean(cache)] == [free.path]
        assert [os.path.exists(each.path) for each in (held, free, changed)] == [True, False, True]
        assert [each.path for each in pool_clean(cache, everything=True)] == [changed.path]
        assert held.restore() == ()
    with pool.lease() as lease:
        lease.switch(source)


def test_everything_goes_when_nobody_works_on_a_repository(busy, cache) -> None:
    repository = open_repository(busy.top, cache)
    with Pool(repository, cache).lease() as lease:
        lease.switch(repository.snapshot().source)
    pool_clean(cache, everything=True)
    assert os.listdir(cache / "pool") != []  # this process still has the repository open
    del repository, lease
    pool_clean(cache, everything=True)
    assert os.listdir(cache / "pool") == []


def _nobody_works_below(cache: Path) -> bool:
    """A git that outlived its killed starter ends by itself, soon."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if not any(_works_below(process, str(cache)) for process in psutil.process_iter()):
            return True
    return False


def _works_below(process: psutil.Process, folder: str) -> bool:
    try:
        return process.pid != os.getpid() and process.cwd().startswith(folder)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False

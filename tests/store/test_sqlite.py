"""What the SQLite store does with files, folders and disks as they really are."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from becausal.domain.identity import bytes_id
from becausal.store import connection, open_store, schema
from becausal.testing.samples import OPENED, trial
from becausal.testing.store_conformance import slug_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".becausal"


@contextmanager
def raw_sql(folder: Path) -> Iterator[sqlite3.Connection]:
    raw = sqlite3.connect(folder / "journal.db", isolation_level=None)
    yield raw
    raw.close()


def filled(folder: Path, cases: int = 1) -> str:
    """A store with something in it; answers the digest of an artifact."""
    store = open_store(folder)
    for _ in range(cases):
        store.record(store.open_case(OPENED, at=1.0), [trial()], at=2.0)
    digest = store.put(b"output " * 1000)
    store.close()
    return digest


def open_and_write(folder: Path) -> None:
    store = open_store(folder)
    try:
        store.open_case(OPENED, at=1.0)
    finally:
        store.close()


@contextmanager
def without_privilege() -> Iterator[None]:
    """As somebody whom file permissions hold back, should the tests run as root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


# -- the folder


def test_git_sees_nothing_of_the_folder(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder.parent)], check=True)
    filled(folder)
    status = ["git", "-C", str(folder.parent), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, check=True, capture_output=True).stdout == b""


def test_the_folder_is_made_with_its_parents(folder: Path) -> None:
    filled(folder / "deep" / "er")
    assert (folder / "deep" / "er" / "journal.db").is_file()


def test_a_closed_store_leaves_no_log_and_no_locks_behind(folder: Path) -> None:
    store = open_store(folder)
    with store.hold("search"):
        store.open_case(OPENED, at=1.0)
    store.close()
    files = sorted(each.name for each in folder.rglob("*") if each.is_file())
    assert files == [".gitignore", "journal.db"]


def test_names_to_hold_stay_inside_the_folder(folder: Path) -> None:
    store = open_store(folder)
    with store.hold("../../escaped/\0\n"):
        outside = [each for each in folder.parent.rglob("*") if folder not in each.parents]
        assert outside == [folder]
    store.close()


@pytest.mark.parametrize("place", ["itself", "a parent"])
def test_a_file_in_place_of_the_folder_is_said(folder: Path, place: str) -> None:
    folder.write_text("mine")
    wanted = folder if place == "itself" else folder / "below"
    assert slug_of(lambda: open_store(wanted)) == "store-not-writable"
    assert folder.read_text() == "mine"


@pytest.mark.parametrize("what", ["the folder", "its parent", "the file"])
def test_what_may_not_be_written_is_said(what: str) -> None:
    # Not below tmp_path: its parents are closed to anybody else.
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        parent.chmod(0o755)
        if what != "its parent":
            filled(parent / "store")
        closed = {"the folder": parent / "store", "its parent": parent}.get(what)
        if closed:
            closed.chmod(0o555)
        else:
            (parent / "store").chmod(0o777)
            (parent / "store" / "journal.db").chmod(0o444)
        with without_privilege():
            assert slug_of(lambda: open_and_write(parent / "store")) == "store-not-writable"
        if closed:
            closed.chmod(0o755)


# -- reading only


def test_reading_makes_nothing(folder: Path) -> None:
    assert slug_of(lambda: open_store(folder, readonly=True)) == "store-missing"
    assert not folder.exists()


def test_reading_reads_everything_and_refuses_to_write(folder: Path) -> None:
    digest = filled(folder)
    store = open_store(folder, readonly=True)
    assert store.cases() == ("B-1",)
    assert store.trials("B-1") == (trial(),)
    assert store.get(digest) == b"output " * 1000
    for write in (
        lambda: store.open_case(OPENED, at=1.0),
        lambda: store.append("B-1", [], at=1.0),
        lambda: store.record("B-1", [], at=1.0),
        lambda: store.put(b"other"),
        lambda: store.hold("search"),
    ):
        assert slug_of(write) == "store-not-writable"
    store.close()


def test_reading_sees_what_a_live_writer_wrote(folder: Path) -> None:
    writer = open_store(folder)
    writer.open_case(OPENED, at=1.0)
    reader = open_store(folder, readonly=True)
    writer.open_case(OPENED, at=1.0)
    assert reader.cases() == ("B-1", "B-2")
    reader.close()
    writer.close()


def test_a_folder_that_may_not_be_written_can_be_read() -> None:
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        parent.chmod(0o755)
        filled(parent / "store")
        (parent / "store").chmod(0o555)
        with without_privilege():
            store = open_store(parent / "store", readonly=True)
            assert store.cases() == ("B-1",)
            store.close()
        (parent / "store").chmod(0o755)


# -- the schema


def test_a_newer_schema_is_refused_and_left_alone(folder: Path) -> None:
    filled(folder)
    with raw_sql(folder) as raw:
        raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    for readonly in (False, True):
        assert slug_of(partial(open_store, folder, readonly=readonly)) == "store-too-new"
    with raw_sql(folder) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)


def test_a_newer_process_that_migrates_first_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(folder)
    with raw_sql(folder) as raw:
        raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    look = schema.is_current
    answers = iter([lambda *_: False, look])  # the first look was before the other process
    monkeypatch.setattr(schema, "is_current", lambda *given: next(answers)(*given))
    assert slug_of(lambda: open_store(folder)) == "store-too-new"
    with raw_sql(folder) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION + 1,)


def test_the_version_is_that_of_the_last_migration(folder: Path) -> None:
    migrations = sorted(Path(schema.__file__).with_name("migrations").iterdir())
    assert [int(each.name[:4]) for each in migrations] == list(range(1, schema.VERSION + 1))
    assert all(each.read_text().startswith("-- ") for each in migrations)
    filled(folder)
    with raw_sql(folder) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)


@pytest.mark.parametrize("table", ["cases", "events", "trials"])
@pytest.mark.parametrize("change", ["UPDATE {} SET at = 0", "DELETE FROM {}"])
def test_nobody_changes_what_was_recorded(folder: Path, table: str, change: str) -> None:
    filled(folder)
    with raw_sql(folder) as raw:
        before = raw.execute(f"SELECT * FROM {table}").fetchall()
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(change.format(table))
        assert raw.execute(f"SELECT * FROM {table}").fetchall() == before != []


def test_evidence_is_synced_and_logged_ahead(folder: Path) -> None:
    store = open_store(folder)
    (mode,), (sync,) = (
        store._connection.rows(f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous")
    )
    assert (mode, sync) == ("wal", 2)
    store.close()


# -- damage


def test_a_file_that_is_no_database_is_said_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "journal.db").write_bytes(b"my notes\n" * 1000)
    for readonly in (False, True):
        assert slug_of(partial(open_store, folder, readonly=readonly)) == "store-damaged"
    assert (folder / "journal.db").read_bytes() == b"my notes\n" * 1000


def test_a_database_of_another_program_is_said_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    with raw_sql(folder) as raw:
        raw.execute("CREATE TABLE theirs (x)")
    before = (folder / "journal.db").read_bytes()
    assert slug_of(lambda: open_store(folder)) == "store-damaged"
    assert (folder / "journal.db").read_bytes() == before


def test_a_folder_in_place_of_the_file_is_said(folder: Path) -> None:
    (folder / "journal.db").mkdir(parents=True)
    assert slug_of(lambda: open_store(folder)) == "store-not-writable"


def test_overwritten_pages_are_said(folder: Path) -> None:
    filled(folder, cases=50)
    size = (folder / "journal.db").stat().st_size
    with (folder / "journal.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    def read() -> None:
        store = open_store(folder)
        try:
            store.journal("B-1")
        finally:
            store.close()

    assert slug_of(read) == "store-damaged"


@pytest.mark.parametrize(
    "damage",
    [
        "body = zeroblob(length(body))",
        "body = substr(body, 1, length(body) - 5)",
        "body = x''",
        "packing = 'none'",
        "size = 5",
        "body = (SELECT body FROM artifacts WHERE digest = :other), size = 6000",
    ],
)
def test_a_damaged_artifact_is_not_given_back(folder: Path, damage: str) -> None:
    digest = filled(folder)
    store = open_store(folder)
    other = store.put(b"others" * 1000)
    with raw_sql(folder) as raw:
        raw.execute(
            f"UPDATE artifacts SET {damage} WHERE digest = :digest",
            {"digest": digest, "other": other},
        )
    assert slug_of(lambda: store.get(digest)) == "artifact-damaged"
    assert store.get(other) == b"others" * 1000
    store.close()


def test_a_record_of_another_version_is_said(folder: Path) -> None:
    filled(folder)
    with raw_sql(folder) as raw:
        raw.execute("""INSERT INTO events VALUES (1, 2, 1.0, '{"kind": "dreamt"}')""")
    store = open_store(folder)
    assert slug_of(lambda: store.journal("B-1")) == "record-unreadable"
    store.close()


# -- full disks and long locks

_FILL = """
import resource, signal, sys
from pathlib import Path
from becausal.domain.errors import CouldNotRun
from becausal.store import open_store
from becausal.testing.samples import OPENED, trial

store = open_store(Path(sys.argv[1]))
case = store.open_case(OPENED, at=1.0)
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
noise = iter(lambda: open("/dev/urandom", "rb").read(20_000), None)
for step in range(1000):
    try:
        store.record(case, [trial(step=step), trial(step=step, repeat=1)], at=1.0,
                     artifacts=[next(noise)])
    except CouldNotRun as error:
        print(error.slug, step)
        break
"""


def _steps_until_full(argv: list[str]) -> int:
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)
    slug, step = ended.stdout.split()
    assert slug == "store-full"
    return int(step)


def test_a_full_quota_keeps_what_was_acknowledged(folder: Path) -> None:
    steps = _steps_until_full([sys.executable, "-c", _FILL, str(folder), "limit"])
    assert steps > 0
    store = open_store(folder)
    wanted = [trial(step=step, repeat=n) for step in range(steps) for n in (0, 1)]
    assert store.trials("B-1") == tuple(wanted)
    store.record("B-1", [trial(step=steps)], at=2.0)
    store.close()


def test_a_full_disk_is_said(folder: Path) -> None:
    stage = ["bwrap", "--dev-bind", "/", "/", "--size", "400000", "--tmpfs", str(folder.parent)]
    try:
        works = subprocess.run([*stage, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        works = False
    if not works:
        pytest.skip("bubblewrap cannot mount a small disk here")
    argv = [*stage, sys.executable, "-c", _FILL, str(folder), "disk"]
    assert _steps_until_full(argv) > 0


def test_a_lock_kept_too_long_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(folder)
    monkeypatch.setattr(connection, "PATIENCE", 0.05)
    store = open_store(folder)
    with raw_sql(folder) as other:
        other.execute("BEGIN IMMEDIATE")
        assert slug_of(lambda: store.open_case(OPENED, at=1.0)) == "store-busy"
        assert store.cases() == ("B-1",)
        other.execute("ROLLBACK")
    assert store.open_case(OPENED, at=1.0) == "B-2"
    store.close()


def test_an_interrupted_write_leaves_nothing(folder: Path) -> None:
    filled(folder)
    connected = connection.Connection(folder / "journal.db", readonly=False)

    def interrupted() -> None:
        with connected.writing() as raw:
            raw.execute("INSERT INTO cases VALUES (2, 'B-2', 1.0)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with connected.writing() as raw:
        raw.execute("INSERT INTO cases VALUES (3, 'B-3', 1.0)")
    assert connected.rows("SELECT number FROM cases") == [(1,), (3,)]
    connected.close()


def test_threads_may_take_turns(folder: Path) -> None:
    store = open_store(folder)
    with ThreadPoolExecutor(max_workers=1) as another:
        assert another.submit(store.open_case, OPENED, at=1.0).result() == "B-1"
    assert store.cases() == ("B-1",)
    store.close()


def test_large_artifacts_are_packed_and_noise_is_not_grown(folder: Path) -> None:
    store = open_store(folder)
    flood, noise = b"line\n" * 200_000, os.urandom(100_000)
    store.put(flood)
    store.put(noise)
    with raw_sql(folder) as raw:
        rows = raw.execute("SELECT digest, packing, length(body) FROM artifacts").fetchall()
    sizes = {digest: (packing, size) for digest, packing, size in rows}
    assert sizes[bytes_id(noise)] == ("none", len(noise))
    packing, size = sizes[bytes_id(flood)]
    assert packing == "zstd"
    assert size < 1000
    store.close()


def test_listing_cases_imports_no_packer(folder: Path) -> None:
    filled(folder)
    program = (
        "import sys; from pathlib import Path; from becausal.store import open_store\n"
        "assert open_store(Path(sys.argv[1]), readonly=True).cases() == ('B-1',)\n"
        "sys.exit('zstandard' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(folder)]).returncode == 0

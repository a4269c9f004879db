"""Every store passes the same suite, and they agree call by call."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from becausal.ports.store import Store
from becausal.store import open_store
from becausal.testing.memory_store import Memory, MemoryStore
from becausal.testing.store_agreement import StoresAgree
from becausal.testing.store_conformance import Reach, StoreFacts


class TestMemory(StoreFacts):
    @pytest.fixture
    def reach(self) -> Reach:
        memory = Memory()
        return lambda: MemoryStore(memory)


class TestSqlite(StoreFacts):
    @pytest.fixture
    def reach(self, tmp_path: Path) -> Iterator[Reach]:
        opened: list[Store] = []

        def reach() -> Store:
            opened.append(open_store(tmp_path / ".becausal"))
            return opened[-1]

        yield reach
        for store in opened:
            store.close()


class SqliteAgreesWithMemory(StoresAgree):
    def backends(self) -> Sequence[Reach]:
        self.folder = Path(tempfile.mkdtemp())
        memory = Memory()
        return [lambda: MemoryStore(memory), lambda: open_store(self.folder / ".becausal")]

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder, ignore_errors=True)


TestAgreement = SqliteAgreesWithMemory.TestCase
TestAgreement.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)

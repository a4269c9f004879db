"""Each wall between rooms, broken once in a copy, to see it caught."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Checker = Callable[..., "subprocess.CompletedProcess[str]"]

# contract, module that breaks it, what it says, words of the complaint
BREACHES = (
    ("rooms", "becausal/domain/planted.py", "import becausal.inquiry", "becausal.domain.planted"),
    ("rooms", "becausal/inquiry/planted.py", "import becausal.ports", "becausal.inquiry.planted"),
    ("rooms", "becausal/ports/planted.py", "import becausal.store", "becausal.ports.planted"),
    ("rooms", "becausal/lab/planted.py", "import becausal.store", "becausal.lab.planted"),
    ("rooms", "becausal/store/planted.py", "import becausal.casework", "becausal.store.planted"),
    ("rooms", "becausal/casework/planted.py", "import becausal.lab", "becausal.casework.planted"),
    ("rooms", "becausal/attic/__init__.py", "", "becausal.attic"),
    ("purity", "becausal/domain/planted.py", "import os.path", "becausal.domain.planted"),
    ("purity", "becausal/domain/planted.py", "import asyncio", "becausal.domain.planted"),
    ("purity", "becausal/inquiry/planted.py", "from time import time", "becausal.inquiry.planted"),
    ("purity", "becausal/inquiry/planted.py", "import random", "becausal.inquiry.planted"),
    ("purity", "becausal/inquiry/planted.py", "import rich", "becausal.inquiry.planted"),
    ("processes", "becausal/casework/planted.py", "import subprocess", "becausal.casework.planted"),
    ("processes", "becausal/store/planted.py", "import psutil", "becausal.store.planted"),
    ("processes", "becausal/planted.py", "import multiprocessing", "becausal.planted"),
    ("sql", "becausal/casework/planted.py", "import sqlite3", "becausal.casework.planted"),
    ("sql", "becausal/lab/planted.py", "import psycopg", "becausal.lab.planted"),
    ("doors", "becausal/cli/planted.py", "import becausal.lab", "becausal.cli.planted"),
    ("doors", "becausal/cli/planted.py", "import becausal.store", "becausal.cli.planted"),
    ("doors", "becausal/cli/__init__.py", "import becausal.testing", "becausal.cli"),
    (
        "payload",
        "becausal_payload/planted.py",
        "import becausal.domain",
        "becausal_payload.planted",
    ),
    ("payload", "becausal_payload/planted.py", "import msgspec", "becausal_payload.planted"),
)


def test_every_wall_stands(top: Path, walls: Checker) -> None:
    checked = walls(top)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(("contract", "path", "text", "complaint"), BREACHES)
def test_breach_is_caught(
    copy: Path, walls: Checker, contract: str, path: str, text: str, complaint: str
) -> None:
    planted = copy / "src" / path
    planted.parent.mkdir(exist_ok=True)
    (planted.parent / "__init__.py").touch()
    planted.write_text(f"{text}\n")

    checked = walls(copy, contract)

    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert complaint in checked.stdout


@pytest.mark.parametrize(
    ("contract", "path", "text"),
    [
        ("processes", "becausal/lab/planted.py", "import subprocess"),
        ("sql", "becausal/store/planted.py", "import sqlite3"),
        ("purity", "becausal/inquiry/planted.py", "import math"),
    ],
)
def test_room_may_do_what_it_is_for(
    copy: Path, walls: Checker, contract: str, path: str, text: str
) -> None:
    (copy / "src" / path).write_text(f"{text}\n")

    checked = walls(copy, contract)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "KEPT" in checked.stdout

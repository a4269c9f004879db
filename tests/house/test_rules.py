"""The rules of tools/house, each broken once in a copy, to see it caught."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Checker = Callable[..., "subprocess.CompletedProcess[str]"]

LONG_FUNCTION = "def planted() -> None:\n" + "    print()\n" * 60
RAISES = "from becausal.domain.errors import {0}\n\n\ndef planted() -> None:\n    raise {1}\n"

# path, what is added to it, words of the complaint
BREACHES = (
    ("src/becausal/lab/planted.py", "x = 1\n" * 301, "planted.py: 301 lines"),
    ("src/becausal/lab/planted.py", LONG_FUNCTION, "planted has 61 lines"),
    ("src/becausal/store/planted.py", "import os\n\nos.fork()\n", "os.fork starts a process"),
    ("src/becausal/store/planted.py", "from os import execvp\n", "os.execvp starts a process"),
    (
        "src/becausal/casework/planted.py",
        "import asyncio\n\nasyncio.create_subprocess_exec('ls')\n",
        "create_subprocess_exec starts a process",
    ),
    ("src/becausal_payload/planted.py", "import attrs\n", "imports attrs"),
    ("src/becausal_payload/planted.py", "def f():\n    import tomllib\n", "imports tomllib"),
    ("src/becausal_payload/planted.py", "from becausal import domain\n", "imports becausal"),
    (
        "src/becausal_payload/planted.py",
        "match 1:\n    case 1:\n        pass\n",
        "not the grammar of Python 3.8",
    ),
    (
        "src/becausal/lab/planted.py",
        RAISES.format("CouldNotRun", "CouldNotRun('planted-slug', 'what')"),
        "slug `planted-slug` is not explained",
    ),
    (
        "src/becausal/lab/planted.py",
        "from becausal.domain.recording import Obstacle\n\n"
        "SEEN = Obstacle(slug='planted-slug', what='what')\n",
        "slug `planted-slug` is not explained",
    ),
    (
        "src/becausal_payload/planted.py",
        "SEEN = {'slug': 'planted-slug'}\n",
        "slug `planted-slug` is not explained",
    ),
    (
        "src/becausal/lab/planted.py",
        "from becausal.domain.errors import CouldNotRun\n\n\n"
        "class Planted(CouldNotRun):\n    pass\n\n\nraise Planted('planted-slug', 'what')\n",
        "slug `planted-slug` is not explained",
    ),
    ("docs/messages.md", "\n## zz-never-said\nText.\n", "nothing in src says `zz-never-said`"),
    ("docs/messages.md", "\n## aa-late\nText.\n", "`aa-late` belongs before"),
    ("docs/messages.md", "\n## zz-silent\n", "`zz-silent` is not explained"),
    (
        "docs/glossary.md",
        "| **Phantom** | never seen | `domain/trial.py` |\n",
        "`Phantom` says there is a Phantom in domain/trial.py",
    ),
    ("docs/glossary.md", "| **Trial key** | no place |  |\n", "does not say that it is in"),
    ("docs/decisions/9999-planted.md", "# Planted\n", "9999-planted.md is not listed"),
    ("docs/planted.md", "see /" + "work/planted for more\n", "tells of one machine"),
    ("docs/planted.md", "from https://files.py" + "thonhosted.org/x\n", "tells of one machine"),
)


def test_every_rule_is_kept(top: Path, rules: Checker) -> None:
    checked = rules(top)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(("path", "text", "complaint"), BREACHES)
def test_breach_is_caught(copy: Path, rules: Checker, path: str, text: str, complaint: str) -> None:
    before = rules(copy).stdout
    with (copy / path).open("a", encoding="utf-8") as file:
        file.write(text)

    checked = rules(copy)

    assert checked.returncode == 1, checked.stdout + checked.stderr
    assert complaint not in before
    assert complaint in checked.stdout


def test_changelog_without_unreleased_section_is_caught(copy: Path, rules: Checker) -> None:
    (copy / "CHANGELOG.md").write_text("# Changelog\n")

    assert "no section `Unreleased`" in rules(copy).stdout


def test_ignored_file_may_tell_of_the_machine(copy: Path, rules: Checker) -> None:
    (copy / "mine").write_text("/" + "work/planted\n")

    assert "mine:1" in rules(copy).stdout
    (copy / ".gitignore").write_text("mine\n")
    assert "mine:1" not in rules(copy).stdout


def test_words_and_method_load_neither_framework_nor_engine(top: Path) -> None:
    """Read-only commands start fast because the rooms below them pull in nothing large."""
    modules = [
        ".".join(file.relative_to(top / "src").with_suffix("").parts)
        for room in ("domain", "inquiry")
        for file in sorted((top / "src/becausal" / room).glob("*.py"))
        if file.name != "__init__.py"
    ]
    script = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout.split()

    heavy = {"asyncio", "cyclopts", "multiprocessing", "psutil", "rich", "sqlite3", "subprocess"}
    assert "becausal.domain.trial" in loaded
    assert heavy.isdisjoint(loaded)

"""A person's repository to work on, and a way to see whether anything touched it."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from becausal.lab.repository import GitRepository, open_repository


class Person:
    """Somebody's repository. `fingerprint` has every file's bytes, mode and time of change, `.git`
    included."""

    def __init__(self, top: Path) -> None:
        self.top = top

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.top, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def fingerprint(self) -> dict[str, tuple[int, int, str]]:
        found = {}
        for here, folders, files in os.walk(self.top):
            for name in (*folders, *files):
                path = os.path.join(here, name)
                state = os.lstat(path)
                if os.path.islink(path):
                    content = os.readlink(path)
                elif os.path.isfile(path):
                    content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
                else:
                    content = ",".join(sorted(os.listdir(path)))
                # git marks an object as fresh when a capture needs it as well: only its time moves.
                fresh = "/objects/" in path and os.path.isfile(path)
                when = 0 if fresh else state.st_mtime_ns
                found[os.fsencode(path).hex()] = (state.st_mode, when, content)
        return found


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def empty(tmp_path: Path) -> Person:
    """A repository without a commit."""
    top = tmp_path / "harbour"
    top.mkdir()
    person = Person(top)
    person.git("init", "-q")
    return person


@pytest.fixture
def person(empty: Person) -> Person:
    """A repository with two commits and nothing uncommitted."""
    empty.write("src/ship.py", "SPEED = 1\n")
    empty.write("src/crew.py", "CREW = 1\n")
    empty.write("README", "harbour\n")
    empty.write(".gitignore", "*.log\nbuild/\n.env\n.venv/\n__pycache__/\n")
    empty.commit("Build the harbour")
    empty.write("src/ship.py", "SPEED = 2\n")
    empty.commit("Sail faster")
    empty.git("tag", "-a", "v1", "-m", "first")
    return empty


@pytest.fixture
def busy(person: Person) -> Person:
    """The same with staged, unstaged, untracked, stashed and ignored work."""
    person.write("README", "stashed\n")
    person.git("stash")
    person.write("src/ship.py", "SPEED = 3\n")
    person.git("add", "src/ship.py")
    person.write("src/crew.py", "CREW = 7\n")
    person.write("src/new.py", "NEW = 1\n")
    person.write(".env", "TOKEN=1\n")
    return person


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def repository(person: Person, cache: Path) -> GitRepository:
    found = open_repository(person.top, cache)
    assert isinstance(found, GitRepository)
    return found

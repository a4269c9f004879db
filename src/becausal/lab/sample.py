"""The sample project: a small harbour with a history, and a bug that shows now and then."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from becausal.lab.process import run_tool

COMMIT, FILE = "== ", "-- "
FIRST_COMMIT_AT = 1_700_000_000
BETWEEN_COMMITS = 86_400
TEST = "tests/test_plan.py"
CASE = "PlanTest"
NAME = "test_a_long_ship_finds_a_berth"


def make_sample(folder: Path) -> Path:
    """Write the project with its history; answers its top. The same every time, commit ids too."""
    top = folder / "harbour"
    top.mkdir(parents=True)
    _git(top, "init", "--quiet", "--initial-branch=main")
    text = resources.files("becausal.lab").joinpath("samples", "harbour.txt").read_text()
    for number, (message, files) in enumerate(commits(text)):
        for name, content in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(content)
        _git(top, "add", "--all")
        _git(top, "commit", "--quiet", "--message", message, at=number)
    return top


def commits(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the history: a message, then the files as they stand after the commit."""
    for commit in text.split("\n" + COMMIT):
        head, *files = commit.removeprefix(COMMIT).split("\n" + FILE)
        yield (
            head.strip(),
            {
                name: content.rstrip("\n") + "\n"
                for name, _, content in (file.partition("\n") for file in files)
            },
        )


def _git(top: Path, *words: str, at: int = 0) -> None:
    when = f"{FIRST_COMMIT_AT + at * BETWEEN_COMMITS} +0000"
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_DATE": when,
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "Mate", f"GIT_{role}_EMAIL": "mate@harbour.example"}
    run_tool(["git", *words], cwd=top, env=environment, timeout=60, check=True)

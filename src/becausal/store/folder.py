"""The store's folder: made on demand, kept out of version control by itself."""

from __future__ import annotations

import os
from pathlib import Path

from becausal.domain.errors import CouldNotRun
from becausal.store.sqlite import SqliteStore
from becausal.store.trouble import not_writable, of_the_folder

FOLDER = ".becausal"
"""Its usual name, beside the code under study."""


def open_store(folder: Path, *, readonly: bool = False) -> SqliteStore:
    """The store in a folder; made when it is not there, unless it is only to be read.

    `readonly` writes nothing and raises `store-missing` where no store is.
    """
    if readonly:
        _must_exist(folder)
    else:
        _make(folder)
    return SqliteStore(folder, readonly=readonly)


def _must_exist(folder: Path) -> None:
    try:
        exists = (folder / "journal.db").is_file()
    except OSError as error:
        raise of_the_folder(folder, error) from error
    if not exists:
        raise CouldNotRun(
            "store-missing",
            "there is no store here yet",
            value=str(folder),
            hint="`becausal reproduce -- CMD` opens the first case",
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _ignore(folder)
    except FileExistsError as error:
        raise not_writable(folder, "a file is in its place") from error
    except OSError as error:
        raise of_the_folder(folder, error) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise not_writable(folder, "the folder does not let you write")


def _ignore(folder: Path) -> None:
    """Let git ignore the folder whole. Renamed into place: never seen half written."""
    ignore = folder / ".gitignore"
    if not ignore.exists():
        draft = folder / f".gitignore.{os.getpid()}"
        draft.write_text("*\n", encoding="utf-8")
        draft.replace(ignore)

"""What outlives a command: journal, trials, artifacts. The only room that speaks SQL."""

from becausal.store.folder import FOLDER, open_store

__all__ = ["FOLDER", "open_store"]

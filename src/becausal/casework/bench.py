"""The bench: the ports that a chapter works with, gathered by wiring."""

from __future__ import annotations

from dataclasses import dataclass

from becausal.ports.clock import Clock
from becausal.ports.lab import Lab
from becausal.ports.progress import Progress
from becausal.ports.repository import Repository
from becausal.ports.store import Store


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything a chapter may reach; nothing else reaches the world."""

    store: Store
    lab: Lab
    repository: Repository
    clock: Clock
    progress: Progress
    tool_version: str
    entropy: int = 0
    """Drawn once per command: names and seeds of new searches derive from it."""

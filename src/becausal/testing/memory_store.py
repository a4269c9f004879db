"""A store in memory: for tests, and to hold the real ones against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from becausal.domain.identity import bytes_id
from becausal.domain.journal import AnyEvent, CaseOpened, Entry
from becausal.domain.trial import Trial, TrialKey
from becausal.domain.written import read_event, read_trial, written_event, written_trial
from becausal.ports.store import artifact_unknown, case_unknown, recorded_twice


@dataclass
class Memory:
    """What a disk is to the real store: several `MemoryStore` may share it."""

    events: dict[str, list[tuple[float, str]]] = field(default_factory=dict)
    trials: dict[str, dict[TrialKey, str]] = field(default_factory=dict)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)


class MemoryStore:
    """Implements `ports.store.Store`. Keeps records as text, so they read back as from disk."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = Memory() if memory is None else memory

    def open_case(self, opened: CaseOpened, *, at: float) -> str:
        body = written_event(opened)
        name = f"B-{len(self._memory.events) + 1}"
        self._memory.events[name] = [(at, body)]
        self._memory.trials[name] = {}
        return name

    def cases(self) -> tuple[str, ...]:
        return tuple(self._memory.events)

    def append(self, case: str, events: Sequence[AnyEvent], *, at: float) -> None:
        self._must_know(case)
        bodies = [written_event(event) for event in events]
        self._memory.events[case] += [(at, body) for body in bodies]

    def journal(self, case: str) -> tuple[Entry, ...]:
        self._must_know(case)
        return tuple(
            Entry(case=case, seq=seq, at=at, event=read_event(body))
            for seq, (at, body) in enumerate(self._memory.events[case], 1)
        )

    def record(
        self, case: str, trials: Sequence[Trial], *, at: float, artifacts: Sequence[bytes] = ()
    ) -> None:
        self._must_know(case)
        known = self._memory.trials[case]
        added: dict[TrialKey, str] = {}
        bodies = [written_trial(trial) for trial in trials]
        for trial, body in zip(trials, bodies, strict=True):
            if trial.key in known or trial.key in added:
                raise recorded_twice(case, trial.key)
            added[trial.key] = body
        known.update(added)
        for data in artifacts:
            self.put(data)

    def trials(self, case: str, search: str | None = None) -> tuple[Trial, ...]:
        self._must_know(case)
        return tuple(
            read_trial(body)
            for key, body in sorted(self._memory.trials[case].items())
            if search is None or key.search == search
        )

    def put(self, data: bytes) -> str:
        digest = bytes_id(data)
        self._memory.artifacts[digest] = bytes(data)
        return digest

    def get(self, digest: str) -> bytes:
        if digest not in self._memory.artifacts:
            raise artifact_unknown(digest)
        return self._memory.artifacts[digest]

    @contextmanager
    def hold(self, name: str) -> Iterator[bool]:
        if name in self._memory.held:
            yield False
            return
        self._memory.held.add(name)
        try:
            yield True
        finally:
            self._memory.held.remove(name)

    def close(self) -> None:
        """Nothing to give back; what was kept stays in the memory."""

    def _must_know(self, case: str) -> None:
        if case not in self._memory.events:
            raise case_unknown(case, self.cases())

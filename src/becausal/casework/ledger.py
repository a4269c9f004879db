"""The ledger: recordings become judged trials, journalled before anyone uses them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from becausal.casework.bench import Bench
from becausal.domain.criterion import Criterion
from becausal.domain.identity import bytes_id
from becausal.domain.journal import SymptomNamed
from becausal.domain.recording import Recording
from becausal.domain.signature import Signature
from becausal.domain.trial import Outcome, Trial, TrialKey
from becausal.inquiry.outcome import judge
from becausal.ports.lab import Order

# A commit costs a disk flush, a trial a few milliseconds: a handful share one.
GROUP_SIZE = 16
GROUP_SECONDS = 0.25


class Ledger:
    """Journals the trials of one step.

    While the failure of the case has no name yet, recordings wait until all that stand before
    them are in: the first failing run names it, and which one is first must not depend on
    which worker was faster.
    """

    def __init__(
        self, bench: Bench, case: str, criterion: Criterion, symptom: Signature | None
    ) -> None:
        self.symptom = symptom
        self._bench = bench
        self._case = case
        self._criterion = criterion
        self._expected: list[TrialKey] = []
        self._waiting: dict[TrialKey, tuple[Order, Recording]] = {}
        self._ready: list[Trial] = []
        self._artifacts: list[bytes] = []
        self._flushed_at = bench.clock.elapsed()

    def expect(self, keys: Sequence[TrialKey]) -> None:
        """Name the trials to come, in their order."""
        self._expected = list(keys)

    def take(self, key: TrialKey, order: Order, recording: Recording) -> list[Trial]:
        """Accept one recording; answers the trials that are judged by it."""
        self._waiting[key] = (order, recording)
        judged: list[Trial] = []
        while (ready := self._next_ready()) is not None:
            judged.append(self._judge(ready, *self._waiting.pop(ready)))
            self._expected.remove(ready)
        late = self._bench.clock.elapsed() - self._flushed_at > GROUP_SECONDS
        if len(self._ready) >= GROUP_SIZE or late:
            self.flush()
        return judged

    def drain(self) -> list[Trial]:
        """The step ended early: judge what is in, in order, though some before it are missing."""
        return [
            self._judge(key, *self._waiting.pop(key))
            for key in list(self._expected)
            if key in self._waiting
        ]

    def flush(self) -> None:
        """Make every judged trial durable."""
        self._flushed_at = self._bench.clock.elapsed()
        if not self._ready:
            return
        self._bench.store.record(
            self._case, self._ready, at=self._bench.clock.now(), artifacts=self._artifacts
        )
        self._ready, self._artifacts = [], []

    def _next_ready(self) -> TrialKey | None:
        if self.symptom is not None:
            return next(iter(self._waiting), None)
        first = self._expected[0] if self._expected else None
        return first if first in self._waiting else None

    def _judge(self, key: TrialKey, order: Order, recording: Recording) -> Trial:
        verdict = judge(recording, self._criterion, self.symptom)
        trial = Trial(
            key=key,
            warmth=order.condition.warmth,
            outcome=verdict.outcome,
            signature=verdict.signature,
            exit_code=recording.exit_code,
            reason=verdict.reason,
            seconds=recording.seconds,
            cpu_seconds=recording.cpu_seconds,
            max_rss=recording.max_rss,
            seed=order.seed,
            hash_seed=order.hash_seed,
            server=recording.server,
            isolation=recording.isolation,
            notes=recording.notes,
            artifacts=self._keep(recording),
        )
        self._ready.append(trial)
        if self.symptom is None:
            self.name_symptom([trial])
        return trial

    def name_symptom(self, trials: Sequence[Trial]) -> None:
        """Journal the failure of the case, if one of these shows it, after what it rests on."""
        failed = [t for t in trials if t.outcome is Outcome.FAILED]
        if not failed or (signature := failed[0].signature) is None:
            return
        trial = failed[0]
        self.flush()
        named = SymptomNamed(signature=signature, trial=trial.key)
        self._bench.store.append(self._case, [named], at=self._bench.clock.now())
        self.symptom = signature

    def _keep(self, recording: Recording) -> tuple[tuple[str, str], ...]:
        details = {
            "exit_code": recording.exit_code,
            "signal": recording.signal,
            "timed_out": recording.timed_out,
            "obstacle": recording.obstacle,
            "tests": recording.tests,
            "raised": recording.raised,
        }
        parts = {
            "stdout": recording.stdout.joined(),
            "stderr": recording.stderr.joined(),
            "details": msgspec.json.encode(details),
            "imported": "\n".join(recording.imported).encode(errors="surrogateescape"),
        }
        kept = {name: data for name, data in parts.items() if data}
        self._artifacts.extend(kept.values())
        return tuple(sorted((name, bytes_id(data)) for name, data in kept.items()))

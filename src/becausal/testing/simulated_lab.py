"""A laboratory whose truth is known: it runs nothing, and answers at once."""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence

import msgspec

from becausal.domain.condition import Condition
from becausal.domain.identity import content_id
from becausal.domain.observation import Surroundings
from becausal.domain.recording import Frame, Obstacle, Output, Raised, Recording, TestReport
from becausal.inquiry.reproduce import COLD, WARM_ARMS
from becausal.inquiry.search import Batch, Step, Tally, Told
from becausal.ports.lab import Order, Warming

_TEST = "tests/test_simulated.py::test_it"


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """How trials really go. Rates are shares of all trials; what they leave over passes."""

    failing: float = 0.0
    """Trials that show the failure asked about."""
    failing_warm: float | None = None
    """The same on warm servers; None: as in fresh processes."""
    hash_seeds: float | None = None
    """Share of hash seeds under which every trial fails, in place of the rates above."""
    otherwise: float = 0.0
    """Trials that show another failure."""
    timing_out: float = 0.0
    could_not_run: float = 0.0
    seconds: float = 0.25
    """Duration of a fresh process; a warm trial takes a hundredth."""

    def outcome(self, draw: float, *, warm: bool, hash_seed: int) -> str:
        """The outcome that a number drawn evenly from [0, 1) stands for, as Tally names it."""
        failing = self.failing if self.failing_warm is None or not warm else self.failing_warm
        if self.hash_seeds is not None:
            lucky = random.Random(f"hash seed {hash_seed}").random() >= self.hash_seeds
            failing = 0.0 if lucky else 1.0
        # Trials that say nothing come first: a failure hidden behind them is not seen.
        shares = (
            ("could_not_run", self.could_not_run),
            ("timed_out", self.timing_out),
            ("otherwise", self.otherwise),
        )
        for name, share in shares:
            if draw < share:
                return name
            draw -= share
        left = 1.0 - sum(share for _, share in shares)
        return "failed" if draw < failing * left else "passed"


class SimulatedTallies:
    """Answers steps with counts: a search meets a known truth, thousands of times a second."""

    def __init__(self, truth: Truth, seed: int = 0) -> None:
        self._truth = truth
        self._random = random.Random(f"tallies {seed}")
        self._servers = {arm: self._random.getrandbits(32) for arm in WARM_ARMS}

    def answer(self, step: Step, *, budget_ended: bool = False) -> Told:
        tallies = {batch.arm: self._tally(batch) for batch in step.batches}
        seconds = sum(tally.seconds for tally in tallies.values())
        return Told(tallies=tallies, seconds=seconds, budget_ended=budget_ended)

    def _tally(self, batch: Batch) -> Tally:
        warm = batch.arm != COLD
        counts: dict[str, int] = {}
        for _ in range(batch.repeats):
            hash_seed = self._servers[batch.arm] if warm else self._random.getrandbits(32)
            name = self._truth.outcome(self._random.random(), warm=warm, hash_seed=hash_seed)
            counts[name] = counts.get(name, 0) + 1
        seconds = self._truth.seconds * batch.repeats * (0.01 if warm else 1.0)
        return msgspec.convert({**counts, "seconds": seconds}, Tally)


class SimulatedLab:
    """A Lab of which the truth is known, by the argument vector of the condition's command.

    Like a real one it answers out of order. The same order has the same recording every time,
    whatever runs beside it, so that a resumed search meets the same world.
    """

    def __init__(
        self,
        truth: Truth | Mapping[tuple[str, ...], Truth],
        *,
        seed: int = 0,
        width: int = 2,
        warming: Warming | None = None,
    ) -> None:
        self._truth = truth
        self._seed = seed
        self._width = width
        self._warming = warming or Warming(possible=True, tests=1)
        self.orders: list[Order] = []
        """Every order that was run, in the order of running."""
        self.closed = False

    @property
    def width(self) -> int:
        return self._width

    def warming(self, condition: Condition) -> Warming:
        return self._warming

    def run(self, orders: Sequence[Order]) -> Generator[tuple[Order, Recording], None, None]:
        if self.closed:
            raise ValueError("the laboratory is closed")
        shuffled = list(orders)
        random.Random(f"order {self._seed} {len(self.orders)}").shuffle(shuffled)
        for order in shuffled:
            self.orders.append(order)
            yield order, self._recording(order)

    def surroundings(self, condition: Condition) -> Surroundings:
        return Surroundings(python="3.11.7 /simulated/python", platform="simulated")

    def close(self) -> None:
        self.closed = True

    def _truth_of(self, condition: Condition) -> Truth:
        if isinstance(self._truth, Truth):
            return self._truth
        return self._truth[condition.command.argv]

    def _recording(self, order: Order) -> Recording:
        truth = self._truth_of(order.condition)
        warm = order.condition.warmth == "warm"
        drawn = random.Random(f"{self._seed} {content_id(order.condition)} {order.seed}")
        name = truth.outcome(drawn.random(), warm=warm, hash_seed=order.hash_seed)
        seconds = truth.seconds * (0.01 if warm else 1.0) * (0.9 + 0.2 * drawn.random())
        recording = msgspec.structs.replace(
            _RECORDINGS[name],
            seconds=order.condition.limits.seconds if name == "timed_out" else seconds,
            cpu_seconds=seconds,
            max_rss=50 * 2**20,
            seed=order.seed,
            server=f"simulated-{order.hash_seed}" if warm else "",
            isolation=("simulated",),
            imported=("simulated.py", "tests/test_simulated.py"),
        )
        if name not in ("failed", "otherwise"):
            return recording
        return _with_failure(recording, name, drawn.randrange(100))


_RECORDINGS = {
    "passed": Recording(exit_code=0, tests=(TestReport(id=_TEST, outcome="passed"),)),
    "failed": Recording(exit_code=1),
    "otherwise": Recording(exit_code=1),
    "timed_out": Recording(timed_out=True),
    "could_not_run": Recording(
        obstacle=Obstacle(slug="command-missing", what="the simulation could not run")
    ),
}


def _with_failure(recording: Recording, name: str, value: int) -> Recording:
    """What a failing test leaves, its message with a value that differs from run to run."""
    kind, message = "AssertionError", f"got {value}"
    if name == "otherwise":
        kind, message = "ConnectionError", f"no answer from port {40_000 + value}"
    file = "tests/test_simulated.py"
    frames = (
        Frame(file=file, function="test_it", line=4, own=True),
        Frame(file="simulated.py", function="compute", line=10 + value, own=True),
    )
    text = (
        "Traceback (most recent call last):\n"
        f'  File "{file}", line 4, in test_it\n    compute()\n{kind}: {message}\n'
    )
    report = TestReport(
        id=_TEST,
        outcome="failed",
        raised=Raised(kind=kind, message=message, frames=frames),
        text=text,
    )
    return msgspec.structs.replace(recording, tests=(report,), stdout=Output(head=text.encode()))

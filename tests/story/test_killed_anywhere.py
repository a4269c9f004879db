"""Killed at any moment: the repository is untouched, nobody is left, and the run goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import psutil
import pytest

from becausal.casework.conduct import tally_of
from becausal.casework.plan import derived_seed
from becausal.domain.finding import Reproduction
from becausal.domain.journal import CaseOpened, SearchDelivered, SearchEnded, SearchStarted
from becausal.domain.trial import Outcome, Trial, TrialKey
from becausal.inquiry.reproduce import COLD, WARM_ARMS, Reproduce, ReproduceParameters
from becausal.inquiry.search import Step, Tally, Told

# What a trial does depends on nothing but its seed, and each that really runs says so.
DICE = """
import os, random, socket

def test_roll():
    drawn = random.getrandbits(48)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.sendto(str(drawn).encode(), ("127.0.0.1", int(os.environ["STORY_PORT"])))
    assert drawn % 10 >= 3
"""
SHORT = ("--runs", "11", "--env", "PYTHONHASHSEED=0")
EXIT_CODES = {"consistent": 0, "intermittent": 0, "not-reproduced": 1, "could-not-run": 3}


def many(few: int, most: int) -> list[Any]:
    """A few rounds always, the others where faults are looked for."""
    rest = range(few, most)
    return [*range(few), *(pytest.param(number, marks=pytest.mark.faults) for number in rest)]


def drawn(trial_seed: int) -> int:
    return random.Random(trial_seed).getrandbits(48)


def foreseen(key: TrialKey, seed: int) -> Outcome:
    """The outcome of a trial, from its seed alone."""
    rolled = drawn(derived_seed(seed, key, "trial")) % 10
    return Outcome.PASSED if rolled >= 3 else Outcome.FAILED


def uninterrupted(
    started: SearchStarted, outcome: Callable[[TrialKey, int], Outcome] = foreseen
) -> tuple[Reproduction, set[TrialKey]]:
    """What the search ends with when nothing disturbs it, and the trials it asks for."""
    given = {name: value for name, value in started.parameters.items() if name != "seconds"}
    search = Reproduce(msgspec.convert(given, ReproduceParameters))
    arms = dict(zip(sorted((COLD, *WARM_ARMS)), started.conditions, strict=False))
    asked: set[TrialKey] = set()
    number = 0
    while isinstance(step := search.next_step(), Step):
        tallies = {batch.arm: Tally() for batch in step.batches}
        for batch in step.batches:
            for repeat in range(batch.repeats):
                key = TrialKey(started.search, number, arms[batch.arm].id, repeat)
                asked.add(key)
                trial = Trial(key=key, warmth="cold", outcome=outcome(key, started.seed))
                tallies[batch.arm] += tally_of(trial)
        search.tell(Told(tallies=tallies))
        number += 1
    return step.finding, asked


class Announced:
    """Hears from every trial that really runs."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self.port = str(self._socket.getsockname()[1])

    def wait_for_one(self, seconds: float) -> int | None:
        self._socket.settimeout(seconds)
        try:
            return int(self._socket.recv(64))
        except TimeoutError:
            return None

    def heard(self) -> list[int]:
        """All since the last time, sorted."""
        self._socket.setblocking(False)
        found = []
        while True:
            try:
                found.append(int(self._socket.recv(64)))
            except BlockingIOError:
                return sorted(found)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def announced() -> Iterator[Announced]:
    made = Announced()
    yield made
    made.close()


def in_the_middle_of_work(desk: Any) -> Any:
    """A repository with every kind of unfinished work in it."""
    desk.commit(
        {
            "tests/test_dice.py": "def test_roll():\n    pass\n",
            "kept.txt": "kept\n",
            "staged.txt": "old\n",
            "changed.txt": "old\n",
            "removed.txt": "gone soon\n",
            "renamed.txt": "a name of its own\n" * 9,
            "tool.sh": "#!/bin/sh\n",
            ".gitignore": "ignored/\n.env\n*.log\n",
        }
    )
    desk.git("tag", "light")
    desk.git("tag", "-a", "heavy", "-m", "a tag with words")
    desk.git("branch", "other")
    desk.git("config", "harbour.pilot", "aboard")
    for stashed in ("first", "second"):
        desk.write({"kept.txt": f"{stashed} thought\n", f"{stashed}.txt": "untracked then\n"})
        desk.git("stash", "push", "--quiet", "--include-untracked")
    hook = desk.top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{desk.home}/hook-ran'\n")
    hook.chmod(0o755)
    desk.write({"staged.txt": "new\n", "added.txt": "staged\n", "both.txt": "staged\n"})
    desk.git("add", "staged.txt", "added.txt", "both.txt")
    desk.git("rm", "--quiet", "removed.txt")
    desk.git("mv", "renamed.txt", "moved.txt")
    desk.write(
        {
            "both.txt": "and changed since\n",
            "changed.txt": "new\n",
            "tests/test_dice.py": DICE,
            "untracked/ünicode name.txt": "new\n",
            "ignored/big.bin": os.urandom(5000),
            ".env": "COLOUR=blue\n",
            "run.log": "a line\n",
        }
    )
    (desk.top / "tool.sh").chmod(0o755)
    (desk.top / "link").symlink_to("kept.txt")
    (desk.top / "empty").mkdir()
    (desk.top / "staged.txt").chmod(0o400)
    return desk


class Story:
    """One command on one repository, and what must be true of it at all times."""

    def __init__(self, desk: Any, announced: Announced, words: tuple[str, ...] = SHORT) -> None:
        self.desk, self.announced = desk, announced
        self.words = ("reproduce", "--json", *words, *desk.pytest("tests/test_dice.py"))
        self.before = self.untouched()

    def start(self) -> Any:
        return self.desk.start(*self.words, STORY_PORT=self.announced.port)

    def untouched(self) -> dict[str, Any]:
        home = {f"~/{name}": s for name, s in self.desk.fingerprint(self.desk.home).items()}
        return {**self.desk.fingerprint(), **home}

    def check_the_scene(self) -> None:
        """Nobody is left and nothing was touched."""
        assert self.desk.nobody_left(), self.desk.alive()
        assert changed(self.before, self.untouched()) == {}

    def finish(self) -> dict[str, Any]:
        """Run the command to its end: it goes on from what is recorded, and is right."""
        recorded = self.desk.trials()
        self.announced.heard()
        ended = self.start().end()
        assert ended.code == EXIT_CODES[ended.record["verdict"]], ended
        self.check_the_scene()
        after = self.desk.trials()
        assert {place: after[place] for place in recorded} == recorded
        ran = [trial for place, trial in after.items() if place not in recorded]
        assert self.announced.heard() == sorted(drawn(trial.seed) for trial in ran)
        self.check_the_answer(ended.record)
        return ended.record

    def check_the_answer(self, record: dict[str, Any]) -> None:
        """It is what an undisturbed run of the same search gives, trial by trial."""
        events = self.desk.journal()
        (started,) = [e for e in events if _of(e, SearchStarted, record["search"])]
        finding, asked = uninterrupted(started)
        trials = [t for t in self.desk.trials().values() if t.key.search == started.search]
        assert {t.key: t.outcome for t in trials} == {
            key: foreseen(key, started.seed) for key in asked
        }
        assert record["strata"] == json.loads(msgspec.json.encode(finding.strata))
        assert record["verdict"] == finding.verdict
        assert record["clean_runs"] == {f"{level:g}": n for level, n in finding.gone_runs}
        assert (record["mode"], record["stopped"]) == (finding.mode, finding.stopped)
        assert record["trials"] == len(trials) == len(asked)

    def answers(self) -> int:
        """How many answers were handed over; a search is begun only for the next one."""
        events = self.desk.journal()
        assert sum(isinstance(e, CaseOpened) for e in events) <= 1
        begun, ended, handed_over = (
            sum(isinstance(e, kind) for e in events)
            for kind in (SearchStarted, SearchEnded, SearchDelivered)
        )
        assert handed_over <= ended <= begun <= handed_over + 1
        return handed_over


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What differs, with both states."""
    paths = before.keys() | after.keys()
    return {p: (before.get(p), after.get(p)) for p in paths if before.get(p) != after.get(p)}


def _of(event: Any, kind: type, search: str) -> bool:
    return isinstance(event, kind) and event.search == search


@pytest.fixture(scope="module")
def durations(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], float]:
    """Seconds that runs which nothing disturbs took, by their words; the first fills it."""
    return {}


@pytest.fixture
def story(
    desk: Any, announced: Announced, durations: dict[tuple[str, ...], float]
) -> Callable[..., tuple[Story, float]]:
    """A story and the seconds that its command takes, from start to close."""

    def make(words: tuple[str, ...] = SHORT) -> tuple[Story, float]:
        made = Story(in_the_middle_of_work(desk), announced, words)
        if words not in durations:
            began = time.monotonic()
            made.finish()
            durations[words] = time.monotonic() - began
        return made, durations[words]

    return make


@pytest.mark.parametrize("number", many(6, 106))
def test_killed_at_any_moment_it_leaves_no_trace_and_goes_on(
    number: int, story: Callable[..., tuple[Story, float]]
) -> None:
    moments = random.Random(number)
    # Long rounds are adaptive, with three warm servers; the cache is new in most, used in some.
    long = number >= 6 and number % 4 == 0
    one, seconds = story(() if long else SHORT)
    if number % 5 == 4:
        one.finish()
    for _ in range(moments.choice((1, 1, 2))):
        stop(one, seconds, moments, signal.SIGKILL)
    handed_over = one.answers()
    one.finish()
    assert one.answers() == handed_over + 1


def stop(one: Story, seconds: float, moments: random.Random, number: int) -> Any:
    """Send a run a signal at some moment of its life, and look at the scene."""
    for _ in range(10):
        before = one.answers()
        run = one.start()
        hit = run.dies_at(moments.uniform(0, seconds), number)
        ended = run.end()
        one.check_the_scene()
        if one.answers() > before:
            # What the journal calls handed over was really printed, whole.
            one.check_the_answer(ended.record)
        if hit:
            return ended
    raise AssertionError("no run lived long enough")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seed", many(1, 12))
def test_asked_to_end_at_any_moment_it_leaves_no_trace_and_goes_on(
    seed: int, number: int, story: Callable[..., tuple[Story, float]]
) -> None:
    one, seconds = story()
    ended = stop(one, seconds, random.Random(seed), number)
    if number == signal.SIGINT and ended.out and "error" in ended.record:
        assert ended.code == 130, ended
        assert ended.record["error"]["slug"] == "interrupted"
    elif number == signal.SIGINT:
        # Before our first line, or when the answer was out.
        assert ended.code in (130, -signal.SIGINT) or "verdict" in ended.record, ended
    handed_over = one.answers()
    one.finish()
    assert one.answers() == handed_over + 1


def test_interrupted_it_tells_a_person_what_to_do(desk: Any, announced: Announced) -> None:
    one = Story(in_the_middle_of_work(desk), announced)
    words = [word for word in one.words if word != "--json"]
    run = desk.start(*words, STORY_PORT=announced.port)
    assert announced.wait_for_one(60) is not None
    run.process.send_signal(signal.SIGINT)
    ended = run.end()
    assert (ended.code, ended.out) == (130, b""), ended
    assert b"run the same command again" in ended.err
    assert b"Traceback" not in ended.err
    one.check_the_scene()
    one.finish()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_after_its_answer_it_has_said_just_that(
    desk: Any, announced: Announced, eventually: Callable[..., bool], number: int
) -> None:
    one = Story(in_the_middle_of_work(desk), announced, ("--runs", "1"))
    run = one.start()
    assert eventually(lambda: run.said_something() or run.process.poll() is not None, 120)
    run.process.send_signal(number)
    ended = run.end()
    one.check_the_scene()
    one.check_the_answer(ended.record)


def test_two_at_once_are_both_right(desk: Any, announced: Announced) -> None:
    one = Story(in_the_middle_of_work(desk), announced)
    runs = [one.start(), one.start()]
    records = []
    for run in runs:
        ended = run.end()
        assert ended.code == EXIT_CODES[ended.record["verdict"]], ended
        records.append(ended.record)
    one.check_the_scene()
    assert records[0]["search"] != records[1]["search"]
    for record in records:
        one.check_the_answer(record)
    trials = desk.trials().values()
    assert announced.heard() == sorted(drawn(trial.seed) for trial in trials)


@pytest.mark.parametrize(
    ("sandbox", "victim"),
    [
        (True, "server"),
        (True, "keeper"),
        (False, "server"),
        pytest.param(False, "keeper", marks=pytest.mark.faults),
    ],
)
def test_killed_under_it_a_server_costs_one_trial_at_most(
    desk: Any, announced: Announced, sandbox: bool, victim: str
) -> None:
    """Whatever ran then could not be run; nothing else is lost, and nothing is told wrongly."""
    if not sandbox:
        desk.without_bubblewrap()
    one = Story(in_the_middle_of_work(desk), announced)
    run = one.start()
    killed = 0
    for _ in range(3):
        assert announced.wait_for_one(60) is not None
        assert announced.wait_for_one(60) is not None
        killed += kill_one_below(run.process.pid, victim)
    ended = run.end()
    one.check_the_scene()
    assert killed, "nobody was there to be killed"
    assert ended.code == EXIT_CODES[ended.record["verdict"]], ended
    (started,) = [e for e in desk.journal() if isinstance(e, SearchStarted)]
    told = {key: trial.outcome for (_, key), trial in desk.trials().items()}
    finding, asked = uninterrupted(started, lambda key, seed: told[key])
    assert told.keys() == asked
    assert ended.record["strata"] == json.loads(msgspec.json.encode(finding.strata))
    wrong = {key for key, outcome in told.items() if outcome != foreseen(key, started.seed)}
    assert {told[key] for key in wrong} <= {Outcome.COULD_NOT_RUN}
    assert len(wrong) <= killed


def kill_one_below(pid: int, victim: str) -> bool:
    """Kill a server of this process, or the keeper of the trial that one runs."""
    for process in psutil.Process(pid).children(recursive=True):
        try:
            words = process.cmdline()
            if not any(w.endswith(("/warm.py", "/spawner.py")) for w in words):
                continue
            if os.path.basename(words[0]) == "bwrap":
                continue
            kept = process.children()
            if victim == "keeper":
                if not kept or not kept[0].children():
                    continue
                process = kept[0]
            process.kill()
            return True
        except psutil.NoSuchProcess:
            continue
    return False

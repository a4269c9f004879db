"""What every laboratory must do: one suite, run on each of them."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Literal

import msgspec
import pytest

from becausal.domain.condition import Condition, Warmth
from becausal.domain.criterion import Criterion
from becausal.domain.recording import Recording
from becausal.domain.trial import Outcome
from becausal.inquiry.outcome import judge
from becausal.ports.lab import Lab, Order

Behaviour = Literal["passes", "fails", "hangs"]


class LabFacts(abc.ABC):
    """Subclass it, say how a lab is made and what passes, fails and hangs in it."""

    @abc.abstractmethod
    def make_lab(self) -> Lab:
        """A lab of its own for one fact."""

    @abc.abstractmethod
    def condition(self, lab: Lab, behaviour: Behaviour) -> Condition:
        """A cold condition that behaves so every time; `hangs` has a short time limit."""

    @pytest.fixture
    def lab(self) -> Iterator[Lab]:
        lab = self.make_lab()
        yield lab
        lab.close()

    def run_all(self, lab: Lab, orders: list[Order]) -> dict[int, Recording]:
        """Recordings by ticket, of which each may come once."""
        answers = list(lab.run(orders))
        tickets = [order.ticket for order, _ in answers]
        assert len(tickets) == len(set(tickets))
        return {order.ticket: recording for order, recording in answers}

    def orders(self, condition: Condition, count: int, *, warmth: Warmth = "cold") -> list[Order]:
        wanted = msgspec.structs.replace(condition, warmth=warmth)
        return [Order(ticket=n, condition=wanted, seed=100 + n, hash_seed=1) for n in range(count)]

    def outcome(self, recording: Recording) -> Outcome:
        return judge(recording, Criterion(), None).outcome

    def test_a_lab_runs_at_least_one_trial_at_a_time(self, lab: Lab) -> None:
        assert lab.width >= 1

    def test_every_order_is_answered_once(self, lab: Lab) -> None:
        answers = self.run_all(lab, self.orders(self.condition(lab, "passes"), 5))
        assert sorted(answers) == list(range(5))

    def test_no_orders_are_no_work(self, lab: Lab) -> None:
        assert self.run_all(lab, []) == {}

    def test_what_passes_is_seen_to_pass(self, lab: Lab) -> None:
        answers = self.run_all(lab, self.orders(self.condition(lab, "passes"), 2))
        assert {self.outcome(r) for r in answers.values()} == {Outcome.PASSED}

    def test_what_fails_is_seen_to_fail_with_one_signature(self, lab: Lab) -> None:
        answers = self.run_all(lab, self.orders(self.condition(lab, "fails"), 3))
        judged = [judge(recording, Criterion(), None) for recording in answers.values()]
        assert {verdict.outcome for verdict in judged} == {Outcome.FAILED}
        assert len({verdict.signature for verdict in judged}) == 1

    def test_what_hangs_is_stopped_at_its_limit(self, lab: Lab) -> None:
        answers = self.run_all(lab, self.orders(self.condition(lab, "hangs"), 1))
        assert {self.outcome(r) for r in answers.values()} == {Outcome.TIMED_OUT}
        assert all(recording.exit_code is None for recording in answers.values())

    def test_different_conditions_run_beside_each_other(self, lab: Lab) -> None:
        passing = self.orders(self.condition(lab, "passes"), 2)
        failing = [
            msgspec.structs.replace(order, ticket=order.ticket + 10)
            for order in self.orders(self.condition(lab, "fails"), 2)
        ]
        answers = self.run_all(lab, [*passing, *failing])
        passed = {t for t, r in answers.items() if self.outcome(r) is Outcome.PASSED}
        assert passed == {0, 1}

    def test_a_recording_tells_its_seed_its_cost_and_what_kept_it_apart(self, lab: Lab) -> None:
        answers = self.run_all(lab, self.orders(self.condition(lab, "passes"), 2))
        for ticket, recording in answers.items():
            assert recording.seed == 100 + ticket
            assert recording.seconds > 0
            assert recording.isolation

    def test_warm_trials_name_their_server_and_cold_ones_have_none(self, lab: Lab) -> None:
        condition = self.condition(lab, "fails")
        warm = self.orders(condition, 3, warmth="warm")
        warming = lab.warming(warm[0].condition)
        assert warming.possible, warming.reason
        answers = self.run_all(lab, warm)
        assert all(recording.server for recording in answers.values())
        assert {self.outcome(r) for r in answers.values()} == {Outcome.FAILED}
        cold = self.run_all(lab, self.orders(condition, 1))
        assert not cold[0].server

    def test_left_in_the_middle_it_is_ready_for_more(self, lab: Lab) -> None:
        condition = self.condition(lab, "passes")
        running = lab.run(self.orders(condition, 20))
        next(running)
        running.close()
        answers = self.run_all(lab, self.orders(condition, 2))
        assert {self.outcome(r) for r in answers.values()} == {Outcome.PASSED}

    def test_surroundings_name_the_python(self, lab: Lab) -> None:
        assert lab.surroundings(self.condition(lab, "passes")).python.startswith("3.")

    def test_a_closed_lab_runs_nothing(self) -> None:
        lab = self.make_lab()
        orders = self.orders(self.condition(lab, "passes"), 1)
        lab.close()
        with pytest.raises(ValueError, match="closed"):
            list(lab.run(orders))

    def test_a_lab_may_be_closed_twice(self) -> None:
        lab = self.make_lab()
        lab.close()
        lab.close()

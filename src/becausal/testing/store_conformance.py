"""What every store must do: facts that each backend runs against itself.

A backend's test subclasses `StoreFacts` and overrides the fixture `reach`, which opens one more
store on the same data: as another process, or a later command, would.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becausal.domain.errors import BecausalError
from becausal.domain.identity import bytes_id
from becausal.domain.journal import AnyEvent, Noted, SearchStarted
from becausal.domain.trial import Outcome, Trial
from becausal.ports.store import Store
from becausal.testing.samples import OPENED, trial
from becausal.testing.strategies import events, trials

Reach = Callable[[], Store]

many_examples = settings(deadline=None)


def slug_of(call: Callable[[], object]) -> str:
    """The slug that a call refuses with."""
    with pytest.raises(BecausalError) as refused:
        call()
    return refused.value.slug


class StoreFacts:
    @pytest.fixture
    def reach(self) -> Reach:
        raise NotImplementedError("the backend's test says how its stores are opened")

    def test_cases_are_named_in_the_order_they_open(self, reach: Reach) -> None:
        store = reach()
        names = [store.open_case(OPENED, at=float(n)) for n in range(11)]
        assert names == [f"B-{n}" for n in range(1, 12)]
        assert store.cases() == tuple(names)

    def test_a_new_store_has_no_cases(self, reach: Reach) -> None:
        assert reach().cases() == ()

    def test_opening_is_the_first_entry(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=7.5)
        (entry,) = store.journal(case)
        assert (entry.case, entry.seq, entry.at, entry.event) == (case, 1, 7.5, OPENED)

    def test_entries_are_counted_within_their_case(self, reach: Reach) -> None:
        store = reach()
        one, other = store.open_case(OPENED, at=1.0), store.open_case(OPENED, at=1.0)
        store.append(one, [Noted(text="a"), Noted(text="b")], at=2.0)
        store.append(other, [Noted(text="c")], at=3.0)
        store.append(one, [Noted(text="d")], at=4.0)
        assert [(e.seq, e.at) for e in store.journal(one)] == [(1, 1), (2, 2), (3, 2), (4, 4)]
        assert [e.event for e in store.journal(other)] == [OPENED, Noted(text="c")]

    def test_what_one_writes_another_reads(self, reach: Reach) -> None:
        writer, reader = reach(), reach()
        case = writer.open_case(OPENED, at=1.0)
        writer.append(case, [Noted(text="seen")], at=2.0)
        writer.record(case, [trial()], at=2.0)
        digest = writer.put(b"output")
        assert reader.cases() == (case,)
        assert reader.journal(case) == writer.journal(case)
        assert reader.trials(case) == (trial(),)
        assert reader.get(digest) == b"output"

    def test_closing_keeps_everything(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=1.0)
        store.record(case, [trial()], at=2.0)
        digest = store.put(b"x" * 10_000)
        store.close()
        again = reach()
        assert (again.cases(), again.trials(case)) == ((case,), (trial(),))
        assert again.get(digest) == b"x" * 10_000
        assert again.open_case(OPENED, at=3.0) == "B-2"

    def test_unknown_cases_are_refused(self, reach: Reach) -> None:
        store = reach()
        store.open_case(OPENED, at=1.0)
        for name in ("B-2", "B-01", "b-1", "B-1 ", "", "1", "' OR 1=1 --"):
            assert slug_of(partial(store.journal, name)) == "case-unknown"
            assert slug_of(partial(store.trials, name)) == "case-unknown"
            assert slug_of(partial(store.append, name, [], at=1.0)) == "case-unknown"
            assert slug_of(partial(store.record, name, [], at=1.0)) == "case-unknown"

    def test_trials_come_in_the_order_of_their_keys(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=1.0)
        ordered = [
            trial(search, step, condition, repeat)
            for search in ("s", "t")
            for step in (0, 2, 10)
            for condition in ("Z", "a")
            for repeat in (0, 9, 10)
        ]
        store.record(case, ordered[::-2], at=1.0)
        store.record(case, ordered[::2], at=1.0)
        assert store.trials(case) == tuple(ordered)
        assert store.trials(case, "t") == tuple(ordered[len(ordered) // 2 :])
        assert store.trials(case, "u") == ()

    def test_a_trial_recorded_before_takes_its_whole_batch_along(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=1.0)
        store.record(case, [trial(repeat=1)], at=1.0)
        batch = [trial(repeat=0), trial(repeat=1), trial(repeat=2)]
        again = partial(store.record, case, batch, at=2.0, artifacts=[b"output"])
        assert slug_of(again) == "trial-recorded-twice"
        assert store.trials(case) == (trial(repeat=1),)
        assert slug_of(lambda: store.get(bytes_id(b"output"))) == "artifact-unknown"

    def test_a_trial_twice_in_a_batch_is_refused(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=1.0)
        batch = [trial(repeat=0), trial(repeat=0)]
        assert slug_of(lambda: store.record(case, batch, at=2.0)) == "trial-recorded-twice"
        assert store.trials(case) == ()

    def test_the_same_place_is_free_in_another_case(self, reach: Reach) -> None:
        store = reach()
        for _ in range(2):
            store.record(store.open_case(OPENED, at=1.0), [trial()], at=1.0)
        assert [store.trials(case) for case in store.cases()] == [(trial(),)] * 2

    def test_what_would_not_read_back_takes_its_whole_batch_along(self, reach: Reach) -> None:
        store = reach()
        case = store.open_case(OPENED, at=1.0)
        good: list[AnyEvent] = [Noted(text="good")]
        not_text = Noted(text="\udc80")
        changing = SearchStarted(
            search="s",
            question="reproduce",
            version=1,
            seed=1,
            width=1,
            parameters={"a tuple": (1, 2)},
            conditions=(),
        )
        for bad in (not_text, changing):
            add = partial(store.append, case, [*good, bad], at=2.0)
            assert slug_of(add) == "record-unwritable"
        endless = Trial(
            key=trial().key, warmth="cold", outcome=Outcome.PASSED, seconds=float("inf")
        )
        batch = [trial(repeat=5), endless]
        assert slug_of(lambda: store.record(case, batch, at=2.0)) == "record-unwritable"
        assert len(store.journal(case)) == 1
        assert store.trials(case) == ()

    def test_artifacts_are_kept_by_content(self, reach: Reach) -> None:
        store = reach()
        one, again, other = store.put(b"a" * 999), store.put(b"a" * 999), store.put(b"b" * 999)
        assert one == again != other
        assert (store.get(one), store.get(other)) == (b"a" * 999, b"b" * 999)
        assert slug_of(lambda: store.get("0" * 32)) == "artifact-unknown"

    def test_a_name_is_held_by_one(self, reach: Reach) -> None:
        one, other = reach(), reach()
        with one.hold("search") as mine:
            with other.hold("search") as theirs, other.hold("another") as free:
                assert (mine, theirs, free) == (True, False, True)
            with one.hold("search") as twice:
                assert not twice
        with other.hold("search") as now:
            assert now

    def test_a_name_is_given_back_when_its_holder_fails(self, reach: Reach) -> None:
        store = reach()
        with pytest.raises(ZeroDivisionError), store.hold("search"):
            raise ZeroDivisionError
        with store.hold("search") as again:
            assert again

    @pytest.mark.parametrize(
        "name", ["", ".", "..", "../up", "/etc/passwd", "a/b", "nul\0", "ü" * 300, "\udc80", "a\nb"]
    )
    def test_any_text_is_a_name_to_hold(self, reach: Reach, name: str) -> None:
        with reach().hold(name) as held, reach().hold(name) as twice:
            assert (held, twice) == (True, False)

    # The properties stand inside their test: each backend runs them as its own.

    def test_events_read_back_equal(self, reach: Reach) -> None:
        store = reach()

        @many_examples
        @given(wanted=st.lists(events(), max_size=4))
        def read_back(wanted: list[AnyEvent]) -> None:
            case = store.open_case(OPENED, at=1.0)
            store.append(case, wanted, at=2.0)
            assert [entry.event for entry in store.journal(case)[1:]] == wanted

        read_back()

    def test_trials_read_back_equal(self, reach: Reach) -> None:
        store = reach()

        @many_examples
        @given(wanted=st.lists(trials(), max_size=4, unique_by=lambda each: each.key))
        def read_back(wanted: list[Trial]) -> None:
            case = store.open_case(OPENED, at=1.0)
            store.record(case, wanted, at=2.0)
            assert store.trials(case) == tuple(sorted(wanted, key=lambda each: each.key))

        read_back()

    def test_artifacts_read_back_equal(self, reach: Reach) -> None:
        store = reach()

        @many_examples
        @given(data=st.binary(max_size=2000), more=st.lists(st.binary(max_size=600), max_size=3))
        def read_back(data: bytes, more: list[bytes]) -> None:
            store.record(store.open_case(OPENED, at=1.0), [], at=1.0, artifacts=more)
            assert store.get(store.put(data)) == data
            assert [store.get(bytes_id(each)) for each in more] == more

        read_back()

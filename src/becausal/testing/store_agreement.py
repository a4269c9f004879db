"""A state machine on which two stores must agree: same calls, same answers, same refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from becausal.domain.errors import BecausalError
from becausal.domain.identity import bytes_id
from becausal.domain.journal import AnyEvent, CaseOpened, Entry
from becausal.domain.trial import Trial, TrialKey
from becausal.ports.store import Store
from becausal.testing.strategies import events, records, trials

Reach = Callable[[], Store]

# Few names and few places, so that known, unknown and taken ones all come up.
_cases = st.sampled_from(["B-1", "B-2", "B-3", "B-0", "B-03", "nonsense"])
_searches = st.sampled_from(["s", "t"])
_digests = st.integers(min_value=0, max_value=9)
_keys = st.builds(
    TrialKey, _searches, st.integers(0, 2), st.sampled_from(["a", "b"]), st.integers(0, 2)
)


@st.composite
def _placed_trials(draw: st.DrawFn) -> Trial:
    anyhow = draw(trials())
    fields = {name: getattr(anyhow, name) for name in anyhow.__struct_fields__}
    return Trial(**fields | {"key": draw(_keys)})


class StoresAgree(RuleBasedStateMachine):
    """Subclass with `backends`: what opens each of the two, on new data, any number of times."""

    def backends(self) -> Sequence[Reach]:
        raise NotImplementedError("the test says which stores must agree")

    @initialize()
    def open_both(self) -> None:
        self.reach = self.backends()
        self.stores = [reach() for reach in self.reach]
        self.digests: list[str] = []

    def both(self, call: Callable[[Store], Any]) -> Any:
        """The one answer of both, or the one slug with which both refuse."""
        one, other = [_answer(call, store) for store in self.stores]
        assert one == other
        return one

    @rule(opened=records(CaseOpened), at=st.floats(0, 1e12))
    def open_case(self, opened: CaseOpened, at: float) -> None:
        self.both(lambda store: store.open_case(opened, at=at))

    @rule(case=_cases, added=st.lists(events(), max_size=3), at=st.floats(0, 1e12))
    def append(self, case: str, added: list[AnyEvent], at: float) -> None:
        self.both(lambda store: store.append(case, added, at=at))

    @rule(
        case=_cases,
        added=st.lists(_placed_trials(), max_size=3),
        artifacts=st.lists(st.binary(max_size=600), max_size=2),
    )
    def record(self, case: str, added: list[Trial], artifacts: list[bytes]) -> None:
        self.digests += [bytes_id(data) for data in artifacts]
        self.both(lambda store: store.record(case, added, at=1.0, artifacts=artifacts))

    @rule(data=st.binary(max_size=600))
    def put(self, data: bytes) -> None:
        self.digests.append(self.both(lambda store: store.put(data)))

    @rule(which=_digests)
    def get(self, which: int) -> None:
        digest = self.digests[which] if which < len(self.digests) else "unheard-of"
        self.both(lambda store: store.get(digest))

    @rule(name=st.text(max_size=3), again=st.text(max_size=3))
    def hold(self, name: str, again: str) -> None:
        def tried(store: Store) -> tuple[bool, bool]:
            with store.hold(name) as first, store.hold(again) as second:
                return first, second

        self.both(tried)

    @rule(case=_cases, search=_searches)
    def read_one_search(self, case: str, search: str) -> None:
        self.both(lambda store: store.trials(case, search))

    @rule(which=st.sampled_from([0, 1]))
    def reopen(self, which: int) -> None:
        self.stores[which].close()
        self.stores[which] = self.reach[which]()

    @invariant()
    def everything_reads_the_same(self) -> None:
        for case in self.both(lambda store: store.cases()):
            self.both(partial(_whole, case))

    def teardown(self) -> None:
        for store in getattr(self, "stores", []):
            store.close()


def _whole(case: str, store: Store) -> tuple[tuple[Entry, ...], tuple[Trial, ...]]:
    return store.journal(case), store.trials(case)


def _answer(call: Callable[[Store], Any], store: Store) -> Any:
    try:
        return call(store)
    except BecausalError as refused:
        return refused.slug

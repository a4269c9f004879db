"""Any record of the domain, for property tests: what is added later is covered too."""

from __future__ import annotations

from typing import Any, TypeVar, cast, get_args

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from becausal.domain.journal import AnyEvent
from becausal.domain.trial import Trial

RecordT = TypeVar("RecordT", bound=msgspec.Struct)

_integers = st.integers(min_value=-(2**31), max_value=2**63 - 1)
_floats = st.floats(allow_nan=False, allow_infinity=False)
_texts = st.text(max_size=20)
_free = st.recursive(
    st.none() | st.booleans() | _integers | _floats | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)
_known: dict[type[Any], st.SearchStrategy[Any]] = {}


def records(kind: type[RecordT]) -> st.SearchStrategy[RecordT]:
    """Any record of that kind, with anything its fields may hold."""
    return cast("st.SearchStrategy[RecordT]", _of(inspect.type_info(kind)))


def events() -> st.SearchStrategy[AnyEvent]:
    """Any event of a journal."""
    return st.one_of(*[records(kind) for kind in get_args(AnyEvent)])


def trials() -> st.SearchStrategy[Trial]:
    """Any trial."""
    return records(Trial)


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType():
            return _struct(info)
        case inspect.UnionType():
            return st.one_of(*[_of(each) for each in info.types])
        case inspect.LiteralType():
            return st.sampled_from(info.values)
        case inspect.EnumType():
            return st.sampled_from(list(info.cls))
        case inspect.VarTupleType():
            return st.lists(_of(info.item_type), max_size=3).map(tuple)
        case inspect.TupleType():
            return st.tuples(*[_of(each) for each in info.item_types])
        case inspect.ListType():
            return st.lists(_of(info.item_type), max_size=3)
        case inspect.DictType():
            return st.dictionaries(_of(info.key_type), _of(info.value_type), max_size=3)
        case _:
            return _plain(info)


def _plain(info: inspect.Type) -> st.SearchStrategy[Any]:
    plain: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
        inspect.AnyType: _free,
        inspect.BoolType: st.booleans(),
        inspect.BytesType: st.binary(max_size=20),
        inspect.FloatType: _floats,
        inspect.IntType: _integers,
        inspect.NoneType: st.none(),
        inspect.StrType: _texts,
    }
    return plain[type(info)]


def _struct(info: inspect.StructType) -> st.SearchStrategy[Any]:
    cls = info.cls
    if cls not in _known:
        # Deferred: a record may hold records of its own kind.
        _known[cls] = st.deferred(
            lambda: st.fixed_dictionaries(
                {field.name: _of(field.type) for field in info.fields}
            ).map(lambda values: cls(**values))
        )
    return _known[cls]

"""Hypothesis strategies for columns of all types with few different values, and the slow twin of equality."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

TEXTS = ["", "a", "a\0", "b", "ab", "12345678", "123456789", "x" * 16, "x" * 17, "é", "\U0001f600 " * 9]
WHOLE = [
    Decimal(n)
    for n in (0, 1, -1, 10, 100, -7, 10**17, 10**18, 10**19, 2**64, 10**30, -(10**30), 123 * 10**25)
]
FLOATS = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324, 2.0]
DAY = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
UTC = dt.UTC

POOLS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.null(), []),
    (pa.bool_(), [True, False]),
    (pa.int8(), [0, 1, -1, 127, -128]),
    (pa.int16(), [0, 1, -1, 2**15 - 1]),
    (pa.int32(), [0, 1, -1, -(2**31)]),
    (pa.int64(), [0, 1, -1, 2, 3, 2**63 - 1, -(2**63)]),
    (pa.float32(), [0.0, -0.0, math.nan, math.inf, 1.5]),
    (pa.float64(), FLOATS),
    (pa.decimal128(38, 0), WHOLE),
    (pa.decimal128(38, 4), [n.scaleb(-4) for n in WHOLE]),
    (
        pa.decimal128(9, 2),
        [Decimal("0.00"), Decimal("1.50"), Decimal("-1.5"), Decimal("12"), Decimal("0.01")],
    ),
    (pa.decimal256(60, 3), [n.scaleb(-3) for n in WHOLE]),
    (pa.string(), TEXTS),
    (pa.binary(), [text.encode() for text in TEXTS] + [b"\xff" * 9]),
    (pa.large_string(), TEXTS),
    (pa.binary(3), [b"abc", b"abd", b"\0\0\0"]),
    (pa.date32(), [DAY.date(), dt.date(1970, 1, 1), dt.date(1, 1, 1)]),
    (pa.timestamp("us"), [DAY, dt.datetime(1970, 1, 1)]),
    (pa.timestamp("us", "UTC"), [DAY.replace(tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)]),
    (pa.time64("us"), [dt.time(1, 2, 3), dt.time(0)]),
    (pa.duration("us"), [dt.timedelta(0), dt.timedelta(days=-1, microseconds=1)]),
]
leaves = st.sampled_from([kind for kind, _ in POOLS])
map_keys = st.sampled_from([pa.int32(), pa.string()])


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(inner, max_size=3).map(
        lambda kinds: pa.struct([(f"f{n}", k) for n, k in enumerate(kinds)])
    )


types: st.SearchStrategy[pa.DataType] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        inner.map(pa.list_), _structs(inner), st.tuples(map_keys, inner).map(lambda pair: pa.map_(*pair))
    ),
    max_leaves=4,
)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        some: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {field.name: values(field.type) for field in kind}
        )
    elif pa.types.is_map(kind):
        key = values(kind.key_type).filter(lambda value: value is not None)
        some = st.lists(st.tuples(key, values(kind.item_type)), max_size=2)
    elif pa.types.is_list(kind):
        some = st.lists(values(kind.value_type), max_size=3)
    else:
        pool = next(pool for other, pool in POOLS if other == kind)
        return st.sampled_from([None, *pool])
    return st.none() | some


@st.composite
def arrays(draw: st.DrawFn, kind: pa.DataType, count: int) -> pa.Array:
    """An array of so many values, at times a slice out of a longer one."""
    before, after = draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (9, 2)]))
    junk = draw(values(kind))
    content = draw(st.lists(values(kind), min_size=count, max_size=count))
    return pa.array([junk] * before + content + [junk] * after, kind).slice(before, count)


@st.composite
def tables(draw: st.DrawFn, kinds: list[pa.DataType], most: int = 12) -> pa.Table:
    """Columns `c0`, `c1`, ... and weights, in one chunk or several."""
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        count = draw(st.integers(0, most))
        columns = {f"c{n}": draw(arrays(kind, count)) for n, kind in enumerate(kinds)}
        weights = draw(st.lists(st.sampled_from([1, 1, -1, 2]), min_size=count, max_size=count))
        parts.append(pa.table({**columns, "__w": pa.array(weights, pa.int64())}))
    return pa.concat_tables(parts)


def twin(value: Any, *, exact: bool = False) -> Any:
    """The value as something that Python finds equal when Spark does, or when it is exactly the same."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return (value, math.copysign(1, value)) if exact else value
    if isinstance(value, dict):
        return tuple(twin(part, exact=exact) for part in value.values())
    if isinstance(value, list | tuple):
        return [twin(part, exact=exact) for part in value].__repr__()
    return value


def twins(columns: list[pa.Array], *, exact: bool = False) -> list[tuple[Any, ...]]:
    """Each row as a tuple of twins."""
    lists = [[twin(value, exact=exact) for value in column.to_pylist()] for column in columns]
    return [tuple(row) for row in zip(*lists, strict=True)]


def spark_order(left: Any, right: Any, descending: bool = False, nulls_first: bool = True) -> int:
    """Whether the left value comes before (-1), with (0) or after (1) the right one in ORDER BY."""
    if left is None or right is None:
        return ((left is not None) - (right is not None)) * (1 if nulls_first else -1)
    return _compared(left, right, exact=False) * (-1 if descending else 1)


def compared(left: Any, right: Any) -> int:
    """Spark's order, NULL first, and -0.0 before 0.0 in what it finds equal."""
    return _compared(left, right, exact=False) or _compared(left, right, exact=True)


def _compared(left: Any, right: Any, *, exact: bool) -> int:
    """NULL is first inside of structs and arrays."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, dict):
        return _compared(list(left.values()), list(right.values()), exact=exact)
    if isinstance(left, list | tuple):
        for one, other in zip(left, right, strict=False):
            if found := _compared(one, other, exact=exact):
                return found
        return len(left) - len(right)
    if isinstance(left, float):
        left, right = ((x != x, 0.0 if x != x else x, exact and math.copysign(1, x)) for x in (left, right))
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return int(left > right) - int(left < right)

"""Random multisets and their changes, from small pools so that rows meet again."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tests.delta.harness import Row, canon, table

LAW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

FLOATS = [
    None,
    0.0,
    -0.0,
    1.0,
    0.1,
    -0.3,
    float("nan"),
    float("inf"),
    float("-inf"),
    1e16,
    -1e16,
    5e-324,
    1.7e308,
]
_PLAIN: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, -1, 7, 2**63 - 1, -(2**63)]),
    (pa.int32(), [None, 0, 3, -(2**31)]),
    (pa.string(), [None, "", "a", "b", "é", "zz"]),
    (pa.float64(), FLOATS),
    (pa.float32(), [None, 0.0, -0.0, 0.5, float("nan")]),
    (pa.bool_(), [None, True, False]),
    (pa.date32(), [None, datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
    (
        pa.timestamp("us", "UTC"),
        [
            None,
            datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC),
            datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        ],
    ),
    (pa.binary(), [None, b"", b"\x00", b"\xff"]),
    (pa.decimal128(38, 2), [None, Decimal("0.00"), Decimal("-1.50"), Decimal(10) ** 35]),
]
_NESTED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.list_(pa.float64()), [None, [], [0.0], [-0.0], [None], [1.0, float("nan")], [1.0]]),
    (
        pa.struct({"x": pa.float64(), "y": pa.string()}),
        [None, {"x": -0.0, "y": "a"}, {"x": 0.0, "y": "a"}, {"x": None, "y": None}],
    ),
    (pa.list_(pa.list_(pa.string())), [None, [[]], [None, ["a"]], [["a", "b"], []]]),
    (pa.null(), [None]),
]
_UNORDERED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.map_(pa.string(), pa.float64()), [None, [], [("a", 0.0)], [("a", -0.0)], [("b", None), ("a", 0.0)]]),
]

ORDERED = st.sampled_from(_PLAIN + _NESTED)
ANY = st.sampled_from(_PLAIN + _NESTED + _UNORDERED)
KEY = ANY | st.just((pa.float64(), [None, 0.0, -0.0, float("nan")]))
"""Columns to compare by: zeros of both signs meet often."""

BITS = st.sampled_from([3, 64])


def values(pool: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from(list(pool))


@st.composite
def relations(
    draw: st.DrawFn, kinds: st.SearchStrategy[list[tuple[pa.DataType, list[Any]]]], most: int = 5
) -> tuple[pa.Schema, list[Row]]:
    """A schema and a few rows of it."""
    chosen = draw(kinds)
    schema = pa.schema([pa.field(f"column {at}", kind) for at, (kind, _) in enumerate(chosen)])
    row = st.tuples(*[values(pool) for _, pool in chosen])
    return schema, draw(st.lists(row, min_size=1, max_size=most))


CHANGES = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([1, 1, 1, -1, -1, 2, 5, -4, 0])), max_size=7),
    min_size=1,
    max_size=5,
)


class Bag:
    """A multiset under change. What a change takes is never more than there is."""

    def __init__(self, schema: pa.Schema, pool: Sequence[Row]) -> None:
        self.schema = schema
        self._pool = pool
        self._held: Counter[Any] = Counter()
        self._rows: dict[Any, Row] = {}

    def change(self, changes: Sequence[tuple[int, int]], *, backwards: bool = False) -> pa.Table | None:
        """The delta of these changes, as places in the pool and weights; None for none."""
        rows, weights = [], []
        for place, weight in changes:
            row = self._pool[place % len(self._pool)]
            name = canon(row)
            weight = max(weight, -self._held[name])
            self._rows[name] = row
            self._held[name] += weight
            rows.append(row)
            weights.append(weight)
        if not rows:
            return None
        step = -1 if backwards else 1
        return table(self.schema, rows[::step], weights[::step])

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        """Each row with how often it is there."""
        return ((self._rows[name], weight) for name, weight in self._held.items() if weight)

    def whole(self) -> pa.Table:
        """All of it as a delta."""
        held = list(self)
        return table(self.schema, [row for row, _ in held], [weight for _, weight in held])

"""Rows arranged in Spark's order against sorting them one by one."""

from __future__ import annotations

from functools import cmp_to_key

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import compared, spark_order, tables, twins, types

from evert.trace.order import By, arranged, total_codes

ordered = types.filter(lambda kind: "fixed_size_binary" not in str(kind))


@st.composite
def orders(draw, names):
    """Some of the columns, each with a direction and a place of its NULLs."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return tuple(By(name, draw(st.booleans()), draw(st.booleans())) for name in chosen)


def by_order(order, names):
    """The twin of `arranged`, for rows of Python values: the order, all columns, and then exactly."""

    def three_ways(left, right):
        for by in order:
            at = names.index(by.name)
            if found := spark_order(left[at], right[at], by.descending, by.nulls_first):
                return found
        return compared(left, right)

    return cmp_to_key(three_ways)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_rows_are_arranged_as_a_sort_of_python_values_does(data):
    kinds = data.draw(st.lists(ordered, min_size=1, max_size=3))
    table = data.draw(tables(kinds, 10)).combine_chunks()
    names = [f"c{n}" for n in range(len(kinds))]
    order = data.draw(orders(names))
    columns = {
        name: pa.concat_arrays(table.column(name).chunks or [pa.array([], kind)])
        for name, kind in zip(names, kinds, strict=True)
    }
    segments = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=table.num_rows, max_size=table.num_rows)), int
    )
    places, starts = arranged(segments, columns, order)
    rows = list(zip(*(column.to_pylist() for column in columns.values()), strict=True))
    exact = twins(list(columns.values()), exact=True)
    key = by_order(order, names)
    expected = sorted(range(len(rows)), key=lambda at: (segments[at], key(rows[at])))
    assert [(segments[at], exact[at]) for at in places] == [(segments[at], exact[at]) for at in expected]
    found = [(segments[at], exact[at]) for at in places]
    assert starts.tolist() == [at for at in range(len(found)) if at == 0 or found[at] != found[at - 1]]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_codes_are_in_the_order_of_their_values(data):
    kind = data.draw(ordered)
    values = data.draw(tables([kind], 8)).column("c0").drop_null().combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    codes = total_codes(values).tolist()
    for left, one in zip(values.to_pylist(), codes, strict=True):
        for right, other in zip(values.to_pylist(), codes, strict=True):
            assert (one > other) - (one < other) == np.sign(compared(left, right))

"""The last rows up to a place in ordered traces against looking at all rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evert.trace import last
from evert.trace.consolidate import with_hash
from evert.trace.keys import hash_rows
from evert.trace.order import By
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace, merge

SCHEMA = pa.schema({"c0": pa.string(), "c1": pa.int64(), "c2": pa.int64(), "__w": pa.int64()})
LAYOUT = Layout(("c0",), schema=SCHEMA, order=(By("c1"),))
KEYS = st.sampled_from(["a", "b", "c", None])
ROWS = st.lists(
    st.tuples(KEYS, st.integers(-2, 5), st.integers(0, 1), st.sampled_from([1, 1, 2])), max_size=8
)
NEEDLES = st.lists(st.tuples(KEYS, st.integers(-4, 7), st.integers(-1, 4)), max_size=6)


@st.composite
def traces(draw):
    """A trace of runs, of which a newer one takes back what an older one has, and what it holds together."""
    bits, held, runs = draw(st.sampled_from([1, 64])), Counter(), []
    for rows in draw(st.lists(ROWS, max_size=4)):
        change = Counter()
        for *row, weight in rows:
            change[tuple(row)] += weight
        for row in list(held):
            if draw(st.booleans()):
                change[row] -= held[row]
        held.update(change)
        table = pa.table(
            [[*column] for column in zip(*((*row, w) for row, w in change.items()), strict=True)] or [[]] * 4,
            schema=SCHEMA,
        )
        runs.insert(0, Run.of(merge(LAYOUT, [with_hash(table, LAYOUT.key, bits=bits)], bottom=False)))
    return Trace(LAYOUT, runs), {row: weight for row, weight in held.items() if weight}, bits


def met(found):
    """By needle, the sum of the rows that were found for it."""
    sums = Counter()
    for needles, run, rows in found:
        table = run.table.take(pa.array(rows))
        for needle, row in zip(needles.tolist(), table.to_pylist(), strict=True):
            sums[needle, row["c0"], row["c1"], row["c2"]] += row["__w"]
    return {row: weight for row, weight in sums.items() if weight}


def searched(needles, bits):
    keys = [pa.array([key for key, *_ in needles], pa.string())]
    numbers = [np.array([one[place] for one in needles], np.int64) for place in (1, 2)]
    return hash_rows(keys, len(needles), bits), keys, *numbers


@settings(max_examples=200, deadline=None)
@given(traces(), NEEDLES)
def test_the_last_rows_up_to_a_bound_are_those_of_the_greatest_place(drawn, needles):
    trace, held, bits = drawn
    hashes, keys, bound, _ = searched(needles, bits)
    expected = {}
    for number, (key, most, _) in enumerate(needles):
        mine = {row: weight for row, weight in held.items() if row[0] == key and row[1] <= most}
        greatest = max((row[1] for row in mine), default=None)
        expected |= {(number, *row): weight for row, weight in mine.items() if row[1] == greatest}
    assert met(last.last_upto(trace, hashes, keys, bound)) == expected


@pytest.mark.parametrize("pairs", [1, 3])
def test_many_needles_come_in_pieces(monkeypatch, pairs):
    monkeypatch.setattr(last, "NEEDLES", pairs)
    table = pa.table([["a"] * 5, range(5), [0] * 5, [1] * 5], schema=SCHEMA)
    trace = Trace(LAYOUT, [Run.of(with_hash(table, LAYOUT.key))])
    hashes, keys, begin, _ = searched([("a", 1, 3), ("a", 0, 2)], 64)
    assert sorted(met(last.last_upto(trace, hashes, keys, begin))) == [(0, "a", 1, 0), (1, "a", 0, 0)]

"""The ends of keys in ordered traces against sorting all of their rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import tables, twins
from tests.trace.test_consolidate import counted
from tests.trace.test_order import by_order, ordered, orders

from evert.trace import trace as module
from evert.trace.consolidate import plus, with_hash
from evert.trace.ends import ends, rows_under
from evert.trace.keys import hash_rows
from evert.trace.order import By
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace, merge


@st.composite
def traces(draw):
    """An ordered trace of some runs, its tables, needles, and the width of hashes."""
    kinds = draw(st.lists(ordered, min_size=1, max_size=3))
    names = [f"c{n}" for n in range(len(kinds))]
    key = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2)))
    bits = draw(st.sampled_from([3, 64]))
    layout = Layout(key, schema=draw(tables(kinds, 0)).schema, order=draw(orders(names)))
    given_tables = draw(st.lists(tables(kinds, 9), max_size=4))
    found = [merge(layout, [with_hash(table, key, bits=bits)], bottom=False) for table in given_tables]
    return Trace(layout, [Run.of(table) for table in found]), found, draw(tables(kinds, 6)), bits


@settings(max_examples=100, deadline=None)
@given(traces(), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_the_ends_of_a_key_are_those_of_all_its_rows(drawn, first, wanted, last):
    trace, found, needles, bits = drawn
    names = trace.layout.schema.names[:-1]
    places = {twin: at for at, twin in enumerate(keys_of(needles, trace.layout.key))}.values()
    unique = pa.array(places, pa.int64())
    keys = [needles.column(name).take(unique) for name in trace.layout.key]
    hashes = hash_rows(keys, len(unique), bits)

    def enough(known):
        count = np.bincount(known.group, minlength=len(unique))
        return np.flatnonzero(count >= wanted)

    read = ends(trace, hashes, keys, enough, first=first, last=last)
    assert (np.diff(read.group) >= 0).all()
    for number, key in enumerate(keys_of(needles.take(unique), trace.layout.key)):
        expected = all_rows(trace, found, key, names)[:: -1 if last else 1]
        rows = read.rows.filter(pa.array(read.group == number))
        shown = list(
            zip(
                twins([rows.column(name) for name in names], exact=True),
                rows.column("__w").to_pylist(),
                strict=True,
            )
        )
        assert shown == expected[: len(shown)]
        assert len(shown) >= min(wanted, len(expected))


def keys_of(table, key):
    return twins([table.column(name) for name in key]) if key else [()] * table.num_rows


def all_rows(trace, found, key, names):
    """All rows of a key with their weights, in order."""
    weights, values = Counter(), {}
    for table in found:
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        exact = twins([table.column(name) for name in names], exact=True)
        owners = keys_of(table, trace.layout.key)
        for row, twin, owner, weight in zip(
            rows, exact, owners, table.column("__w").to_pylist(), strict=True
        ):
            if owner == key:
                weights[twin] += weight
                values[twin] = row
    order = by_order(trace.layout.order, names)
    return [
        (twin, weights[twin])
        for twin in sorted(weights, key=lambda twin: order(values[twin]))
        if weights[twin]
    ]


@settings(max_examples=50, deadline=None)
@given(traces(), st.booleans())
def test_merging_keeps_the_order_and_the_sum(drawn, cut):
    trace, found, _, bits = drawn
    if not found:
        return
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(module, "PIECE_BYTES", 50)
        merged = merge(trace.layout, found, bottom=True, bits=bits).combine_chunks()
    assert counted(merged) == counted(plus(*found))
    again = merge(trace.layout, [merged], bottom=True)
    assert again.equals(merged) or "NaN" in str(twins(merged.columns))


SCHEMA = pa.schema({"c0": pa.string(), "c1": pa.int64(), "__w": pa.int64()})
NUMBERS = Layout(("c0",), schema=SCHEMA, order=(By("c1"),))


def run(key, numbers, weight=1):
    table = pa.table([[key] * len(numbers), numbers, [weight] * len(numbers)], schema=SCHEMA)
    return Run.of(merge(NUMBERS, [with_hash(table, ["c0"])], bottom=False))


def first_of(trace, count, **options):
    key = pa.array(["a"])

    def enough(known):
        return known.group[count - 1 : count]

    return ends(trace, hash_rows([key], 1), [key], enough, **options).rows.column("c1").to_pylist()


def test_a_row_beyond_what_another_run_has_shown_is_not_certain():
    trace = Trace(NUMBERS, [run("a", [1, 9]), run("a", [2, 3, 4])])
    assert first_of(trace, 1, first=1) == [1]
    assert first_of(trace, 2, first=1) == [1, 2, 3]
    assert first_of(trace, 1, first=1, last=True) == [9]
    assert first_of(trace, 3, first=2, last=True) == [9, 4, 3]


def test_rows_that_were_taken_back_are_passed_over():
    trace = Trace(NUMBERS, [run("a", list(range(10)), -1), run("a", list(range(20)))])
    assert first_of(trace, 1, first=1)[0] == 10
    assert first_of(trace, 20, first=1) == list(range(10, 20))
    assert rows_under(trace, hash_rows([pa.array(["a", "b"])], 2)).tolist() == [30, 0]


def test_a_trace_without_an_order_has_no_ends():
    with pytest.raises(ValueError, match="has no order"):
        first_of(Trace(Layout(("c0",), schema=SCHEMA), []), 1, first=1)


def test_a_trace_without_runs_has_no_rows():
    assert first_of(Trace(NUMBERS, []), 1, first=1) == []

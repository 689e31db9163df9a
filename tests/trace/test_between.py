"""Spans of ordered traces against a filter over all of their rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import POOLS, tables, twins
from tests.trace.test_ends import keys_of
from tests.trace.test_order import by_order, orders
from tests.trace.test_order import ordered as any_order

from evert.schema.digest import integers
from evert.trace import meeting
from evert.trace.arrays import one_chunk
from evert.trace.between import Spans, between, gathered_between
from evert.trace.consolidate import with_hash
from evert.trace.ends import ends
from evert.trace.keys import hash_rows
from evert.trace.order import By
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace, merge

FIXED = [
    kind
    for kind, pool in POOLS
    if pool and (pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_time(kind)
]
STRUCTS = [pa.struct({"f0": kind, "f1": pa.string()}) for kind in (pa.int32(), pa.timestamp("us"))]
EDGES = [-(2**63), 2**63 - 1]


@st.composite
def traces(draw):
    """A trace ordered by a number or a time, its tables, keys with limits to ask for, and the width of hashes."""
    kinds = [draw(st.sampled_from([*FIXED, *STRUCTS])), *draw(st.lists(any_order, max_size=2))]
    names = [f"c{n}" for n in range(len(kinds))]
    key = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2)))
    bits = draw(st.sampled_from([3, 64]))
    more = tuple(by for by in draw(orders(names)) if by.name != "c0")
    layout = Layout(key, schema=draw(tables(kinds, 0)).schema, order=(By("c0"), *more))
    found = [
        merge(layout, [with_hash(table, key, bits=bits)], bottom=False)
        for table in draw(st.lists(tables(kinds, 9), max_size=4))
    ]
    needles = draw(tables(kinds, 6))
    stored = [value for table in found for value in integers(decisive(table)).tolist()]
    value = st.sampled_from([*EDGES, 0, *stored, *(n + 1 for n in stored if n < EDGES[1])])
    limits = draw(
        st.lists(
            st.tuples(value, value, st.sampled_from([False, False, True])),
            min_size=needles.num_rows,
            max_size=needles.num_rows,
        )
    )
    return Trace(layout, [Run.of(table) for table in found]), found, needles, limits, bits


def decisive(table):
    """The values that spans are about."""
    column = one_chunk(table.column("c0"))
    return pc.struct_field(column, [0]) if pa.types.is_struct(column.type) else column


def spans_of(trace, needles, limits, bits):
    keys = [needles.column(name) for name in trace.layout.key]
    low, high = (np.array([one[at] for one in limits], np.int64) for at in (0, 1))
    null = np.array([one[2] for one in limits], np.bool_)
    hashes = hash_rows([one_chunk(key) for key in keys], needles.num_rows, bits)
    return Spans(hashes, keys, low, high, null)


def inside(value, null, limits):
    low, high, nulls = limits
    return null if nulls else not null and low <= value <= high


def all_rows(found, layout, key, limits):
    """The rows of a key within limits, each with its weight and values, table by table."""
    names = layout.schema.names[:-1]
    for table in found:
        column = decisive(table)
        rows = zip(
            twins([table.column(name) for name in names], exact=True),
            zip(*(table.column(name).to_pylist() for name in names), strict=True),
            keys_of(table, layout.key),
            integers(column).tolist(),
            column.is_null().to_pylist(),
            table.column("__w").to_pylist(),
            strict=True,
        )
        for twin, row, owner, value, null, weight in rows:
            if owner == key and inside(value, null, limits):
                yield twin, row, weight


@settings(max_examples=150, deadline=None)
@given(traces(), st.sampled_from([2, 1 << 20]))
def test_a_span_has_the_rows_that_a_filter_finds(drawn, most):
    trace, found, needles, limits, bits = drawn
    names = trace.layout.schema.names[:-1]
    shown = [Counter() for _ in limits]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meeting.stretches, "__defaults__", (most,))
        for which, run, rows in between(trace, spans_of(trace, needles, limits, bits)):
            assert 0 < len(which) <= most
            taken = run.table.take(pa.array(rows))
            weights = taken.column("__w").to_pylist()
            exact = twins([taken.column(name) for name in names], exact=True)
            for at, twin, weight in zip(which.tolist(), exact, weights, strict=True):
                shown[at][twin, weight] += 1
    keys = keys_of(needles, trace.layout.key)
    for key, one, seen in zip(keys, limits, shown, strict=True):
        expected = Counter((twin, weight) for twin, _, weight in all_rows(found, trace.layout, key, one))
        assert seen == expected


@settings(max_examples=150, deadline=None)
@given(traces(), st.sampled_from([1, 200, 64 << 20]))
def test_gathered_rows_are_summed_and_in_order_and_no_span_is_cut(drawn, limit):
    trace, found, needles, limits, bits = drawn
    names = trace.layout.schema.names[:-1]
    shown = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evert.trace.gather.BATCH_BYTES", limit)
        for owners, rows in gathered_between(trace, spans_of(trace, needles, limits, bits)):
            assert (np.diff(owners) >= 0).all()
            assert not set(owners.tolist()) & set(shown)
            exact = twins([rows.column(name) for name in names], exact=True)
            weighted = zip(exact, rows.column("__w").to_pylist(), strict=True)
            for at, row in zip(owners.tolist(), weighted, strict=True):
                shown.setdefault(at, []).append(row)
    order = by_order(trace.layout.order, names)
    for at, (key, one) in enumerate(zip(keys_of(needles, trace.layout.key), limits, strict=True)):
        weights, values = Counter(), {}
        for twin, row, weight in all_rows(found, trace.layout, key, one):
            weights[twin] += weight
            values[twin] = row
        ranked = sorted((twin for twin in weights if weights[twin]), key=lambda twin: order(values[twin]))
        assert shown.get(at, []) == [(twin, weights[twin]) for twin in ranked]


@settings(max_examples=150, deadline=None)
@given(traces(), st.integers(1, 3), st.integers(1, 3))
def test_the_last_rows_below_a_value_are_those_of_a_filter(drawn, first, wanted):
    trace, found, needles, limits, bits = drawn
    names = trace.layout.schema.names[:-1]
    spans = spans_of(trace, needles, limits, bits)

    def enough(known):
        return np.flatnonzero(np.bincount(known.group, minlength=len(limits)) >= wanted)

    read = ends(trace, spans.hashes, spans.keys, enough, first=first, last=True, below=spans.high)
    order = by_order(trace.layout.order, names)
    for at, (key, (_, high, _)) in enumerate(zip(keys_of(needles, trace.layout.key), limits, strict=True)):
        weights, values = Counter(), {}
        if high > EDGES[0]:
            for twin, row, weight in all_rows(found, trace.layout, key, (EDGES[0], high - 1, False)):
                weights[twin] += weight
                values[twin] = row
        ranked = sorted((twin for twin in weights if weights[twin]), key=lambda twin: order(values[twin]))
        mine = read.rows.filter(pa.array(read.group == at))
        shown = twins([mine.column(name) for name in names], exact=True)
        assert shown == ranked[::-1][: len(shown)]
        assert len(shown) >= min(wanted, len(ranked))


SCHEMA = pa.schema({"c0": pa.int64(), "c1": pa.string(), "__w": pa.int64()})
BY_NUMBER = Layout(("c1",), schema=SCHEMA, order=(By("c0"),))


def test_a_span_of_a_long_key_reads_its_rows_alone(monkeypatch):
    rows = pa.table([list(range(100_000)), ["a"] * 100_000, [1] * 100_000], schema=SCHEMA)
    trace = Trace(BY_NUMBER, [Run.of(merge(BY_NUMBER, [with_hash(rows, ["c1"])], bottom=False))])
    key = pa.array(["a", "a", "b"])
    limits = [(500, 502, False), (-5, 1, False), (500, 502, False)]
    low, high, null = (np.array(one) for one in zip(*limits, strict=True))
    compared = []
    plain = between.__globals__["same_rows"]

    def counted(left, left_rows, right, right_rows):
        compared.append(len(right_rows))
        return plain(left, left_rows, right, right_rows)

    monkeypatch.setattr("evert.trace.between.same_rows", counted)
    ((owners, found),) = gathered_between(trace, Spans(hash_rows([key], 3), [key], low, high, null))
    assert (owners.tolist(), found.column("c0").to_pylist()) == ([0, 0, 0, 1, 1], [500, 501, 502, 0, 1])
    assert compared == [5]


@pytest.mark.parametrize(
    "order", [None, (), (By("c0", descending=True),), (By("c0", nulls_first=False), By("c1"))]
)
def test_a_trace_in_another_order_has_no_spans(order):
    trace = Trace(Layout(("c1",), schema=SCHEMA, order=order), [])
    nothing = Spans(np.zeros(0, np.uint64), [pa.array([], pa.string())], *(np.zeros(0, np.int64),) * 3)
    with pytest.raises(ValueError, match="whose order ascends"):
        list(between(trace, nothing))


def test_a_trace_without_runs_has_no_rows():
    key = pa.array(["a"])
    spans = Spans(
        hash_rows([key], 1), [key], np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.bool_)
    )
    assert list(gathered_between(Trace(BY_NUMBER, []), spans)) == []

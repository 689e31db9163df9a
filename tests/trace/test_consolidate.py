"""Consolidation against a `Counter`."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import tables, twins, types

from evert.trace import grouping
from evert.trace.consolidate import (
    consolidate,
    content_of,
    empty_like,
    hashes_of,
    merged,
    negate,
    plus,
    sorted_by_hash,
    with_hash,
)
from evert.trace.keys import hash_rows, same_rows


def counted(rows):
    """The weights by row, zeros left out."""
    sums = Counter()
    if not rows.num_rows:
        return sums
    names = content_of(rows)
    found = twins([rows.column(name) for name in names], exact=True) if names else [()] * rows.num_rows
    for row, weight in zip(found, rows.column("__w").to_pylist(), strict=True):
        sums[row] += weight
    return Counter({row: weight for row, weight in sums.items() if weight})


@settings(max_examples=150, deadline=None)
@given(st.lists(types, max_size=3).flatmap(tables), st.sampled_from([3, 64]), st.data())
def test_consolidated_rows_are_those_that_a_counter_counts(rows, bits, data):
    names = content_of(rows)
    key = data.draw(st.none() | st.lists(st.sampled_from(names), unique=True) if names else st.none())
    done = consolidate(rows, key, bits=bits)
    assert done.schema.names == ["__h", *rows.schema.names]
    assert counted(done) == counted(rows)
    assert done.num_rows == len(counted(rows))
    hashes = hashes_of(done)
    assert (hashes[1:] >= hashes[:-1]).all()
    columns = [done.column(name) for name in (names if key is None else key)]
    assert hashes.tolist() == hash_rows(columns, done.num_rows, bits).tolist()
    assert counted(consolidate(done, key, bits=bits)) == counted(rows)
    assert consolidate(plus(rows, negate(rows)), key, bits=bits).num_rows == 0


@settings(max_examples=150, deadline=None)
@given(st.lists(types, min_size=1, max_size=3).flatmap(tables), st.sampled_from([3, 64]), st.data())
def test_merged_rows_sum_up_to_the_same(rows, bits, data):
    key = data.draw(st.lists(st.sampled_from(content_of(rows)), unique=True))
    parts = [rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2)]
    runs = [consolidate(part, key, bits=bits) for part in parts]
    done = merged(runs, key, bits=bits)
    assert counted(done) == counted(rows)
    hashes = hashes_of(done)
    assert (hashes[1:] >= hashes[:-1]).all()
    back = merged([*runs, *(negate(run) for run in runs)], key, bits=bits)
    assert back.num_rows == 0


def test_equal_rows_are_looked_for_where_there_are_many_or_one_is_taken_back():
    def run(numbers, weight=1):
        rows = pa.table({"c0": numbers % 100, "c1": numbers, "__w": np.full(len(numbers), weight)})
        return consolidate(rows, ["c0"])

    first = np.arange(20_000)
    few = merged([run(first), run(first[:10] + 0)], ["c0"], bits=64)
    assert few.num_rows == 20_010
    many = merged([run(first), run(first)], ["c0"], bits=64)
    assert many.num_rows == 20_000
    assert set(many.column("__w").to_pylist()) == {2}
    taken = merged([run(first), run(first[7:8], -1), run(first[7:8] + 100)], ["c0"], bits=64)
    assert counted(taken)[7, 7] == 0
    assert taken.num_rows == 19_999


def test_many_rows_under_few_hashes_are_told_apart():
    numbers = np.arange(3000) % 700
    rows = pa.table({"c0": numbers, "__w": np.ones(3000, np.int64)})
    for key in (None, [], ["c0"]):
        done = consolidate(rows, key, bits=3)
        assert counted(done) == counted(rows)


def test_rows_under_one_hash_are_sorted_by_their_content_before_they_are_compared(monkeypatch):
    calls = []
    monkeypatch.setattr(
        grouping, "same_rows", lambda *rows, **how: calls.append(rows) or same_rows(*rows, **how)
    )
    rows = pa.table({"c0": np.arange(5000) % 2500, "__w": np.ones(5000, np.int64)})
    assert consolidate(rows, []).num_rows == 2500
    assert len(calls) == 1


def test_consolidating_keeps_minus_zero_and_zero_apart():
    rows = pa.table({"c0": [0.0, -0.0, 0.0, -0.0], "__w": pa.array([1, 1, 1, -1], pa.int64())})
    assert consolidate(rows).select(["c0", "__w"]).to_pylist() == [{"c0": 0.0, "__w": 2}]


def test_an_empty_delta_stays_empty_and_keeps_its_columns():
    schema = pa.schema([("c0", pa.list_(pa.string())), ("c1", pa.null()), ("__w", pa.int64())])
    done = consolidate(schema.empty_table(), ["c0"])
    assert done.num_rows == 0
    assert done.drop_columns(["__h"]).schema == schema
    assert consolidate(pa.Table.from_batches([], schema)).num_rows == 0
    assert empty_like(done).schema == done.schema


def test_rows_without_columns_are_one_row():
    rows = pa.table({"__w": pa.array([1, 2, -1], pa.int64())})
    assert consolidate(rows).to_pylist() == [{"__h": 0, "__w": 2}]


def test_rows_in_the_order_of_their_hashes_are_not_copied():
    rows = with_hash(pa.table({"c0": [3, 1, 2], "__w": pa.array([1, 1, 1], pa.int64())}), ["c0"])
    ordered = sorted_by_hash(rows)
    assert hashes_of(ordered).tolist() == sorted(hashes_of(rows).tolist())
    assert sorted_by_hash(ordered) is ordered


def test_fields_keep_their_nullability():
    schema = pa.schema([pa.field("c0", pa.int64(), nullable=False), pa.field("__w", pa.int64())])
    rows = pa.table([pa.array([1, 1]), pa.array([1, 1], pa.int64())], schema=schema)
    assert not consolidate(rows).schema.field("c0").nullable


def test_a_delta_needs_weights():
    with pytest.raises(KeyError):
        consolidate(pa.table({"c0": [1]}))

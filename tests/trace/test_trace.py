"""Traces against brute force: looking up, merging, and how many runs there are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import tables, twins, types
from tests.trace.test_consolidate import counted

from evert.trace import trace as module
from evert.trace.consolidate import consolidate, content_of, plus, with_hash
from evert.trace.keys import hash_rows
from evert.trace.meeting import meeting
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace, how_many, merge

small = st.lists(st.integers(0, 6), max_size=20).map(sorted)


@given(small, small, st.integers(1, 5))
def test_sorted_lists_meet_in_all_equal_pairs(left, right, most):
    found = list(meeting(np.array(left, np.uint64), np.array(right, np.uint64), most))
    assert all(0 < len(a) == len(b) <= most for a, b in found)
    pairs = sorted((int(i), int(j)) for a, b in found for i, j in zip(a, b, strict=True))
    assert pairs == [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]


@st.composite
def bags(draw):
    """Some runs of one layout, the key columns, the width of hashes, and needles of the same columns."""
    kinds = draw(st.lists(types, min_size=1, max_size=2))
    key = draw(st.lists(st.sampled_from([f"c{n}" for n in range(len(kinds))]), unique=True))
    bits = draw(st.sampled_from([3, 64]))
    found = [consolidate(table, key, bits=bits) for table in draw(st.lists(tables(kinds, 6), max_size=4))]
    return found, tuple(key), bits, draw(tables(kinds, 6))


@settings(max_examples=100, deadline=None)
@given(bags())
def test_matches_are_all_pairs_of_equal_keys(drawn):
    found, key, bits, needles = drawn
    keys = [needles.column(name) for name in key]
    count = needles.num_rows
    trace = Trace(Layout(key), [Run.of(table) for table in found])
    wanted = twins(keys) if key else [()] * count
    expected = []
    for number, run in enumerate(trace.runs):
        stored = twins([run.column(name) for name in key]) if key else [()] * run.rows
        expected += [(i, number, j) for i, a in enumerate(wanted) for j, b in enumerate(stored) if a == b]
    pairs = [
        (int(i), trace.runs.index(run), int(j))
        for places, run, rows in trace.matches(hash_rows(keys, count, bits), keys)
        for i, j in zip(places, rows, strict=True)
    ]
    assert sorted(pairs) == sorted(expected)


@settings(max_examples=100, deadline=None)
@given(bags(), st.booleans())
def test_a_bag_holds_the_sum_of_its_runs(drawn, cut):
    found, key, _, _ = drawn
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(module, "PIECE_BYTES", 50)
        rows = Trace(Layout(key), [Run.of(table) for table in found]).rows()
    if not found:
        assert rows.num_rows == 0
        return
    assert counted(rows) == counted(plus(*found))
    named = [rows.column(name) for name in content_of(rows)]
    there = set(twins(named, exact=True) if named else [()] * rows.num_rows)
    assert len(there) == len(counted(rows)), "what sums up to nothing is not there"
    hashes = rows.column("__h").to_pylist()
    assert hashes == sorted(hashes)


def version(key, number, gone, bits):
    table = pa.table({"c0": key, "c1": [number] * len(key), "__gone": pa.array(gone, pa.bool_())})
    return with_hash(table, ["c0"], bits=bits)


keys_of_text = st.sampled_from([None, "", "a", "b", "c", "d" * 9, "e" * 20])
changes = st.dictionaries(keys_of_text, st.booleans(), max_size=5)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(changes, max_size=5),
    st.sampled_from([3, 64]),
    st.lists(keys_of_text, unique=True),
    st.booleans(),
)
def test_the_newest_row_of_a_key_wins(epochs, bits, wanted, cut):
    layout = Layout(("c0",), latest=True)
    expected: dict[str | None, int] = {}
    found = []
    for number, epoch in enumerate(epochs):
        key = pa.array(list(epoch), pa.string())
        found.insert(0, Run.of(version(key, number, list(epoch.values()), bits)))
        for name, gone in epoch.items():
            expected.pop(name, None)
            if not gone:
                expected[name] = number
    trace = Trace(layout, found)
    needles = pa.array(wanted, pa.string())
    mask, rows = trace.newest(hash_rows([needles], len(wanted), bits), [needles])
    assert mask.tolist() == [name in expected for name in wanted]
    assert not found or "__gone" not in rows.schema.names
    if found:
        assert rows.column("c0").to_pylist() == [name for name in wanted if name in expected]
        assert rows.column("c1").to_pylist() == [expected[name] for name in wanted if name in expected]
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(module, "PIECE_BYTES", 50)
        everything = trace.rows()
        assert everything.num_rows == len(expected)
        if found:
            rows_now = zip(*(everything.column(name).to_pylist() for name in ("c0", "c1")), strict=True)
            assert dict(rows_now) == expected
        for count in range(1, len(found) + 1):
            merged = merge(layout, [run.table for run in found[:count]], bottom=False, bits=bits)
            rest = Trace(layout, [Run.of(merged), *found[count:]])
            assert str(rest.rows().to_pylist()) == str(everything.to_pylist())


def test_an_empty_trace_has_the_columns_of_its_layout():
    schema = pa.schema([("c0", pa.int64()), ("__gone", pa.bool_())])
    trace = Trace(Layout(("c0",), latest=True, schema=schema), [])
    assert trace.rows().schema.names == ["__h", "c0"]
    mask, rows = trace.newest(np.array([1], np.uint64), [pa.array([1])])
    assert (mask.tolist(), rows.schema.names, rows.num_rows) == ([False], ["__h", "c0"], 0)
    assert list(Trace(Layout(()), []).matches(np.array([0], np.uint64), [])) == []


def test_tables_of_other_columns_are_not_merged():
    one = consolidate(pa.table({"c0": [1], "__w": pa.array([1], pa.int64())}))
    other = one.rename_columns(["__h", "c1", "__w"])
    with pytest.raises(ValueError, match="differ"):
        merge(Layout(("c0",)), [one, other], bottom=True)


sizes = st.one_of(
    st.integers(1, 10), st.integers(1, 10**5), st.integers(1, 10**9), st.sampled_from([4095, 4096])
)


@given(st.lists(sizes, max_size=200), st.floats(0, 1))
def test_a_shard_stays_at_a_few_dozen_runs_whatever_the_sizes(new, left_over):
    runs: list[int] = []
    for rows in new:
        count = how_many(rows, runs)
        runs[:count] = [int((rows + sum(runs[:count])) * (left_over if count else 1)) or 1]
        assert len(runs) <= 3 * 14


def test_equal_epochs_are_written_a_few_times_each():
    runs: list[int] = []
    work = 0
    for _ in range(4096):
        count = how_many(1000, runs)
        runs[:count] = [1000 + sum(runs[:count])]
        work += runs[0]
        assert len(runs) <= 24
    assert work < 4096 * 1000 * 9


def test_content_is_all_but_hash_and_weight():
    assert content_of(pa.table({"__h": [1], "c0": [1], "__w": [1]})) == ["c0"]

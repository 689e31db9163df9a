"""A view's rows are the sum of its deltas, and never less than nothing."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus, table
from tests.delta.histories import ANY, BITS, CHANGES, LAW, Bag, relations

from evert.delta import DataError, Output

ROWS = pa.schema({"id": pa.int64(), "name": pa.string()})


def content(bag: Bag) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, weight in bag:
        found[canon(row)] += weight
    return found


@LAW
@given(
    relations(st.lists(ANY, min_size=1, max_size=3)),
    CHANGES,
    BITS,
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
)
def test_any_changes(
    relation: tuple[pa.Schema, list[Any]], changes: Any, bits: int, replace: bool, grows: bool, pieces: int
) -> None:
    bag = Bag(*relation)
    operator = Output(relation[0], None, declared=False, replace=replace, grows=grows)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(operator, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for change in changes:
            delta = bag.change(change, backwards=True)
            before = sum_
            emitted = node.epoch(bag.whole() if replace else delta, pieces=pieces)
            assert len(count(emitted)) == emitted.num_rows, "the delta is consolidated"
            sum_ = plus(sum_, count(emitted))
            assert sum_ == content(bag)
            published: Counter[Any] = Counter()
            for part in node.published:
                published = plus(published, count(part))
            assert plus(before, published) == sum_
            node.restart()


@LAW
@given(relations(st.lists(ANY, min_size=2, max_size=3)), CHANGES, BITS, st.integers(0, 2), st.booleans())
def test_a_key_never_has_two_rows(
    relation: tuple[pa.Schema, list[Any]], changes: Any, bits: int, keys: int, replace: bool
) -> None:
    schema, pool = relation
    bag = Bag(schema, pool)
    operator = Output(schema, tuple(range(keys)), declared=True, replace=replace)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(operator, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for change in changes:
            delta = bag.change(change)
            owners: Counter[Any] = Counter()
            for row, weight in bag:
                owners[normal(row[:keys])] += weight
            given_ = bag.whole() if replace else delta
            if max(owners.values(), default=0) > 1:
                with pytest.raises(DataError, match=r"the key \(.*\) is not unique: \d+ rows have it"):
                    node.epoch(given_)
                return
            sum_ = plus(sum_, count(node.epoch(given_)))
            assert sum_ == content(bag)


@LAW
@given(relations(st.lists(ANY, min_size=1, max_size=3)), CHANGES, BITS, st.booleans(), st.integers(0, 7))
def test_a_row_that_is_not_there_cannot_be_taken(
    relation: tuple[pa.Schema, list[Any]], changes: Any, bits: int, replace: bool, place: int
) -> None:
    schema, pool = relation
    bag = Bag(schema, pool)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Output(schema, None, declared=False, replace=replace), Path(folder), bits=bits)
        for change in changes:
            delta = bag.change(change)
            node.epoch(bag.whole() if replace else delta)
        row = pool[place % len(pool)]
        held = 0 if replace else content(bag)[canon(row)]
        with pytest.raises(DataError, match="a row of the view would be there -1 times"):
            node.epoch(table(schema, [row, row], [-held, -1]))


def test_the_violated_key_is_named(tmp_path: Path) -> None:
    two = table(ROWS, [(1, "a"), (1, "b")], [1, 1])
    with pytest.raises(DataError, match=r"^the key \(id = 1\) is not unique: 2 rows have it$"):
        Node(Output(ROWS, (0,), declared=True, replace=False), tmp_path).epoch(two)
    with pytest.raises(
        DataError, match=r"^2 rows have the key \(id = 1\), which the plan took to be unique$"
    ):
        Node(Output(ROWS, (0,), declared=False, replace=False), tmp_path).epoch(two)


@pytest.mark.parametrize("key", [None, (0,)])
def test_only_exactly_the_row_that_is_there_can_be_taken(tmp_path: Path, key: tuple[int, ...] | None) -> None:
    schema = pa.schema({"id": pa.int64(), "x": pa.float64()})
    node = Node(Output(schema, key, declared=False, replace=False), tmp_path)
    node.epoch(table(schema, [(1, 0.0)], [1]))
    with pytest.raises(DataError, match="a row of the view would be there -1 times"):
        node.epoch(table(schema, [(1, -0.0)], [-1]))


def test_a_key_may_change_its_row_in_one_epoch(tmp_path: Path) -> None:
    node = Node(Output(ROWS, (0,), declared=True, replace=False), tmp_path)
    node.epoch(table(ROWS, [(1, "a")], [1]))
    node.epoch(table(ROWS, [(1, "b"), (1, "a")], [1, -1]))
    with pytest.raises(DataError, match="is not unique"):
        node.epoch(table(ROWS, [(1, "c")], [1]))


def test_a_replacement_without_input_empties_the_view(tmp_path: Path) -> None:
    node = Node(Output(ROWS, (0,), declared=False, replace=True), tmp_path)
    node.epoch(table(ROWS, [(1, "a"), (2, "b")], [1, 1]))
    assert count(node.epoch(None)) == {(1, "a"): -1, (2, "b"): -1}
    assert node.epoch(None).num_rows == 0

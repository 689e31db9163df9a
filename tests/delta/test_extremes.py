"""min and max over rows that come and go are those of the rows that are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, rows_of, table
from tests.delta.histories import ANY, BITS, CHANGES, FLOATS, LAW, ORDERED, Bag, relations, values
from tests.delta.test_aggregate import follow, ports
from tests.delta.test_top import Counted

from evert.delta import Aggregate, DataError, Function
from evert.delta import extremes as module


@contextmanager
def reading(first: int) -> Iterator[None]:
    """So many rows are read to begin with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIRST", first)
        yield


FIRST = st.sampled_from([1, 1, 2, 100])


@LAW
@given(st.data(), CHANGES, BITS, st.integers(1, 3), st.booleans(), FIRST)
def test_least_and_greatest_under_any_changes(
    data: Any, changes: Any, bits: int, pieces: int, restarts: bool, first: int
) -> None:
    keys = data.draw(st.lists(ANY, max_size=2))
    arguments = data.draw(st.lists(ORDERED, min_size=1, max_size=2))
    schema, pool = data.draw(relations(st.just(keys + arguments), most=8))
    places = range(len(schema) - len(arguments), len(schema))
    functions = [Function(kind, at) for at in places for kind in ("min", "max", "count")]
    chosen = tuple(data.draw(st.lists(values([*functions, Function("count")]), min_size=1, max_size=5)))
    always = not keys and data.draw(st.booleans())
    operator = Aggregate(schema, len(keys), chosen, always, retracts=True)
    with reading(first):
        follow(operator, Bag(schema, pool), changes, bits, pieces, restarts)


@LAW
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 60), st.sampled_from([1, 1, -1, -1])), max_size=40), max_size=8
    ),
    BITS,
    st.sampled_from([pa.int64(), pa.string(), pa.float64()]),
    FIRST,
)
def test_least_and_greatest_of_many_values(changes: Any, bits: int, kind: pa.DataType, first: int) -> None:
    schema = pa.schema({"k": pa.int64(), "x": kind})
    content = {pa.int64(): list(range(20)), pa.string(): [str(n) for n in range(20)], pa.float64(): FLOATS}[
        kind
    ]
    pool = [(number % 3, content[number // 3 % len(content)]) for number in range(61)]
    operator = Aggregate(schema, 1, (Function("min", 1), Function("max", 1)), retracts=True)
    with reading(first):
        follow(operator, Bag(schema, pool), changes, bits, 2, restarts=True)


PRICES = pa.schema({"shop": pa.string(), "price": pa.int64()})
BOTH = Aggregate(PRICES, 1, (Function("min", 1), Function("max", 1)), retracts=True)


def prices(*rows: tuple[str, int | None, int]) -> list[pa.Table | None]:
    return ports(BOTH, table(PRICES, [row[:2] for row in rows], [row[2] for row in rows]))


def test_what_leaves_uncovers_the_next(tmp_path: Path) -> None:
    node = Node(BOTH, tmp_path)
    assert count(node.epoch(*prices(("a", 3, 1), ("a", 5, 2), ("a", 9, 1)))) == {("a", 3, 9): 1}
    assert count(node.epoch(*prices(("a", 3, -1)))) == {("a", 3, 9): -1, ("a", 5, 9): 1}
    assert node.epoch(*prices(("a", 5, -1))).num_rows == 0
    node.restart()
    assert count(node.epoch(*prices(("a", 9, -1)))) == {("a", 5, 9): -1, ("a", 5, 5): 1}
    assert count(node.epoch(*prices(("a", 5, -1)))) == {("a", 5, 5): -1}


def test_a_value_may_be_replaced_while_the_count_stays(tmp_path: Path) -> None:
    node = Node(BOTH, tmp_path)
    node.epoch(*prices(("a", 3, 1), ("a", 5, 1)))
    replaced = prices(("a", 3, -1), ("a", 4, 1))
    assert BOTH.prepare(0, replaced[0], 64).num_rows == 0
    assert count(node.epoch(*replaced)) == {("a", 3, 5): -1, ("a", 4, 5): 1}


def test_a_group_of_nothing_but_null_has_no_extremes(tmp_path: Path) -> None:
    node = Node(BOTH, tmp_path)
    assert count(node.epoch(*prices(("a", None, 1)))) == {("a", None, None): 1}
    assert count(node.epoch(*prices(("a", 3, 1)))) == {("a", None, None): -1, ("a", 3, 3): 1}
    assert count(node.epoch(*prices(("a", None, -1)))) == {}
    assert count(node.epoch(*prices(("a", 3, -1), ("a", None, 1)))) == {("a", 3, 3): -1, ("a", None, None): 1}


def test_each_argument_has_a_port_of_its_own() -> None:
    schema = pa.schema({"k": pa.int64(), "x": pa.string(), "y": pa.float64(), "z": pa.date32()})
    functions = (Function("max", 3), Function("count", 2), Function("min", 1), Function("min", 3))
    operator = Aggregate(schema, 1, functions, retracts=True)
    assert [port.types for port in operator.inputs] == [
        schema.types,
        [pa.int64(), pa.string()],
        [pa.int64(), pa.date32()],
    ]
    assert operator.accumulators.schema.names == ["weight", "count2"]
    assert len(Aggregate(schema, 1, functions).inputs) == 1
    assert len(Aggregate(schema, 1, functions[1:2], retracts=True).inputs) == 1


def test_the_two_zeros_are_told_apart(tmp_path: Path) -> None:
    schema = pa.schema({"x": pa.float64()})
    operator = Aggregate(schema, 0, (Function("min", 0), Function("max", 0)), always=True, retracts=True)
    node = Node(operator, tmp_path)
    node.epoch(*ports(operator, table(schema, [(0.0,), (-0.0,)], [1, 1])))
    emitted = node.epoch(*ports(operator, table(schema, [(-0.0,)], [-1])))
    assert count(emitted) == {canon((-0.0, 0.0)): -1, canon((0.0, 0.0)): 1}


@pytest.mark.parametrize("kind", ["min", "max"])
def test_an_epoch_reads_the_ends_and_not_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    schema = pa.schema({"x": pa.int64()})
    operator = Aggregate(schema, 0, (Function(kind, 0),), always=True, retracts=True)
    node = Node(operator, tmp_path, look=False)
    numbers = range(200_000) if kind == "min" else range(200_000, 0, -1)
    node.epoch(*ports(operator, table(schema, [(number,) for number in numbers], [1] * len(numbers))))
    counted = Counted(monkeypatch)
    for gone, next_one in pairwise(numbers[:51]):
        emitted = node.epoch(*ports(operator, table(schema, [(gone,)], [-1])))
        assert sorted(rows_of(emitted), key=lambda row: row[1]) == [((gone,), -1), ((next_one,), 1)]
    assert counted.rows < 50 * 500
    node.epoch(*ports(operator, table(schema, [(number,) for number in numbers[:50]], [1] * 50)))
    counted.rows = 0
    assert node.epoch(*ports(operator, table(schema, [(150_000,), (150_001,)], [-1, -1]))).num_rows == 0
    assert counted.rows < 100


def test_values_that_were_never_there_cannot_be_taken_out(tmp_path: Path) -> None:
    node = Node(BOTH, tmp_path)
    node.epoch(*prices(("a", 3, 1), ("a", 5, 1)))
    with pytest.raises(DataError, match="more rows were taken out of a group"):
        node.epoch(*prices(("a", 2, -1)))
    with pytest.raises(DataError, match="are not those that had been put in"):
        node.epoch(*prices(("a", None, -2)))

"""Aggregates kept from the change alone equal aggregates over all rows."""

from __future__ import annotations

import datetime
import math
import tempfile
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus, table
from tests.delta.histories import ANY, BITS, CHANGES, FLOATS, LAW, ORDERED, Bag, relations, values
from tests.trace.columns import compared

from evert.delta import Aggregate, DataError, Function

SUMMED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, 2**63 - 1, -(2**63)]),
    (pa.int8(), [None, 5, -128]),
    (pa.float64(), FLOATS),
    (pa.float32(), [None, 0.5, -0.0, 2.0**-149, 2.0**127]),
    (pa.decimal128(38, 2), [None, Decimal("-1.50"), Decimal(10) ** 34, Decimal(-(10**34))]),
    (pa.decimal128(9, 3), [None, Decimal("0.001"), Decimal("-999999.999")]),
    (pa.duration("us"), [None, datetime.timedelta(days=1), datetime.timedelta(microseconds=-1)]),
]
COUNT = Function("count")


def tidy(value: Any) -> Any:
    """A group's key as Spark shows it."""
    if isinstance(value, float):
        return value if value != value else value + 0.0
    if isinstance(value, list | tuple):
        return type(value)(tidy(item) for item in value)
    return {name: tidy(item) for name, item in value.items()} if isinstance(value, dict) else value


def slow_sum(kind: pa.DataType, held: list[tuple[Any, int]]) -> Any:
    held = [(value, weight) for value, weight in held if value is not None]
    if not held:
        return None
    if pa.types.is_floating(kind):
        strange = [value for value, _ in held if not math.isfinite(value)]
        if strange:
            return sum(strange)
        exact = sum((Fraction(value) * weight for value, weight in held), Fraction(0))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
    if pa.types.is_duration(kind):
        return sum((value * weight for value, weight in held), datetime.timedelta())
    with localcontext(prec=100):
        return sum((Decimal(value) * weight for value, weight in held), Decimal(0))


def slow(operator: Aggregate, bag: Bag) -> Counter[Any]:
    groups: dict[Any, list[tuple[Any, int]]] = {(): []} if operator.always else {}
    for row, weight in bag:
        groups.setdefault(normal(row[: operator.keys]), []).append((row, weight))
    found: Counter[Any] = Counter()
    for rows in groups.values():
        results = []
        for function in operator.functions:
            at = function.argument
            if at is None:
                results.append(sum(weight for _, weight in rows))
                continue
            held = [(row[at], weight) for row, weight in rows if row[at] is not None]
            if function.kind == "count":
                results.append(sum(weight for _, weight in held))
            elif function.kind == "some":
                results.append(bool(held))
            elif function.kind == "sum":
                results.append(slow_sum(operator.input.field(at).type, held))
            else:
                ordered = sorted((value for value, _ in held), key=cmp_to_key(compared))
                results.append(ordered[-(function.kind == "max")] if ordered else None)
        key = [tidy(value) for value in rows[0][0][: operator.keys]] if rows else []
        found[canon((*key, *results))] += 1
    return found


def ports(operator: Aggregate, delta: pa.Table | None) -> list[pa.Table | None]:
    """The same delta on all ports: min and max over retracting input have the group and one argument."""
    if delta is None:
        return [None for _ in operator.inputs]
    found = [delta]
    for extremes in operator.extremes:
        names = [f"c{at}" for at in (*range(operator.keys), extremes.functions[0].argument)]
        found.append(delta.select([*names, "__w"]).rename_columns([*extremes.input.names, "__w"]))
    return found


def follow(operator: Aggregate, bag: Bag, changes: Any, bits: int, pieces: int, restarts: bool) -> None:
    """Runs the changes as epochs and as one, and compares with the slow twin after each."""
    with tempfile.TemporaryDirectory() as folder:
        node = Node(operator, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for number, change in enumerate(changes):
            delta = bag.change(change, backwards=number % 2 == 1)
            emitted = node.epoch(*ports(operator, delta), pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == operator.output.types
            assert len(count(emitted)) == emitted.num_rows, "nothing is taken back and given again"
            sum_ = plus(sum_, count(emitted))
            assert sum_ == slow(operator, bag)
            if restarts:
                node.restart()
        big = Node(operator, Path(folder) / "big", bits=bits)
        assert count(big.epoch(*ports(operator, bag.whole()))) == sum_


@LAW
@given(st.data(), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_counts_and_sums_under_any_changes(
    data: Any, changes: Any, bits: int, pieces: int, restarts: bool
) -> None:
    keys = data.draw(st.lists(ANY, max_size=2))
    arguments = data.draw(st.lists(st.sampled_from(SUMMED), max_size=2))
    schema, pool = data.draw(relations(st.just(keys + arguments), most=8))
    places = range(len(keys), len(schema))
    functions = [COUNT, *(Function(kind, at) for at in places for kind in ("sum", "count", "some"))]
    chosen = tuple(data.draw(st.lists(values(functions), max_size=4)))
    always = not keys and data.draw(st.booleans())
    follow(Aggregate(schema, len(keys), chosen, always), Bag(schema, pool), changes, bits, pieces, restarts)


@LAW
@given(st.data(), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_what_is_there_of_growing_input(
    data: Any, changes: Any, bits: int, pieces: int, restarts: bool
) -> None:
    keys = data.draw(st.lists(ANY, min_size=1, max_size=2))
    arguments = data.draw(st.lists(st.sampled_from(SUMMED), max_size=2))
    schema, pool = data.draw(relations(st.just(keys + arguments), most=8))
    functions = tuple(Function("some", at) for at in range(len(keys), len(schema)))
    growing = [[(place, abs(weight)) for place, weight in change] for change in changes]
    operator = Aggregate(schema, len(keys), functions, grows=True)
    assert operator.once
    follow(operator, Bag(schema, pool), growing, bits, pieces, restarts)


def test_a_group_that_is_known_is_not_written_again(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("c0", pa.int64()), pa.field("c1", pa.bool_())])
    node = Node(Aggregate(schema, 1, (Function("some", 1),), grows=True), tmp_path)
    bag = Bag(schema, [(1, None), (1, True), (2, True)])
    assert node.epoch(bag.change([(0, 1), (2, 5)])).num_rows == 2
    written = node.written
    assert node.epoch(bag.change([(0, 3), (2, 1)])).num_rows == 0
    assert node.written == written
    assert node.epoch(bag.change([(1, 1)])).num_rows == 2
    with pytest.raises(DataError, match="a row was deleted"):
        node.epoch(bag.change([(1, -1)]))


@LAW
@given(st.data(), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_least_and_greatest_of_growing_input(
    data: Any, changes: Any, bits: int, pieces: int, restarts: bool
) -> None:
    keys = data.draw(st.lists(ANY, max_size=1))
    schema, pool = data.draw(
        relations(st.lists(ORDERED, min_size=1, max_size=2).map(lambda more: keys + more), most=8)
    )
    places = range(len(keys), len(schema))
    functions = tuple(Function(kind, at) for at in places for kind in ("min", "max", "count"))
    growing = [[(place, abs(weight)) for place, weight in change] for change in changes]
    follow(
        Aggregate(schema, len(keys), functions, always=not keys),
        Bag(schema, pool),
        growing,
        bits,
        pieces,
        restarts,
    )


FLOAT = pa.schema({"x": pa.float64()})
SUM = Aggregate(FLOAT, 0, (Function("sum", 0),), always=True)


def sums(tmp_path: Path, *epochs: list[tuple[float, int]]) -> list[Any]:
    """The result after each epoch."""
    node = Node(SUM, tmp_path)
    found = []
    for epoch in epochs:
        emitted = node.epoch(table(FLOAT, [(value,) for value, _ in epoch], [weight for _, weight in epoch]))
        found.append(
            dict(zip(emitted.column("__w").to_pylist(), emitted.column("c0").to_pylist(), strict=True)).get(1)
        )
    return found


def test_a_retraction_leaves_no_drift(tmp_path: Path) -> None:
    assert sums(tmp_path, [(1e16, 1), (1.0, 1)], [(1e16, -1)], [(1.0, -1)]) == [1e16, 1.0, None]


def test_a_finite_sum_beyond_the_range_is_infinite_and_comes_back(tmp_path: Path) -> None:
    top = 1.7976931348623157e308
    assert sums(tmp_path, [(top, 3), (1.5, 1)], [(top, -3)]) == [math.inf, 1.5]


def test_infinities_and_nan_are_taken_back(tmp_path: Path) -> None:
    inf, nan = math.inf, math.nan
    found = sums(
        tmp_path, [(1.0, 1), (inf, 2)], [(-inf, 1)], [(inf, -2)], [(nan, 1), (-inf, -1)], [(nan, -1)]
    )
    assert [canon(value) for value in found] == [canon(value) for value in (inf, nan, -inf, nan, 1.0)]


def test_heavy_weights_are_exact(tmp_path: Path) -> None:
    heavy = 2**61
    assert sums(tmp_path, [(0.1, heavy), (1.0, 1)], [(0.1, -heavy)]) == [
        float(Fraction(0.1) * heavy + 1),
        1.0,
    ]


def test_null_is_no_extreme_value(tmp_path: Path) -> None:
    schema = pa.schema({"least": pa.int64(), "most": pa.int64()})
    operator = Aggregate(schema, 0, (Function("min", 0), Function("max", 1)), always=True)
    rows = [(None, None), (2**63 - 1, -(2**63)), (None, None)]
    assert count(Node(operator, tmp_path).epoch(table(schema, rows, [1, 1, 1]))) == {(2**63 - 1, -(2**63)): 1}


def test_a_global_aggregate_has_its_row_from_the_first_epoch_on(tmp_path: Path) -> None:
    schema = pa.schema({"x": pa.int64()})
    node = Node(Aggregate(schema, 0, (COUNT, Function("sum", 0)), always=True), tmp_path)
    assert count(node.epoch(None)) == {(0, None): 1}
    assert node.epoch(None).num_rows == 0
    assert count(node.epoch(table(schema, [(3,)], [1]))) == {(0, None): -1, (1, Decimal(3)): 1}
    node.restart()
    assert count(node.epoch(table(schema, [(3,)], [-1]))) == {(0, None): 1, (1, Decimal(3)): -1}
    assert node.epoch(table(schema, [(3,), (3,)], [1, -1])).num_rows == 0


def test_a_group_vanishes_and_comes_back(tmp_path: Path) -> None:
    schema = pa.schema({"k": pa.string(), "x": pa.int64()})
    node = Node(Aggregate(schema, 1, (Function("sum", 1),)), tmp_path)
    assert count(node.epoch(table(schema, [("a", 3)], [2]))) == {("a", Decimal(6)): 1}
    assert count(node.epoch(table(schema, [("a", 3)], [-2]))) == {("a", Decimal(6)): -1}
    assert count(node.epoch(table(schema, [("a", 3)], [1]))) == {("a", Decimal(3)): 1}


def test_distinct_has_no_functions(tmp_path: Path) -> None:
    schema = pa.schema({"k": pa.float64()})
    node = Node(Aggregate(schema, 1, ()), tmp_path)
    assert count(node.epoch(table(schema, [(-0.0,), (0.0,)], [1, 1]))) == {canon((0.0,)): 1}
    assert node.epoch(table(schema, [(-0.0,)], [-1])).num_rows == 0
    assert count(node.epoch(table(schema, [(0.0,)], [-1]))) == {canon((0.0,)): -1}


def test_rows_cross_the_exchange_as_one_accumulator_a_group() -> None:
    schema = pa.schema({"k": pa.int64(), "x": pa.int64()})
    operator = Aggregate(schema, 1, (COUNT, Function("sum", 1)))
    rows = table(schema, [(number % 3, number) for number in range(3000)], [1] * 3000)
    assert operator.prepare(0, rows, 64).num_rows == 3
    gone = pa.concat_tables(
        [rows, table(schema, [(number % 3, number) for number in range(3000)], [-1] * 3000)]
    )
    assert operator.prepare(0, gone, 64).num_rows == 0


@pytest.mark.parametrize(
    ("operator", "row", "weight", "message"),
    [
        (Aggregate(FLOAT, 1, ()), (1.0,), -1, "more rows were taken out of a group"),
        (Aggregate(FLOAT, 0, (Function("max", 0),), True), (1.0,), -1, "a row was deleted"),
        (Aggregate(FLOAT, 0, (COUNT,), True), (1.0,), -1, "more rows were taken out of a group"),
        (
            Aggregate(pa.schema({"d": pa.decimal128(38, 0)}), 0, (Function("sum", 0),), True),
            (Decimal(10) ** 37,),
            10,
            "a sum has more than 38 digits",
        ),
        (
            Aggregate(pa.schema({"d": pa.duration("us")}), 0, (Function("sum", 0),), True),
            (2**62,),
            2,
            "a sum of intervals is too large",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, operator: Aggregate, row: Any, weight: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Node(operator, tmp_path).epoch(table(operator.input, [row], [weight]))


def test_rows_that_were_never_there_cannot_leave_a_sum(tmp_path: Path) -> None:
    node = Node(SUM, tmp_path)
    node.epoch(table(FLOAT, [(1.0,), (math.nan,)], [3, 1]))
    with pytest.raises(DataError, match="more infinities or NaN were taken out"):
        node.epoch(table(FLOAT, [(math.inf,)], [-1]))
    with pytest.raises(DataError, match="more infinities or NaN were taken out"):
        node.epoch(table(FLOAT, [(math.nan,), (math.inf,)], [-2, 1]))
    with pytest.raises(DataError, match="are not those that had been put in"):
        node.epoch(table(FLOAT, [(2.0,), (math.nan,)], [-3, -1]))


def test_only_the_last_sum_of_an_epoch_must_fit(tmp_path: Path) -> None:
    schema = pa.schema({"d": pa.decimal128(38, 0)})
    most = Decimal(10**38 - 1)
    node = Node(Aggregate(schema, 0, (Function("sum", 0),), True), tmp_path)
    rows = table(schema, [(most,), (most,), (Decimal(1 - 10**38),)], [1, 1, 1])
    assert count(node.epoch(rows, pieces=3)) == {(most,): 1}

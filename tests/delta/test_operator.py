"""What all operators share."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from tests.delta.harness import Node, count

from evert.delta import (
    Aggregate,
    Function,
    Join,
    Operator,
    Order,
    Output,
    Semi,
    Swap,
    Top,
    Touched,
    Upsert,
)
from evert.delta.operator import PIECE_BYTES, PIECE_ROWS, pieces

SCHEMA = pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string())})
OPERATORS: list[Operator] = [
    Upsert(SCHEMA, (0,)),
    Join(SCHEMA, SCHEMA, (0,), (0,), (False,)),
    Semi(SCHEMA, pa.schema([SCHEMA.field(0)]), (0,), (False,), "existence"),
    Touched(SCHEMA, (0,)),
    Touched(SCHEMA, ()),
    Swap(SCHEMA, (1,)),
    Aggregate(SCHEMA, 2, (Function("count"), Function("sum", 0))),
    Aggregate(SCHEMA, 0, (Function("min", 1),), always=True),
    Aggregate(SCHEMA, 1, (Function("max", 1), Function("count"), Function("min", 0)), retracts=True),
    Top(SCHEMA, (), (Order(0),), "row_number", 1, 5, ranked=True, grows=False),
    Top(SCHEMA, (0,), (Order(1, True, False),), "rank", 1, 5, ranked=False, grows=True),
    Output(SCHEMA, None, declared=False, replace=False),
    Output(SCHEMA, (0,), declared=True, replace=True),
]


def named(operator: Operator) -> str:
    return type(operator).__name__


def nothing(operator: Operator) -> list[pa.Table]:
    return [schema.append(pa.field("__w", pa.int64())).empty_table() for schema in operator.inputs]


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_an_operator_travels_to_the_workers(operator: Operator) -> None:
    operator.prepare(0, nothing(operator)[0], 64)
    copy = pickle.loads(pickle.dumps(operator))
    assert copy == operator
    assert copy.output == operator.output


@pytest.mark.parametrize("operator", OPERATORS, ids=named)
def test_an_empty_delta_changes_nothing(operator: Operator, tmp_path: Path) -> None:
    node = Node(operator, tmp_path)
    node.epoch(*nothing(operator))
    assert node.epoch(*nothing(operator)).num_rows == 0
    assert node.epoch(*(None for _ in operator.inputs)).num_rows == 0
    for port, rows in enumerate(nothing(operator)):
        assert operator.prepare(port, rows, 64).schema.names[0] == "__h"


def test_the_words_that_a_producer_has_for_a_type_do_not_matter(tmp_path: Path) -> None:
    strict = pa.schema(
        [
            pa.field("c0", pa.int64(), nullable=False),
            pa.field("c1", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
            pa.field("__w", pa.int64(), nullable=False),
        ]
    )
    loose = pa.schema({"c0": pa.int64(), "c1": pa.list_(pa.string()), "__w": pa.int64()})
    content = {"c0": [1], "c1": [["a"]], "__w": [1]}
    node = Node(Join(SCHEMA, SCHEMA, (0, 1), (0, 1), (False, True)), tmp_path)
    emitted = []
    for left, right in ((strict, None), (None, loose), (loose, strict), (strict, loose)):
        sides = [None if side is None else pa.table(content, schema=side) for side in (left, right)]
        emitted.append(node.epoch(*sides))
    assert list(count(pa.concat_tables(emitted)).values()) == [9]


def test_pieces_are_neither_large_nor_tiny() -> None:
    small = pa.table({"c0": ["x"] * 10})
    long = pa.table({"c0": list(range(PIECE_ROWS + 5))})
    wide = pa.table({"c0": ["x" * (PIECE_BYTES // 3)] * 4})
    assert [piece.num_rows for piece in pieces([small] * 7)] == [70]
    assert [piece.num_rows for piece in pieces([long])] == [PIECE_ROWS, 5]
    assert [piece.num_rows for piece in pieces([wide, small])] == [2, 12]
    assert list(pieces([small.slice(0, 0)])) == []


def test_only_known_functions_are_taken() -> None:
    with pytest.raises(ValueError, match="there is no aggregate function"):
        Function("median", 1)
    with pytest.raises(ValueError, match="there is no aggregate function"):
        Function("sum")
    with pytest.raises(ValueError, match="has no grouping columns"):
        Aggregate(SCHEMA, 1, (), always=True)

"""An upsert keeps the last row of each key, however the changes are cut into epochs."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus
from tests.delta.histories import ANY, BITS, LAW, relations

from evert.delta import Upsert

Change = tuple[int, bool]


def changes(operator: Upsert, rows: list[tuple[Any, ...]], first: int, drops: list[bool]) -> pa.Table:
    """Changes at ascending positions, two at each; a deletion knows only the key."""
    arrays = []
    for at, field in enumerate(operator.columns):
        kept = [
            None if gone and at not in operator.key else row[at]
            for row, gone in zip(rows, drops, strict=True)
        ]
        arrays.append(pa.array(kept, field.type))
    times = [first + number for number in range(len(rows))]
    meta = [
        pa.array([time // 2 for time in times], pa.int64()),
        pa.array([time % 2 for time in times], pa.int64()),
        pa.array(drops, pa.bool_()),
        pa.array([1] * len(rows), pa.int64()),
    ]
    return pa.table([*arrays, *meta], names=[*operator.inputs[0].names, "__w"])


@LAW
@given(
    relations(st.lists(ANY, min_size=1, max_size=3), most=8),
    st.lists(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=8), min_size=1, max_size=6),
    st.integers(1, 2),
    BITS,
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_any_changes(
    relation: tuple[pa.Schema, list[Any]],
    epochs: list[list[Change]],
    keys: int,
    bits: int,
    pieces: int,
    random: Any,
) -> None:
    schema, pool = relation
    operator = Upsert(schema, tuple(range(min(keys, len(schema)))))
    held: dict[Any, Any] = {}
    time = 0
    everything = []
    with tempfile.TemporaryDirectory() as folder:
        node = Node(operator, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for epoch in epochs:
            rows = [pool[place % len(pool)] for place, _ in epoch]
            drops = [gone for _, gone in epoch]
            for row, gone in zip(rows, drops, strict=True):
                key = normal([row[at] for at in operator.key])
                held.pop(key, None)
                if not gone:
                    held[key] = canon(row)
            delta = changes(operator, rows, time, drops)
            time += len(rows)
            everything.append(delta)
            order = list(range(delta.num_rows))
            random.shuffle(order)
            emitted = node.epoch(delta.take(pa.array(order, pa.int64())), pieces=pieces)
            assert emitted.num_rows == sum(abs(weight) for weight in count(emitted).values())
            sum_ = plus(sum_, count(emitted))
            assert sum_ == Counter(held.values())
            if random.random() < 0.5:
                node.restart()
        some = Node(operator, Path(folder) / "some", bits=bits, wanted=frozenset({0}))
        first: Counter[Any] = Counter()
        for delta in everything:
            emitted = some.epoch(delta, pieces=pieces)
            assert all(
                emitted.column(f"c{at}").null_count == emitted.num_rows for at in range(1, len(schema))
            )
            first = plus(first, count(emitted.select(["c0", "__w"])))
        assert first == plus(Counter(), Counter(row[:1] for row in held.values()))
        places = sorted({*operator.key, *random.sample(range(len(schema)), random.randint(0, len(schema)))})
        narrow = Node(replace(operator, kept=tuple(places)), Path(folder) / "narrow", bits=bits)
        few: Counter[Any] = Counter()
        for delta in everything:
            few = plus(few, count(narrow.epoch(delta, pieces=pieces)))
            if random.random() < 0.5:
                narrow.restart()
        shown = [[value if at in places else None for at, value in enumerate(row)] for row in held.values()]
        assert few == plus(Counter(), Counter(map(tuple, shown)))
        big = Node(operator, Path(folder) / "big", bits=bits)
        assert count(big.epoch(pa.concat_tables(everything))) == sum_


def test_a_row_that_is_stored_already_changes_nothing(tmp_path: Path) -> None:
    operator = Upsert(pa.schema({"id": pa.int64(), "x": pa.float64()}), (0,))
    node = Node(operator, tmp_path)
    nan = float("nan")
    assert node.epoch(changes(operator, [(1, nan), (2, 0.0)], 0, [False, False])).num_rows == 2
    assert count(node.epoch(changes(operator, [(1, nan), (2, -0.0)], 2, [False, False]))) == {
        canon((2, 0.0)): -1,
        canon((2, -0.0)): 1,
    }
    assert node.epoch(changes(operator, [(3, None)], 4, [True])).num_rows == 0

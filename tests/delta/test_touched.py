"""The rows of touched keys are all rows of these keys, in one order, whatever the epochs were."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, Row, canon, normal, rows_of, table, without_zero
from tests.delta.histories import ANY, BITS, CHANGES, KEY, LAW, Bag, relations
from tests.delta.test_aggregate import tidy

from evert.delta import DataError, Touched

Shown = dict[Any, list[Any]]
"""By key, its marker and its rows."""


def ranked(row: Row) -> Any:
    """What sorts as the row does: NULL first, NaN last, item by item; -0.0 before 0.0 if nothing else differs."""
    return _ranked(row, exact=False), _ranked(row, exact=True)


def _ranked(value: Any, *, exact: bool) -> Any:
    if value is None:
        return (0,)
    if isinstance(value, float):
        missing = value != value
        return (1, missing, 0.0 if missing else value, exact and not missing and math.copysign(1, value))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return (1, tuple(_ranked(item, exact=exact) for item in value))
    return (1, value.encode() if isinstance(value, str) else value)


def shaped(touched: Touched, row: Row) -> Row:
    return tuple(tidy(value) if at in touched.keys else value for at, value in enumerate(row))


def contents(touched: Touched, bag: Bag) -> dict[Any, Counter[Any]]:
    """By key, how often each row is there, keys as they are shown."""
    found: dict[Any, Counter[Any]] = {}
    for row, weight in bag:
        row = shaped(touched, row)
        key = normal([row[at] for at in touched.keys])
        found.setdefault(key, Counter())[canon(row)] += weight
    return found


def slow(touched: Touched, before: dict[Any, Counter[Any]], bag: Bag, first: bool) -> Shown:
    """Compares all keys before and after."""
    after = contents(touched, bag)
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    if first and not touched.keys:
        changed.add(())
    rows: dict[Any, list[Row]] = {key: [] for key in changed}
    for row, weight in bag:
        key = normal([row[at] for at in touched.keys])
        if key in changed:
            rows[key] += [shaped(touched, row)] * weight
    return {key: [canon(row) for row in sorted(rows[key], key=ranked)] for key in changed}


def shown(touched: Touched, emitted: pa.Table) -> Shown:
    """What was emitted by key; checks that keys are neighbours, each with its marker first."""
    found: Shown = {}
    last = None
    for (*row, there), weight in rows_of(emitted):
        assert weight == 1
        key = normal([row[at] for at in touched.keys])
        assert canon([row[at] for at in touched.keys]) == canon([tidy(row[at]) for at in touched.keys])
        if there:
            assert key == last
            found[key].append(canon(row))
        else:
            assert key not in found
            assert all(value is None for at, value in enumerate(row) if at not in touched.keys)
            found[key] = []
        last = key
    return found


@LAW
@given(st.data(), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_any_changes(data: Any, changes: Any, bits: int, pieces: int, restarts: bool) -> None:
    key, more = data.draw(st.lists(KEY, max_size=2)), data.draw(st.lists(ANY, max_size=2))
    schema, pool = data.draw(relations(st.just(more + key), most=8))
    keys = tuple(data.draw(st.permutations(range(len(more), len(schema)))))
    touched, bag = Touched(schema, keys), Bag(schema, pool)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(touched, Path(folder), bits=bits)
        for number, change in enumerate(changes):
            before = contents(touched, bag)
            delta = bag.change(change, backwards=number % 2 == 1)
            emitted = node.epoch(delta, pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == touched.output.types
            assert shown(touched, emitted) == slow(touched, before, bag, number == 0)
            if restarts:
                node.restart()
        big = Node(touched, Path(folder) / "big", bits=bits)
        assert shown(touched, big.epoch(bag.whole())) == slow(touched, {}, bag, True)


def test_the_sign_of_zero_decides_last(tmp_path: Path) -> None:
    touched = Touched(pa.schema({"a": pa.float64(), "b": pa.int64()}), ())
    emitted = Node(touched, tmp_path).epoch(table(touched.input, [(0.0, None), (-0.0, 0)], [1, 1]))
    assert [(str(row[0]), row[1]) for row, _ in rows_of(emitted)][1:] == [("0.0", None), ("-0.0", 0)]


SCHEMA = pa.schema({"k": pa.string(), "v": pa.int64()})
BY_K = Touched(SCHEMA, (0,))


def change(*rows: tuple[Any, Any, int]) -> pa.Table:
    return table(SCHEMA, [row[:2] for row in rows], [row[2] for row in rows])


def lines(emitted: pa.Table) -> list[Row]:
    return [row for row, _ in rows_of(emitted)]


def test_a_change_gives_all_rows_of_its_key_and_no_others(tmp_path: Path) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(change(("x", 5, 1), ("x", 2, 1), ("z", 4, 1)))
    assert lines(node.epoch(change(("x", 2, 1)))) == [
        ("x", None, False),
        ("x", 2, True),
        ("x", 2, True),
        ("x", 5, True),
    ]


def test_an_emptied_key_is_a_marker_alone(tmp_path: Path) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(change(("z", 4, 2)))
    assert lines(node.epoch(change(("z", 4, -2)))) == [("z", None, False)]


def test_what_cancels_out_touches_nothing(tmp_path: Path) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(change(("x", 5, 1)))
    assert node.epoch(change(("x", 7, 1), ("y", 1, 1), ("x", 7, -1), ("y", 1, -1)), pieces=4).num_rows == 0


def test_two_zeros_are_one_key_and_two_values(tmp_path: Path) -> None:
    schema = pa.schema({"k": pa.float64(), "v": pa.float64()})
    node = Node(Touched(schema, (0,)), tmp_path)
    emitted = node.epoch(table(schema, [(-0.0, 0.0), (0.0, -0.0)], [1, 1]))
    expected = [(0.0, None, False), (0.0, -0.0, True), (0.0, 0.0, True)]
    assert [canon(row) for row in lines(emitted)] == [canon(row) for row in expected]


def test_without_keys_there_is_a_marker_from_the_first_epoch_on(tmp_path: Path) -> None:
    node = Node(Touched(SCHEMA, ()), tmp_path, shards=3)
    assert lines(node.epoch(None)) == [(None, None, False)]
    assert node.epoch(None).num_rows == 0
    assert lines(node.epoch(change((None, None, 1)))) == [(None, None, False), (None, None, True)]
    with_rows = Node(Touched(SCHEMA, ()), tmp_path / "with rows", shards=3)
    assert lines(with_rows.epoch(change(("a", 1, 1)))) == [(None, None, False), ("a", 1, True)]


def test_a_heavy_row_comes_in_pieces(tmp_path: Path) -> None:
    sizes: list[int] = []
    node = Node(BY_K, tmp_path)
    plain = Touched.apply

    def watched(self: Touched, deltas: Any, state: Any) -> Any:
        for piece in plain(self, deltas, state):
            sizes.append(piece.num_rows)
            yield piece

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Touched, "apply", watched)
        emitted = node.epoch(change(("x", 1, 200_000), ("y", 2, 1)))
    assert sum(sizes) == 200_003
    assert max(sizes) <= 65536
    assert without_zero(Counter(emitted.column("c1").to_pylist())) == {None: 2, 1: 200_000, 2: 1}


def test_many_keys_are_gathered_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evert.trace.gather.BATCH_BYTES", 1 << 10)
    node = Node(BY_K, tmp_path)
    rows = [(str(number % 97), number, 1) for number in range(1000)]
    node.epoch(change(*rows))
    found = shown(BY_K, node.epoch(change(*((str(number), -1, 1) for number in range(97)))))
    assert found == {
        (str(key),): [(str(key), -1), *((str(key), number) for number in range(key, 1000, 97))]
        for key in range(97)
    }


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("x", 2, -1)], "a row would be there -1 times"),
        ([("x", 3, 2**62), ("x", 4, 2**62)], "more rows under a key than can be counted"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, rows: Any, message: str) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(change(("x", 1, 1)))
    with pytest.raises(DataError, match=message):
        node.epoch(change(*rows))

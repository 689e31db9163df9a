"""What is swapped in, epoch by epoch, is what was given last for each key."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, Row, canon, count, normal, plus, table
from tests.delta.histories import ANY, BITS, KEY, LAW, relations

from evert.delta import DataError, Swap


class Slow:
    """The rows of each key in a dictionary."""

    def __init__(self, swap: Swap) -> None:
        self._keys = swap.keys
        self._rows: dict[Any, Counter[Any]] = {}

    def epoch(self, touched: list[Row], new: list[tuple[Row, int]]) -> None:
        for key in touched:
            self._rows[normal(key)] = Counter()
        for row, weight in new:
            self._rows[normal([row[at] for at in self._keys])][canon(row)] += weight

    def rows(self) -> Counter[Any]:
        return sum(self._rows.values(), Counter())


@LAW
@given(st.data(), BITS, st.integers(1, 3), st.booleans())
def test_any_swaps(data: Any, bits: int, pieces: int, restarts: bool) -> None:
    key, more = data.draw(st.lists(KEY, max_size=2)), data.draw(st.lists(ANY, max_size=2))
    schema, pool = data.draw(relations(st.just(more + key), most=8))
    keys = tuple(data.draw(st.permutations(range(len(more), len(schema)))))
    swap = Swap(schema, keys)
    twin = Slow(swap)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(swap, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for _ in range(data.draw(st.integers(1, 5))):
            some = data.draw(st.lists(st.sampled_from(pool), max_size=4))
            touched = [tuple(row[at] for at in keys) for row in some]
            weights = st.sampled_from([1, 1, 2, 5])
            new = data.draw(st.lists(st.tuples(st.sampled_from(some), weights), max_size=5)) if some else []
            twin.epoch(touched, new)
            ignored = data.draw(st.lists(st.integers(-1, 2), min_size=len(some), max_size=len(some)))
            one = table(swap.inputs[0], touched, ignored) if touched else None
            other = table(schema, [row for row, _ in new], [weight for _, weight in new]) if new else None
            emitted = node.epoch(one, other, pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == swap.output.types
            assert len(count(emitted)) == emitted.num_rows, "nothing is taken back and given again"
            sum_ = plus(sum_, count(emitted))
            assert sum_ == twin.rows()
            if restarts:
                node.restart()


SCHEMA = pa.schema({"k": pa.string(), "v": pa.float64()})
BY_K = Swap(SCHEMA, (0,))


def keys(*names: Any) -> pa.Table:
    return table(BY_K.inputs[0], [(name,) for name in names], [1] * len(names))


def rows(*given: Row) -> pa.Table:
    return table(SCHEMA, given, [1] * len(given))


def test_only_what_differs_is_emitted(tmp_path: Path) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(keys("x", "z"), rows(("x", 2.0), ("x", 5.0), ("z", 4.0)))
    emitted = node.epoch(keys("x"), rows(("x", 5.0), ("x", 6.0)))
    assert count(emitted) == {canon(("x", 2.0)): -1, canon(("x", 6.0)): 1}
    assert node.epoch(keys("x", "x"), rows(("x", 6.0), ("x", 5.0)), pieces=2).num_rows == 0


def test_a_touched_key_without_new_rows_is_emptied(tmp_path: Path) -> None:
    node = Node(BY_K, tmp_path)
    node.epoch(keys(None, "z"), rows((None, 2.0), (None, 2.0), ("z", 4.0)))
    assert count(node.epoch(keys(None), None)) == {canon((None, 2.0)): -2}
    assert node.epoch(keys(None), None).num_rows == 0


def test_one_zero_replaces_the_other(tmp_path: Path) -> None:
    schema = pa.schema({"k": pa.float64(), "v": pa.float64()})
    swap = Swap(schema, (0,))
    node = Node(swap, tmp_path)
    node.epoch(table(swap.inputs[0], [(0.0,)], [1]), table(schema, [(-0.0, 0.0)], [1]))
    emitted = node.epoch(table(swap.inputs[0], [(-0.0,)], [1]), table(schema, [(0.0, -0.0)], [1]))
    assert count(emitted) == {canon((-0.0, 0.0)): -1, canon((0.0, -0.0)): 1}


def test_without_keys_all_rows_are_swapped(tmp_path: Path) -> None:
    swap = Swap(SCHEMA, ())
    node = Node(swap, tmp_path)
    marker = table(pa.schema([]), [()], [1])
    assert count(node.epoch(marker, rows(("a", 1.0)))) == {canon(("a", 1.0)): 1}
    assert count(node.epoch(marker, rows(("b", 1.0)))) == {canon(("a", 1.0)): -1, canon(("b", 1.0)): 1}
    assert count(node.epoch(marker, None)) == {canon(("b", 1.0)): -1}


def test_keys_that_are_not_touched_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evert.trace.gather.BATCH_BYTES", 1 << 10)
    node = Node(BY_K, tmp_path)
    names = [str(number) for number in range(500)]
    node.epoch(keys(*names), rows(*((name, 1.0) for name in names)))
    changed = names[::7]
    emitted = node.epoch(keys(*changed), rows(*((name, 2.0) for name in changed)))
    expected = {canon((name, value)): weight for name in changed for value, weight in ((1.0, -1), (2.0, 1))}
    assert count(emitted) == expected


@pytest.mark.parametrize(
    ("touched", "new", "message"),
    [
        (keys("x"), rows(("x", 1.0), ("y", 1.0)), "a key that was not touched"),
        (None, rows(("x", 1.0)), "a key that was not touched"),
        (keys("x"), table(SCHEMA, [("x", 1.0)], [-1]), "a new row would be there -1 times"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, touched: Any, new: pa.Table, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Node(BY_K, tmp_path).epoch(touched, new)


def test_a_key_without_rows_may_have_one_all_the_same(tmp_path):
    schema = pa.schema({"n": pa.int64()})
    swap = Swap(schema, (), pa.table({"c0": [0]}))
    node = Node(swap, tmp_path)
    mark = pa.table({"__w": [1]})
    assert count(node.epoch(mark, None)) == {canon((0,)): 1}
    assert count(node.epoch(mark, table(schema, [(7,)], [1]))) == {canon((0,)): -1, canon((7,)): 1}
    assert count(node.epoch(mark, None)) == {canon((7,)): -1, canon((0,)): 1}
    assert not count(node.epoch(None, None))

"""What is near a change is what is within reach of it, and enough to compute frames from."""

from __future__ import annotations

import datetime
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, Row, canon, count, normal, plus, rows_of, table
from tests.delta.histories import ANY, BITS, CHANGES, KEY, LAW, Bag, relations
from tests.delta.test_touched import ranked, shaped

from evert.delta import DataError, Swap
from evert.delta.near import Near
from evert.schema.digest import integers

DAY = datetime.datetime(2026, 3, 29)
VALUES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int64(), [None, 0, 1, 2, 5, 6, 9, -(2**63), 2**63 - 1, 2**63 - 3]),
    (pa.int8(), [None, -128, -127, 3, 4, 126, 127]),
    (pa.date32(), [None, *(datetime.date(2024, 2, 27) + datetime.timedelta(days=n) for n in range(6))]),
    (pa.timestamp("us", "UTC"), [None, *(DAY.replace(tzinfo=datetime.UTC, microsecond=n) for n in range(8))]),
    (pa.timestamp("us"), [DAY.replace(year=1, microsecond=n) for n in range(8)]),
]
REACH = st.sampled_from([0, 0, 1, 2, 4, 2**62, 2**63 - 1])

Given = list[tuple[Row, int]]
Around = tuple[dict[Any, list[tuple[Any, bool]]], set[Any]]
"""By key, its rows that come and whether they are asked for; and the markers, as keys and values."""


def value_of(near: Near, row: Row) -> int | None:
    """The value of a row, as the column stores it."""
    kind = near.input.field(near.order).type
    return None if row[near.order] is None else int(integers(pa.array([row[near.order]], kind))[0])


def key_of(near: Near, row: Row) -> Any:
    return normal([row[at] for at in near.keys])


def by_value(near: Near, held: Given) -> dict[Any, Counter[Any]]:
    """By key and value, how often each row is there."""
    found: dict[Any, Counter[Any]] = {}
    for row, weight in held:
        row = shaped(near, row)
        found.setdefault((key_of(near, row), value_of(near, row)), Counter())[canon(row)] += weight
    return found


def reaches(near: Near, row: int | None, other: int | None) -> bool:
    """Whether the one value is in the frame of the other."""
    if row is None or other is None:
        return row is None and other is None
    return row - near.before <= other <= row + near.after


def slow(near: Near, old: Given, new: Given) -> Around:
    """Compares all values before and after, and walks through those that differ."""
    before, after = by_value(near, old), by_value(near, new)
    changed = {place for place in before | after if before.get(place) != after.get(place)}
    gone = {place for place in changed if before.get(place, Counter()) - after.get(place, Counter())}
    spans: dict[Any, list[tuple[int | None, int | None]]] = {}
    for key, value in sorted(changed, key=lambda place: (place[1] is not None, place[1] or 0)):
        mine = spans.setdefault(key, [])
        if value is None:
            mine.append((None, None))
            continue
        low, high = value - near.after, value + near.before
        if mine and mine[-1][1] is not None and low - near.before <= mine[-1][1] + near.after:
            low = mine.pop()[0]
        mine.append((low, high))
    rows: dict[Any, list[tuple[Any, bool]]] = {}
    for row, weight in sorted(new, key=lambda one: placed(near, shaped(near, one[0]))):
        row = shaped(near, row)
        key, value = key_of(near, row), value_of(near, row)
        for low, high in spans.get(key, []):
            if value is None or low is None:
                if value is None and low is None:
                    rows.setdefault(key, []).extend([(canon(row), True)] * weight)
            elif low - near.before <= value <= high + near.after:
                rows.setdefault(key, []).extend([(canon(row), low <= value <= high)] * weight)
    return rows, gone


def placed(near: Near, row: Row) -> Any:
    """What sorts as rows of a key are given: by value, then by all columns."""
    return ranked((row[near.order], *(value for at, value in enumerate(row) if at != near.order)))


def shown(near: Near, emitted: pa.Table) -> Around:
    rows: dict[Any, list[tuple[Any, bool]]] = {}
    gone = set()
    for (*row, there, asked), weight in rows_of(emitted):
        assert weight == 1
        if there:
            rows.setdefault(key_of(near, row), []).append((canon(row), asked))
        else:
            assert asked
            assert all(value is None for at, value in enumerate(row) if at not in (*near.keys, near.order))
            gone.add((key_of(near, row), value_of(near, row)))
    return rows, gone


@st.composite
def nears(draw: st.DrawFn) -> tuple[Near, list[Row]]:
    key, more = draw(st.lists(KEY, max_size=2)), draw(st.lists(ANY, max_size=2))
    values = draw(st.sampled_from(VALUES))
    schema, pool = draw(relations(st.just([*more, values, *key]), most=8))
    keys = tuple(draw(st.permutations(range(len(more) + 1, len(schema)))))
    return Near(schema, keys, len(more), draw(REACH), draw(REACH)), pool


@LAW
@given(nears(), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_any_changes(drawn: Any, changes: Any, bits: int, pieces: int, restarts: bool) -> None:
    near, pool = drawn
    bag = Bag(near.input, pool)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(near, Path(folder), bits=bits)
        for number, change in enumerate(changes):
            before = list(bag)
            delta = bag.change(change, backwards=number % 2 == 1)
            emitted = node.epoch(delta, pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == near.output.types
            assert shown(near, emitted) == slow(near, before, list(bag))
            if restarts:
                node.restart()
        big = Node(near, Path(folder) / "big", bits=bits)
        assert shown(near, big.epoch(bag.whole())) == slow(near, [], list(bag))


def counts(near: Near, held: Given) -> list[Row]:
    """Each row with how many are in its frame, row by row."""
    found = []
    for row, weight in held:
        frame = (
            times
            for other, times in held
            if key_of(near, other) == key_of(near, row)
            and reaches(near, value_of(near, row), value_of(near, other))
        )
        found += [(*shaped(near, row), sum(frame))] * weight
    return found


@LAW
@given(nears(), CHANGES, BITS)
def test_frames_of_what_is_near_are_those_of_all_rows(drawn: Any, changes: Any, bits: int) -> None:
    near, pool = drawn
    bag = Bag(near.input, pool)
    counted = pa.schema([*near.input, pa.field("count", pa.int64())])
    swap = Swap(counted, (*near.keys, near.order))
    sums: Counter[Any] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        rows, results = (
            Node(near, Path(folder) / "rows", bits=bits),
            Node(swap, Path(folder) / "swap", bits=bits),
        )
        for change in changes:
            emitted = [row for row, _ in rows_of(rows.epoch(bag.change(change)))]
            there = [(tuple(row), 1) for *row, there, _ in emitted if there]
            asked = [asked for *_, there, asked in emitted if there]
            new = [row for row, is_asked in zip(counts(near, there), asked, strict=True) if is_asked]
            touched = [tuple(row[at] for at in swap.keys) for *row, _, is_asked in emitted if is_asked]
            kinds = pa.schema([counted.field(at) for at in swap.keys])
            delta = results.epoch(
                table(kinds, touched, [1] * len(touched)), table(counted, new, [1] * len(new))
            )
            sums = plus(sums, count(delta))
            assert sums == Counter(canon(row) for row in counts(near, list(bag)))


SCHEMA = pa.schema({"k": pa.string(), "at": pa.int64(), "v": pa.int64()})
BEHIND = Near(SCHEMA, (0,), 1, 3, 0)


def change(*rows: tuple[Any, Any, Any, int]) -> pa.Table:
    return table(SCHEMA, [row[:3] for row in rows], [row[3] for row in rows])


def lines(emitted: pa.Table) -> list[Row]:
    return sorted((row for row, _ in rows_of(emitted)), key=lambda row: (row[0], row[1], row[2] or 0, row[3]))


def test_a_change_gives_the_rows_it_reaches_and_their_frames(tmp_path: Path) -> None:
    node = Node(BEHIND, tmp_path)
    node.epoch(change(*(("x", at, 0, 1) for at in (1, 4, 8, 9, 20)), ("y", 6, 0, 1)))
    assert lines(node.epoch(change(("x", 6, 0, 1), ("x", 20, 0, -1)))) == [
        ("x", 4, 0, True, False),
        ("x", 6, 0, True, True),
        ("x", 8, 0, True, True),
        ("x", 9, 0, True, True),
        ("x", 20, None, False, True),
    ]


def test_a_row_that_is_replaced_where_it_was_comes_with_a_marker(tmp_path: Path) -> None:
    node = Node(BEHIND, tmp_path)
    node.epoch(change(("x", 1, 5, 1)))
    assert lines(node.epoch(change(("x", 1, 5, -1), ("x", 1, 6, 1)))) == [
        ("x", 1, None, False, True),
        ("x", 1, 6, True, True),
    ]


def test_what_cancels_out_is_near_nothing(tmp_path: Path) -> None:
    node = Node(BEHIND, tmp_path)
    node.epoch(change(("x", 5, 0, 1)))
    assert node.epoch(change(("x", 6, 0, 1), ("x", 6, 0, -1)), pieces=2).num_rows == 0


def test_changes_far_apart_do_not_read_what_is_between_them(tmp_path: Path) -> None:
    node = Node(BEHIND, tmp_path, bits=3)
    node.epoch(change(*((key, at, 0, 1) for at in range(0, 5000, 2) for key in "xyz")))
    emitted = node.epoch(change(("x", 101, 0, 1), ("x", 4001, 0, 1), ("z", 2001, 0, 1)))
    assert [row[:2] for row in lines(emitted)] == [
        *(("x", at) for at in (98, 100, 101, 102, 104, 3998, 4000, 4001, 4002, 4004)),
        *(("z", at) for at in (1998, 2000, 2001, 2002, 2004)),
    ]


def test_a_heavy_row_comes_in_pieces(tmp_path: Path) -> None:
    emitted = Node(BEHIND, tmp_path).epoch(change(("x", 1, 7, 100_000), ("x", 2, 8, 1)))
    assert Counter(emitted.column("c2").to_pylist()) == {7: 100_000, 8: 1}


def test_a_row_that_was_not_there_cannot_be_taken_back(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there -1 times"):
        Node(BEHIND, tmp_path).epoch(change(("x", 1, 5, -1)))


def test_a_frame_that_reaches_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot reach from -1 before"):
        Near(SCHEMA, (0,), 1, -1, 0)

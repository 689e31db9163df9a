"""An incremental join equals the join of the sums of its inputs."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus, table, without_zero
from tests.delta.histories import ANY, BITS, CHANGES, LAW, Bag, relations

from evert.delta import DataError, Join, Versions
from evert.delta.join import During
from evert.trace import between, last


def slow(join: Join, left: Bag, right: Bag) -> Counter[Any]:
    """Every row with every row."""
    found: Counter[Any] = Counter()
    for one, weight in left:
        for other, times in right:
            pairs = zip(join.left_key, join.right_key, join.null_safe, strict=True)
            if all(
                normal(one[a]) == normal(other[b]) and (safe or one[a] is not None) for a, b, safe in pairs
            ):
                found[canon(one + other)] += weight * times
    return without_zero(found)


@st.composite
def joins(draw: st.DrawFn) -> tuple[Join, Bag, Bag]:
    keys = draw(st.lists(ANY, max_size=2))
    sides = []
    for _ in range(2):
        more = draw(st.lists(ANY, max_size=1 if keys else 2))
        schema, pool = draw(relations(st.just(keys + more)))
        sides.append((schema, pool))
    safe = tuple(draw(st.booleans()) for _ in keys)
    places = tuple(range(len(keys)))
    join = Join(sides[0][0], sides[1][0], places, places, safe)
    return join, Bag(*sides[0]), Bag(*sides[1])


@LAW
@given(joins(), CHANGES, CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_any_changes_of_both_sides(
    sides: tuple[Join, Bag, Bag], lefts: Any, rights: Any, bits: int, pieces: int, restarts: bool
) -> None:
    join, left, right = sides
    with tempfile.TemporaryDirectory() as folder:
        node = Node(join, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for at in range(max(len(lefts), len(rights))):
            one = left.change(lefts[at] if at < len(lefts) else [], backwards=at % 2 == 1)
            other = right.change(rights[at] if at < len(rights) else [])
            before, emitted = sum_, count(node.epoch(one, other, pieces=pieces))
            sum_ = plus(sum_, emitted)
            assert all(before[row] or sum_[row] for row in emitted)  # nothing that never was
            assert sum_ == slow(join, left, right)
            if restarts:
                node.restart()
        big = Node(join, Path(folder) / "big", bits=bits)
        assert count(big.epoch(left.whole(), right.whole())) == sum_


@LAW
@given(relations(st.lists(ANY, min_size=1, max_size=3)), CHANGES, BITS)
def test_a_self_join_is_fed_on_both_ports(
    relation: tuple[pa.Schema, list[Any]], changes: Any, bits: int
) -> None:
    schema, pool = relation
    join = Join(schema, schema, (0,), (0,), (False,))
    bag = Bag(schema, pool)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(join, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for change in changes:
            delta = bag.change(change)
            sum_ = plus(sum_, count(node.epoch(delta, delta, pieces=2)))
            assert sum_ == slow(join, bag, bag)


def test_a_large_cross_join_comes_in_pieces(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.int64()})
    join = Join(schema, schema, (), (), ())
    many = table(schema, [(number,) for number in range(700)], [1] * 700)
    node = Node(join, tmp_path)
    node.epoch(many, None)
    sizes: list[int] = []
    plain = Join.apply

    def watched(self: Join, deltas: Any, state: Any) -> Any:
        for piece in plain(self, deltas, state):
            sizes.append(piece.num_rows)
            yield piece

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Join, "apply", watched)
        emitted = node.epoch(None, many)
    assert emitted.num_rows == 700 * 700
    assert max(sizes) <= 65536
    assert min(sizes[:-1]) > 10_000
    pairs = emitted.column("c0").to_numpy() * 700 + emitted.column("c1").to_numpy()
    assert (np.sort(pairs) == np.arange(490_000)).all()


def test_wide_rows_come_in_smaller_pieces(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.string()})
    join = Join(schema, schema, (), (), ())
    wide = table(schema, [("x" * 100_000,)], [1])
    many = table(schema, [(str(number),) for number in range(1000)], [1] * 1000)
    node = Node(join, tmp_path)
    node.epoch(wide, None)
    found = node.epoch(None, many)
    assert found.num_rows == 1000
    assert max(chunk.nbytes for chunk in found.column("c0").chunks) <= 17 << 20


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    schema = pa.schema({"a": pa.int64()})
    node = Node(Join(schema, schema, (0,), (0,), (False,)), tmp_path)
    with pytest.raises(DataError, match="more often than can be counted"):
        node.epoch(table(schema, [(1,)], [2**40]), table(schema, [(1,)], [2**30]))


TIME = pa.timestamp("us", "UTC")
EVENTS = pa.schema({"k": pa.float64(), "at": TIME, "n": pa.int64()})
CHANGED = pa.schema({"k": pa.float64(), "v": pa.string()})
VERSIONS = Versions(CHANGED, (0,), pa.field("since", TIME))
AS_OF = Join(EVENTS, VERSIONS.shown, (0,), (0,), (True,), During(1, 3, 4))
START = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = st.integers(-3, 6)
KEYS = st.sampled_from([0.0, -0.0, 1.0, float("nan"), None])
EVENT = st.tuples(KEYS, st.none() | SECONDS, st.integers(0, 3), st.sampled_from([1, 1, 2, -1]))
VERSION = st.tuples(KEYS, st.sampled_from("abc"), SECONDS, st.booleans())
HISTORY = st.lists(
    st.tuples(st.lists(EVENT, max_size=6), st.lists(VERSION, max_size=5)), min_size=1, max_size=5
)


def moment(second: int | None) -> datetime | None:
    return None if second is None else START + timedelta(seconds=second)


def versions_of(rows: list[Any], first: int) -> pa.Table:
    """Changes of a table as a leaf gives them."""
    count = len(rows)
    columns = [[k for k, *_ in rows], [v for _, v, *_ in rows], [START] * count]
    columns += [[moment(at) for _, _, at, _ in rows], [1] * count, list(range(first, first + count))]
    columns += [[gone for *_, gone in rows]]
    schema = VERSIONS.inputs[0].append(pa.field("__w", pa.int64()))
    arrays = [pa.array(one, kind) for one, kind in zip([*columns, [1] * count], schema.types, strict=True)]
    return pa.table(arrays, schema=schema)


@LAW
@given(HISTORY, BITS, st.integers(1, 3), st.booleans())
def test_what_is_valid_at_the_time_of_a_row_is_found_without_the_others(
    epochs: Any, bits: int, pieces: int, restarts: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table_, node = Node(VERSIONS, Path(folder) / "t"), Node(AS_OF, Path(folder), bits=bits)
        events: Counter[Any] = Counter()
        versions: Counter[Any] = Counter()
        sum_: Counter[Any] = Counter()
        written = 0
        for rows, changed in epochs:
            there = Counter(events)
            given_rows = []
            for key, at, n, weight in rows:
                row = (key, moment(at), n)
                if there[canon(row)] + weight >= 0:
                    there[canon(row)] += weight
                    given_rows.append((row, weight))
            events = without_zero(there)
            right = table_.epoch(versions_of(changed, written))
            written += len(changed)
            versions = plus(versions, count(right))
            left = table(EVENTS, [row for row, _ in given_rows], [weight for _, weight in given_rows])
            before, emitted = sum_, count(node.epoch(left, right, pieces=pieces))
            sum_ = plus(sum_, emitted)
            assert all(before[row] or sum_[row] for row in emitted)
            assert sum_ == valid_pairs(events, versions)
            if restarts:
                node.restart()


def valid_pairs(events: Counter[Any], versions: Counter[Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for event, weight in events.items():
        for version, times in versions.items():
            begin, end = version[3:]
            meets = zero(event[0]) == zero(version[0]) and event[1] is not None
            if meets and begin <= event[1] and (end is None or event[1] < end):
                found[event + version] += weight * times
    return found


def zero(key: Any) -> Any:
    """The key as Spark compares it: one zero."""
    return ("float", "0.0") if key == ("float", "-0.0") else key


def test_of_many_versions_only_the_one_that_is_valid_is_looked_at(tmp_path: Path) -> None:
    table_, node = Node(VERSIONS, tmp_path / "t"), Node(AS_OF, tmp_path, look=False)
    node.epoch(None, table_.epoch(versions_of([(1.0, "a", second, False) for second in range(1000)], 0)))
    seen = []
    compared = last.same_rows

    def noted(left: Any, at: np.ndarray, right: Any, places: np.ndarray, **more: Any) -> np.ndarray:
        seen.append(len(at))
        return compared(left, at, right, places, **more)

    with pytest.MonkeyPatch.context() as patch:
        for module in (between, last):
            patch.setattr(module, "same_rows", noted)
        found = node.epoch(table(EVENTS, [(1.0, moment(500), 7), (2.0, moment(3), 7)], [1, 1]), None)
        assert [row["c5"] for row in found.to_pylist()] == [500]
        late = table_.epoch(versions_of([(1.0, "b", 499, False)], 1000))
        assert node.epoch(None, late).num_rows == 0
    assert sum(seen) < 20

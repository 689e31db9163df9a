"""The first rows of a group, kept from the change alone, are those of all its rows."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, Row, canon, count, normal, plus, rows_of, table
from tests.delta.histories import ANY, BITS, CHANGES, LAW, Bag, relations
from tests.trace.columns import compared, spark_order

from evert.delta import DataError, Order, Top
from evert.delta import top as module
from evert.delta.operator import numbered
from evert.trace import ends

KINDS = ("row_number", "rank", "dense_rank")


def slow(operator: Top, bag: Bag) -> Counter[Any]:
    groups: dict[Any, list[Row]] = {}
    for row, weight in bag:
        groups.setdefault(normal([row[at] for at in operator.keys]), []).extend([row] * weight)
    found: Counter[Any] = Counter()
    for rows in groups.values():
        rows.sort(key=cmp_to_key(lambda left, right: peers(operator, left, right) or compared(left, right)))
        rank = dense = 0
        for number, row in enumerate(rows):
            if not number or peers(operator, rows[number - 1], row):
                rank, dense = number + 1, dense + 1
            shown = {"row_number": number + 1, "rank": rank, "dense_rank": dense}[operator.kind]
            if operator.least <= shown and (operator.most is None or shown <= operator.most):
                found[canon((*row, shown) if operator.ranked else row)] += 1
    return found


def peers(operator: Top, left: Row, right: Row) -> int:
    for at, descending, nulls_first in operator.order:
        if found := spark_order(left[at], right[at], descending, nulls_first):
            return found
    return 0


def follow(operator: Top, bag: Bag, changes: Any, bits: int, pieces: int, restarts: bool) -> None:
    """Runs the changes as epochs and as one, and compares with the slow twin after each."""
    with tempfile.TemporaryDirectory() as folder:
        node = Node(operator, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for number, change in enumerate(changes):
            emitted = node.epoch(bag.change(change, backwards=number % 2 == 1), pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == operator.output.types
            assert len(count(emitted)) == emitted.num_rows, "nothing is taken back and given again"
            sum_ = plus(sum_, count(emitted))
            assert sum_ == slow(operator, bag)
            if restarts:
                node.restart()
        big = Node(operator, Path(folder) / "big", bits=bits)
        assert count(big.epoch(bag.whole())) == sum_


@st.composite
def operators(draw: st.DrawFn, *, grows: bool) -> tuple[Top, Bag]:
    schema, pool = draw(relations(st.lists(ANY, min_size=1, max_size=3), most=8))
    places = st.sampled_from(range(len(schema)))
    keys = tuple(draw(st.lists(places, unique=True, max_size=1)))
    order = draw(st.lists(st.builds(Order, places, st.booleans(), st.booleans()), max_size=2))
    least = draw(st.integers(1, 3))
    most = draw(st.none() | st.integers(least - 1, least + 3))
    kind, ranked = draw(st.sampled_from(KINDS)), draw(st.booleans())
    return Top(schema, keys, tuple(order), kind, least, most, ranked, grows), Bag(schema, pool)


@contextmanager
def reading(most: int) -> Iterator[None]:
    """At most so many rows are read to begin with, and few keys are looked at together."""

    def first(*given: Any, first: int, **options: Any) -> ends.Ends:
        return ends.ends(*given, first=min(first, most), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ends", first)
        patch.setattr(module, "ROWS", 5)
        yield


FIRST = st.sampled_from([1, 2, 1000])


@LAW
@given(operators(grows=False), CHANGES, BITS, st.integers(1, 3), st.booleans(), FIRST)
def test_the_first_rows_under_any_changes(
    drawn: Any, changes: Any, bits: int, pieces: int, restarts: bool, first: int
) -> None:
    with reading(first):
        follow(*drawn, changes, bits, pieces, restarts)


@LAW
@given(operators(grows=True), CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_the_first_rows_of_growing_input(
    drawn: Any, changes: Any, bits: int, pieces: int, restarts: bool
) -> None:
    growing = [[(place, abs(weight)) for place, weight in change] for change in changes]
    follow(*drawn, growing, bits, pieces, restarts)


@LAW
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([1, 1, -1])), max_size=30), max_size=6),
    st.sampled_from(KINDS),
    st.integers(1, 4),
    st.booleans(),
    FIRST,
)
def test_the_first_of_many_numbers(changes: Any, kind: str, most: int, ranked: bool, first: int) -> None:
    schema = pa.schema({"k": pa.int64(), "x": pa.int64(), "y": pa.string()})
    pool = [(number % 2, number // 4, str(number % 3)) for number in range(41)]
    operator = Top(schema, (0,), (Order(1, True, False),), kind, 1, most, ranked, grows=False)
    with reading(first):
        follow(operator, Bag(schema, pool), changes, 64, 2, restarts=False)


SCORES = pa.schema({"player": pa.string(), "points": pa.int64()})


def best(kind: str = "row_number", most: int | None = 2, **options: Any) -> Top:
    given_options = {"keys": (), "least": 1, "ranked": True, "grows": False} | options
    return Top(
        SCORES, order=(Order(1, descending=True, nulls_first=False),), kind=kind, most=most, **given_options
    )


def scores(*rows: tuple[str, int | None, int]) -> pa.Table:
    return table(SCORES, [row[:2] for row in rows], [row[2] for row in rows])


def test_what_comes_and_goes_moves_the_others(tmp_path: Path) -> None:
    node = Node(best(), tmp_path)
    first = node.epoch(scores(("ann", 5, 1), ("bob", 9, 1), ("eve", 7, 1), ("joe", None, 1)))
    assert count(first) == {("bob", 9, 1): 1, ("eve", 7, 2): 1}
    assert node.epoch(scores(("kim", 6, 1))).num_rows == 0
    assert count(node.epoch(scores(("bob", 9, -1)))) == {
        ("bob", 9, 1): -1,
        ("eve", 7, 2): -1,
        ("eve", 7, 1): 1,
        ("kim", 6, 2): 1,
    }
    node.restart()
    assert count(node.epoch(scores(("ann", 5, -1), ("kim", 6, -1)))) == {
        ("kim", 6, 2): -1,
        ("joe", None, 2): 1,
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("row_number", {("a", 9, 1): 1, ("a", 9, 2): 1, ("b", 9, 3): 1}),
        ("rank", {("a", 9, 1): 2, ("b", 9, 1): 1}),
        ("dense_rank", {("a", 9, 1): 2, ("b", 9, 1): 1, ("c", 4, 2): 1, ("d", 1, 3): 1}),
    ],
)
def test_equal_rows_and_equal_ranks(tmp_path: Path, kind: str, expected: Any) -> None:
    rows = scores(("d", 1, 1), ("c", 4, 1), ("b", 9, 1), ("a", 9, 2))
    assert count(Node(best(kind, most=3), tmp_path).epoch(rows)) == expected


def test_rows_that_are_not_ranked_have_the_weight_within_the_limits(tmp_path: Path) -> None:
    node = Node(best(least=2, most=4, ranked=False), tmp_path)
    assert count(node.epoch(scores(("a", 9, 2), ("b", 5, 7)))) == {("a", 9): 1, ("b", 5): 2}
    assert count(node.epoch(scores(("b", 6, 1)))) == {("b", 5): -1, ("b", 6): 1}


def test_everything_from_a_rank_on(tmp_path: Path) -> None:
    node = Node(best(least=3, most=None, ranked=False), tmp_path)
    heavy = 2**61
    assert count(node.epoch(scores(("a", 9, 2), ("b", 5, heavy), ("c", 4, heavy)))) == {
        ("b", 5): heavy,
        ("c", 4): heavy,
    }
    assert count(node.epoch(scores(("a", 9, -1)))) == {("b", 5): -1}


def stored(node: Node) -> int:
    return sum(run.rows for shard in node._runs.values() for runs in shard.values() for run in runs)


def test_growing_input_keeps_only_what_can_be_shown(tmp_path: Path) -> None:
    operator = best(most=3, grows=True)
    piece = scores(*((f"p{number}", number, 1) for number in range(5000)))
    assert operator.prepare(0, piece, 64).num_rows == 3
    node = Node(operator, tmp_path)
    for start in range(0, 5000, 100):
        node.epoch(piece.slice(start, 100))
    assert stored(node) <= 6 * 4
    runs = [list(runs) for shard in node._runs.values() for runs in shard.values()]
    assert node.epoch(scores(("late", 1, 1))).num_rows == 0
    assert [list(runs) for shard in node._runs.values() for runs in shard.values()] == runs


class Counted:
    """Counts the rows that are taken out of runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        self._take_rows = ends.take_rows
        monkeypatch.setattr(ends, "take_rows", self._counting)

    def _counting(self, rows: pa.Table, at: Sequence[int]) -> pa.Table:
        self.rows += len(at)
        return self._take_rows(rows, at)


def test_an_epoch_reads_the_first_rows_and_not_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema({"x": pa.int64()})
    node = Node(Top(schema, (), (Order(0),), "row_number", 1, 10, False, False), tmp_path)
    node.epoch(table(schema, [(number,) for number in range(200_000)], [1] * 200_000))
    counted = Counted(monkeypatch)
    for number in range(50):
        emitted = rows_of(node.epoch(table(schema, [(number,)], [-1])))
        assert sorted(emitted) == [((number,), -1), ((number + 10,), 1)]
    assert counted.rows < 50 * 600
    counted.rows = 0
    assert node.epoch(table(schema, [(150_000,)], [-1])).num_rows == 0
    assert counted.rows < 1000


@pytest.mark.parametrize(
    ("operator", "rows", "message"),
    [
        (best(grows=True), scores(("a", 1, -1)), "a row was deleted under a limit"),
        (best(), scores(("a", 1, -1), ("b", 0, 1)), "more rows were taken out of a group"),
        (best(most=None), scores(("a", 1, 2**31)), "a rank is larger than 2147483647"),
        (best("rank", most=None), scores(("a", 2, 2**31), ("b", 1, 1)), "a rank is larger than 2147483647"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, operator: Top, rows: pa.Table, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Node(operator, tmp_path).epoch(rows)


def test_only_ranks_that_there_are_can_be_asked_for() -> None:
    with pytest.raises(ValueError, match="there is no rank ntile"):
        best("ntile")
    with pytest.raises(ValueError, match="there are no ranks from 0 to 2"):
        best(least=0)


@st.composite
def improving(draw: st.DrawFn) -> list[pa.Table]:
    """Epochs in which players of teams come, and get more points; some of what they show beside changes too."""
    points: dict[tuple[int, str], tuple[int | None, int]] = {}
    epochs = []
    for _ in range(draw(st.integers(1, 6))):
        rows, weights = [], []
        for player in draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcdef")), unique=True)):
            if player in points:
                rows.append((*player, *points[player]))
                weights.append(-1)
            before = points.get(player, (None, 0))[0]
            gained = draw(st.sampled_from([0, 1, 1, 2, 5]))
            now = before if gained == 0 else (before or 0) + gained
            points[player] = now, draw(st.integers(0, 2))
            rows.append((*player, *points[player]))
            weights.append(1)
        epochs.append(table(TEAMS, rows, weights))
    return epochs


TEAMS = pa.schema({"team": pa.int64(), "player": pa.string(), "points": pa.int64(), "beside": pa.int64()})


@LAW
@given(improving(), st.sampled_from(["rank", "row_number"]), st.integers(1, 3), BITS, st.integers(1, 3))
def test_what_improves_is_forgotten_when_it_is_not_among_the_best(
    epochs: list[pa.Table], kind: str, most: int, bits: int, pieces: int
) -> None:
    """Compared with a rank that keeps all; row numbers choose by columns that stay as they are."""
    schema = TEAMS if kind == "rank" else pa.schema(list(TEAMS)[:3])
    options = (schema, (0,), (Order(2, True, False),), kind, 1, most, True)
    with tempfile.TemporaryDirectory() as folder:
        node = Node(Top(*options, grows=False, improves=True), Path(folder) / "few", bits=bits)
        twin = Node(Top(*options, grows=False), Path(folder) / "all", bits=bits)
        for given_rows in epochs:
            delta = given_rows.select([*numbered(schema).names, "__w"])
            assert count(node.epoch(delta, pieces=pieces)) == count(twin.epoch(delta, pieces=pieces))
            node.restart()


def test_of_what_improves_only_the_best_cross_the_exchange_and_are_kept(tmp_path: Path) -> None:
    operator = best(kind="rank", most=1, improves=True)
    piece = scores(*((f"p{number}", number, 1) for number in range(5000)))
    assert operator.prepare(0, piece, 64).num_rows == 1
    node = Node(operator, tmp_path)
    assert count(node.epoch(piece)) == {("p4999", 4999, 1): 1}
    better = scores(("p3", 3, -1), ("p3", 6000, 1))
    assert count(node.epoch(better)) == {("p4999", 4999, 1): -1, ("p3", 6000, 1): 1}
    assert stored(node) <= 3

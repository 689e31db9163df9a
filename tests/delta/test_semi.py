"""An incremental semi join equals the semi join of the sums of its inputs."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus, table, without_zero
from tests.delta.histories import ANY, BITS, CHANGES, KEY, LAW, Bag, relations

from evert.delta import DataError, Semi

KINDS = ("semi", "anti", "existence")


def slow(semi: Semi, left: Bag, right: Bag) -> Counter[Any]:
    """Every left row looks at every right row."""
    found: Counter[Any] = Counter()
    for row, weight in left:
        key = [row[at] for at in semi.left_key]
        able = all(safe or value is not None for value, safe in zip(key, semi.null_safe, strict=True))
        match = able and any(normal(key) == normal(other) for other, _ in right)
        if semi.kind == "existence":
            found[canon((*row, match))] += weight
        elif match == (semi.kind == "semi"):
            found[canon(row)] += weight
    return without_zero(found)


@st.composite
def semis(draw: st.DrawFn) -> tuple[Semi, Bag, Bag]:
    keys = draw(st.lists(KEY, max_size=2))
    more = draw(st.lists(ANY, max_size=2 - len(keys) // 2))
    left, left_pool = draw(relations(st.just(more + keys), most=7))
    right, right_pool = draw(relations(st.just(keys[::-1])))
    shared = [row[len(more) :][::-1] for row in left_pool]
    places = tuple(range(len(more), len(more) + len(keys)))[::-1]
    safe = tuple(draw(st.booleans()) for _ in keys)
    semi = Semi(left, right, places, safe, draw(st.sampled_from(KINDS)))
    return semi, Bag(left, left_pool), Bag(right, [*shared[:3], *right_pool])


@LAW
@given(semis(), CHANGES, CHANGES, BITS, st.integers(1, 3), st.booleans())
def test_any_changes_of_both_sides(
    sides: tuple[Semi, Bag, Bag], lefts: Any, rights: Any, bits: int, pieces: int, restarts: bool
) -> None:
    semi, left, right = sides
    with tempfile.TemporaryDirectory() as folder:
        node = Node(semi, Path(folder), bits=bits)
        sum_: Counter[Any] = Counter()
        for at in range(max(len(lefts), len(rights))):
            one = left.change(lefts[at] if at < len(lefts) else [], backwards=at % 2 == 1)
            other = right.change(rights[at] if at < len(rights) else [])
            emitted = node.epoch(one, other, pieces=pieces)
            assert emitted.schema.remove(len(emitted.schema) - 1).types == semi.output.types
            assert len(count(emitted)) == emitted.num_rows, "nothing comes that is not there"
            sum_ = plus(sum_, count(emitted))
            assert sum_ == slow(semi, left, right)
            if restarts:
                node.restart()
        big = Node(semi, Path(folder) / "big", bits=bits)
        assert count(big.epoch(left.whole(), right.whole())) == sum_


LEFT = pa.schema({"k": pa.int64(), "v": pa.string()})
RIGHT = pa.schema({"k": pa.int64()})


def node_of(kind: str, folder: Path, *, safe: bool = False) -> Node:
    return Node(Semi(LEFT, RIGHT, (0,), (safe,), kind), folder)


def left(*rows: Any, weight: int = 1) -> pa.Table:
    return table(LEFT, rows, [weight] * len(rows))


def right(*keys: Any, weight: int = 1) -> pa.Table:
    return table(RIGHT, [(key,) for key in keys], [weight] * len(keys))


def test_the_first_match_shows_a_row_and_the_last_one_hides_it(tmp_path: Path) -> None:
    node = node_of("semi", tmp_path)
    assert count(node.epoch(left((1, "a"), (1, "b"), (2, "c")), None)) == {}
    assert count(node.epoch(None, right(1, 1))) == {(1, "a"): 1, (1, "b"): 1}
    assert count(node.epoch(None, right(1, weight=-1))) == {}
    assert count(node.epoch(None, right(1, weight=-1))) == {(1, "a"): -1, (1, "b"): -1}


def test_a_flag_turns_without_hiding_the_row(tmp_path: Path) -> None:
    node = node_of("existence", tmp_path)
    assert count(node.epoch(left((1, "a")), None)) == {(1, "a", False): 1}
    assert count(node.epoch(None, right(1))) == {(1, "a", False): -1, (1, "a", True): 1}
    assert count(node.epoch(None, right(1, weight=-1))) == {(1, "a", True): -1, (1, "a", False): 1}


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_comes_that_is_not_there(tmp_path: Path, kind: str) -> None:
    node = node_of(kind, tmp_path)
    came_and_went = pa.concat_tables([left((1, "a"), (2, "b")), left((1, "a"), (2, "b"), weight=-1)])
    assert node.epoch(came_and_went, right(1), pieces=4).num_rows == 0
    node.epoch(left((1, "a"), (2, "b")), None)
    gone_with_its_match = node.epoch(left((1, "a"), weight=-1), right(1, weight=-1))
    assert gone_with_its_match.num_rows == (kind != "anti")
    gone_before_its_match = node.epoch(left((2, "b"), weight=-1), right(2))
    assert gone_before_its_match.num_rows == (kind != "semi")
    assert node.epoch(None, right(1, 2)).num_rows == 0


def test_a_match_that_comes_and_goes_shows_nothing(tmp_path: Path) -> None:
    node = node_of("semi", tmp_path)
    node.epoch(left((1, "a")), None)
    both = pa.concat_tables([right(1), right(1, weight=-1)])
    assert node.epoch(None, both, pieces=2).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "shown"), [("semi", {}), ("anti", {(None, "a"): 1}), ("existence", {(None, "a", False): 1})]
)
def test_null_matches_nothing_unless_it_may(tmp_path: Path, kind: str, shown: Any) -> None:
    strict = node_of(kind, tmp_path / "strict")
    assert count(strict.epoch(left((None, "a")), right(None))) == shown
    assert strict.epoch(None, right(None)).num_rows == 0
    assert not (tmp_path / "strict" / "state").exists(), "nothing of it is stored"
    safe = node_of(kind, tmp_path / "safe", safe=True)
    assert count(safe.epoch(left((None, "a")), None)) == shown
    assert safe.epoch(None, right(None)).num_rows == (2 if kind == "existence" else 1)


def test_rows_that_match_nothing_are_spread_over_the_shards() -> None:
    rows = left(*((None, str(number)) for number in range(100)))
    assert (
        len(set(Semi(LEFT, RIGHT, (0,), (False,), "anti").prepare(0, rows, 64).column("__h").to_pylist()))
        == 100
    )
    assert (
        len(set(Semi(LEFT, RIGHT, (0,), (True,), "anti").prepare(0, rows, 64).column("__h").to_pylist())) == 1
    )


def test_zeros_match_and_are_shown_as_they_are(tmp_path: Path) -> None:
    schema = pa.schema({"x": pa.float64()})
    node = Node(Semi(schema, schema, (0,), (False,), "semi"), tmp_path)
    nan = float("nan")
    emitted = node.epoch(table(schema, [(-0.0,), (nan,)], [1, 1]), table(schema, [(0.0,), (nan,)], [1, 1]))
    assert count(emitted) == {canon((-0.0,)): 1, canon((nan,)): 1}
    assert count(node.epoch(None, table(schema, [(-0.0,)], [-1]))) == {canon((-0.0,)): -1}


def test_integers_of_another_width_match(tmp_path: Path) -> None:
    semi = Semi(pa.schema({"k": pa.int32()}), RIGHT, (0,), (False,), "semi")
    node = Node(semi, tmp_path)
    node.epoch(table(semi.left, [(7,)], [1]), None)
    assert count(node.epoch(None, right(7))) == {(7,): 1}


def test_without_keys_any_right_row_is_a_match(tmp_path: Path) -> None:
    none = pa.schema([])
    node = Node(Semi(LEFT, none, (), (), "anti"), tmp_path)
    assert count(node.epoch(left((1, "a")), None)) == {(1, "a"): 1}
    assert count(node.epoch(None, table(none, [(), ()], [2, 1]))) == {(1, "a"): -1}
    assert count(node.epoch(left((2, "b")), table(none, [()], [-3]))) == {(1, "a"): 1, (2, "b"): 1}


def test_more_right_rows_of_a_hot_key_emit_nothing(tmp_path: Path) -> None:
    semi = Semi(LEFT, RIGHT, (0,), (False,), "semi")
    many = pa.table({"c0": [1] * 100_000, "__w": [1] * 100_000})
    assert semi.prepare(1, many, 64).num_rows == 1
    node = Node(semi, tmp_path)
    assert node.epoch(left((1, "a")), many).num_rows == 1
    assert node.epoch(None, right(1)).num_rows == 0
    assert count(node.epoch(left((1, "b")), right(1, weight=-1))) == {(1, "b"): 1}


def test_many_rows_under_one_key_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evert.trace.gather.BATCH_BYTES", 1 << 12)
    node = node_of("semi", tmp_path)
    rows = [(number % 700, str(number)) for number in range(70_000)]
    node.epoch(left(*rows), None)
    emitted = node.epoch(None, right(*range(700)))
    assert emitted.num_rows == 70_000
    assert max(chunk for chunk in map(len, emitted.column("c0").chunks)) <= 65536
    assert sorted(emitted.column("c1").to_pylist()) == sorted(text for _, text in rows)


def test_a_right_row_that_was_never_there_is_refused(tmp_path: Path) -> None:
    node = node_of("anti", tmp_path)
    node.epoch(None, right(1))
    with pytest.raises(DataError, match="taken out of the right side"):
        node.epoch(None, right(1, weight=-2))


def test_only_three_kinds_are_known() -> None:
    with pytest.raises(ValueError, match="one of semi, anti, existence, not 'outer'"):
        Semi(LEFT, RIGHT, (0,), (False,), "outer")

"""Versions against a twin that looks, for every time there is, which change was the last before it."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, normal, plus
from tests.delta.histories import BITS, LAW

from evert.delta import Versions

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"k": pa.float64(), "v": pa.string(), "at": TIME})
BY_TIME = Versions(SCHEMA, (0,), SCHEMA.field(2))
BY_ARRIVAL = Versions(SCHEMA, (0,))
IN_PARTITIONS = Versions(SCHEMA, (0,), SCHEMA.field(2), partitions=3)
UNSEEN = Versions(pa.schema(list(SCHEMA)[:2]), (0,), SCHEMA.field(2), partitions=3)
_AT = pa.field("at", pa.timestamp("us"))
NAIVE = Versions(pa.schema([*list(SCHEMA)[:2], _AT]), (0,), _AT)
START = datetime(1969, 12, 31, 23, 59, 55, tzinfo=UTC)
LAST = datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=UTC)

Change = tuple[float | None, str | None, datetime | None, datetime, int, int, bool]
"""Key, value, time, when it came in, partition, offset, whether it deletes."""


def moment(second: int) -> datetime:
    return START + timedelta(seconds=second)


def changes(operator: Versions, rows: list[Change]) -> pa.Table:
    """The changes as a leaf gives them; a delete knows only the key."""
    kept = [(k, None if gone else v, None if gone else at) for k, v, at, _, _, _, gone in rows]
    given = {name: [row[place] for row in kept] for place, name in enumerate(SCHEMA.names)}
    given["_ingested_at"] = [row[3] for row in rows]
    given["_partition"] = [row[4] for row in rows]
    columns = [given[name] for name in operator.taken.names]
    columns += [[7] * len(rows), [row[5] for row in rows], [row[6] for row in rows]]
    schema = operator.inputs[0]
    naive = [
        [None if one is None else one.replace(tzinfo=None) for one in column]
        if kind == pa.timestamp("us")
        else column
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    arrays = [pa.array(column, kind) for column, kind in zip(naive, schema.types, strict=True)]
    return pa.table([*arrays, pa.array([1] * len(rows), pa.int64())], names=[*schema.names, "__w"])


def slow(operator: Versions, rows: list[Change]) -> Counter[Any]:
    """All times at which a key changes, and which of its changes rules from one to the next."""
    found: Counter[Any] = Counter()
    begin = {}
    for row in rows:
        own = operator.time is not None and not row[6] and row[2] is not None
        begin[row] = row[2] if own else row[3]
    for key in {normal(row[0]) for row in rows}:
        mine = [row for row in rows if normal(row[0]) == key]
        times = sorted({begin[row] for row in mine})
        for at, until in zip(times, [*times[1:], None], strict=True):
            ruling = max((row for row in mine if begin[row] == at), key=lambda row: row[5])
            if not ruling[6]:
                number = ruling[5] * operator.partitions + (ruling[4] if operator.partitions > 1 else 0)
                shown = (*ruling[: len(operator.columns)], number, at, until)
                if operator is NAIVE:
                    shown = tuple(
                        one.replace(tzinfo=None) if isinstance(one, datetime) else one for one in shown
                    )
                found[canon(shown)] += 1
    return found


KEYS = [1.0, 0.0, -0.0, float("nan"), None]
PARTITION = {normal(key): place % 3 for place, key in enumerate(KEYS)}
TIMES = st.sampled_from([None, *map(moment, range(8)), LAST])
CHANGE = st.tuples(
    st.sampled_from(KEYS), st.sampled_from(["a", "b", None]), TIMES, st.integers(0, 2), st.booleans()
)


@st.composite
def histories(draw: Any) -> list[list[Change]]:
    """Epochs of changes in the order in which they were written; the clock may stand still."""
    now, offsets, epochs = 0, Counter[int](), []
    for epoch in draw(st.lists(st.lists(CHANGE, max_size=6), min_size=1, max_size=5)):
        rows = []
        for key, value, at, later, gone in epoch:
            now += later
            partition = PARTITION[normal(key)]
            rows.append((key, value, at, moment(now), partition, offsets[partition], gone))
            offsets[partition] += 1
        epochs.append(rows)
    return epochs


def numbered(epochs: list[list[Change]]) -> list[list[Change]]:
    """The same in one partition."""
    offset = iter(range(10**6))
    return [[(*row[:4], 0, next(offset), row[6]) for row in epoch] for epoch in epochs]


@LAW
@given(
    st.sampled_from([BY_TIME, BY_ARRIVAL, IN_PARTITIONS, UNSEEN, NAIVE]),
    histories(),
    BITS,
    st.integers(1, 3),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_changes(
    operator: Versions, epochs: Any, bits: int, pieces: int, restarts: bool, random: Any
) -> None:
    if operator.partitions == 1:
        epochs = numbered(epochs)
    with tempfile.TemporaryDirectory() as folder:
        node, rows, sums = Node(operator, Path(folder), bits=bits), [], Counter()
        for epoch in epochs:
            rows += epoch
            emitted = node.epoch(changes(operator, random.sample(epoch, len(epoch))), pieces=pieces)
            assert emitted.num_rows == sum(abs(weight) for weight in count(emitted).values())
            sums = plus(sums, count(emitted))
            assert sums == slow(operator, rows)
            if restarts:
                node.restart()
        big = Node(operator, Path(folder) / "big", bits=bits)
        assert count(big.epoch(changes(operator, rows))) == slow(operator, rows)


def shown(delta: pa.Table) -> list[tuple[Any, ...]]:
    """Value, number, begin and end in seconds, weight; in the order of the numbers, what goes first."""

    def second(at: datetime | None) -> int | None:
        return None if at is None else int((at - START).total_seconds())

    rows = sorted(delta.to_pylist(), key=lambda row: (row["c3"], row["__w"]))
    return [(row["c1"], row["c3"], second(row["c4"]), second(row["c5"]), row["__w"]) for row in rows]


def change(value: str | None, at: int | None, offset: int, came: int = 50) -> Change:
    return (1.0, value, None if at is None else moment(at), moment(came), 0, offset, value is None)


def test_only_the_version_before_a_late_one_changes(tmp_path: Path) -> None:
    node = Node(BY_TIME, tmp_path)
    node.epoch(changes(BY_TIME, [change("a", 10, 0), change("b", 20, 1), change("c", 30, 2)]))
    assert shown(node.epoch(changes(BY_TIME, [change("late", 15, 3)]))) == [
        ("a", 0, 10, 20, -1),
        ("a", 0, 10, 15, 1),
        ("late", 3, 15, 20, 1),
    ]


def test_a_version_of_the_same_content_is_another_version(tmp_path: Path) -> None:
    node = Node(BY_TIME, tmp_path)
    node.epoch(changes(BY_TIME, [change("a", 10, 0)]))
    assert shown(node.epoch(changes(BY_TIME, [change("a", 20, 1)]))) == [
        ("a", 0, 10, None, -1),
        ("a", 0, 10, 20, 1),
        ("a", 1, 20, None, 1),
    ]


def test_what_is_written_last_of_one_time_replaces_the_others(tmp_path: Path) -> None:
    node = Node(BY_TIME, tmp_path)
    node.epoch(changes(BY_TIME, [change("a", 10, 0)]))
    assert shown(node.epoch(changes(BY_TIME, [change("b", 10, 1)]))) == [
        ("a", 0, 10, None, -1),
        ("b", 1, 10, None, 1),
    ]


def test_a_delete_ends_what_is_valid_when_it_comes_in_and_nothing_later(tmp_path: Path) -> None:
    node = Node(BY_TIME, tmp_path)
    node.epoch(changes(BY_TIME, [change("a", 10, 0), change("planned", 90, 1)]))
    assert shown(node.epoch(changes(BY_TIME, [change(None, None, 2)]))) == [
        ("a", 0, 10, 90, -1),
        ("a", 0, 10, 50, 1),
    ]


def test_changes_that_are_taken_back_leave_their_time_to_the_one_before(tmp_path: Path) -> None:
    node = Node(BY_TIME, tmp_path)
    rows = changes(BY_TIME, [change("a", 10, 0), change("b", 20, 1)])
    node.epoch(rows)
    gone = rows.slice(1).set_column(rows.num_columns - 1, "__w", pa.array([-1]))
    assert shown(node.epoch(gone)) == [("a", 0, 10, 20, -1), ("a", 0, 10, None, 1), ("b", 1, 20, None, -1)]

"""Sessions against a twin that sorts all rows of a key and walks through them."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, Row, canon, count, plus, table
from tests.delta.histories import BITS, LAW

from evert.delta import DataError, Function
from evert.delta.session import Session
from evert.trace import same_rows

TIME = pa.timestamp("us", "UTC")
WINDOW = pa.struct({"start": TIME, "end": TIME})
SCHEMA = pa.schema({"k": pa.string(), "w": WINDOW, "v": pa.int64()})
FUNCTIONS = (
    Function("count"),
    Function("sum", 2),
    Function("min", 2),
    Function("max", 2),
    Function("count", 2),
)
BY_KEY = Session(SCHEMA, 1, FUNCTIONS)
OF_ALL = Session(pa.schema(list(SCHEMA)[1:2]), 0, (Function("count"),))
START = datetime(1969, 12, 31, 23, 59, 50, tzinfo=UTC)


def window(begin: int, length: int) -> dict[str, Any]:
    at = START + timedelta(seconds=begin)
    return {"start": at, "end": at + timedelta(seconds=length)}


def slow(rows: list[Row]) -> Counter[Any]:
    """The sessions of all rows: each row that begins no later than the latest end so far goes on with it."""
    found: Counter[Any] = Counter()
    for key in {row[0] for row in rows}:
        mine = sorted((row for row in rows if row[0] == key), key=lambda row: row[1]["start"])
        while mine:
            end, size = mine[0][1]["end"], 1
            while size < len(mine) and mine[size][1]["start"] <= end:
                end = max(end, mine[size][1]["end"])
                size += 1
            session, mine = mine[:size], mine[size:]
            values = [row[2] for row in session if row[2] is not None]
            whole = {"start": session[0][1]["start"], "end": end}
            total, least, most = (f(values) if values else None for f in (sum, min, max))
            found[canon((key, whole, len(session), total, least, most, len(values)))] += 1
    return found


ROW = st.tuples(
    st.sampled_from(["x", "y", None]),
    st.builds(window, st.integers(0, 30), st.sampled_from([3, 3, 3, 1, 8])),
    st.sampled_from([None, 0, 5, -7, 100]),
)
EPOCHS = st.lists(st.lists(st.tuples(ROW, st.sampled_from([1, 1, 2, 0])), max_size=8), min_size=1, max_size=5)


@LAW
@given(EPOCHS, BITS, st.integers(1, 3), st.booleans())
def test_any_rows(epochs: Any, bits: int, pieces: int, restarts: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node, rows, sums = Node(BY_KEY, Path(folder), bits=bits), [], Counter()
        for epoch in epochs:
            rows += [row for row, weight in epoch for _ in range(weight)]
            delta = table(SCHEMA, [row for row, _ in epoch], [weight for _, weight in epoch])
            sums = plus(sums, count(node.epoch(delta, pieces=pieces)))
            assert sums == slow(rows)
            if restarts:
                node.restart()
        whole = table(SCHEMA, rows, [1] * len(rows))
        big = Node(BY_KEY, Path(folder) / "big", bits=bits)
        assert count(big.epoch(whole)) == slow(rows)


def sessions(*rows: tuple[int, int, int]) -> pa.Table:
    return table(
        OF_ALL.input, [(window(begin, length),) for begin, length, _ in rows], [row[2] for row in rows]
    )


def shown(delta: pa.Table) -> list[tuple[int, int, int, int]]:
    def second(at: datetime) -> int:
        return int((at - START).total_seconds())

    return sorted(
        (second(row["c0"]["start"]), second(row["c0"]["end"]), row["c1"], row["__w"])
        for row in delta.to_pylist()
    )


def test_a_row_between_two_sessions_makes_them_one(tmp_path: Path) -> None:
    node = Node(OF_ALL, tmp_path)
    assert shown(node.epoch(sessions((0, 5, 1), (10, 5, 1), (30, 5, 1)))) == [
        (0, 5, 1, 1),
        (10, 15, 1, 1),
        (30, 35, 1, 1),
    ]
    assert shown(node.epoch(sessions((5, 5, 1)))) == [(0, 5, 1, -1), (0, 15, 3, 1), (10, 15, 1, -1)]


def test_a_row_within_a_session_changes_its_results_alone(tmp_path: Path) -> None:
    node = Node(OF_ALL, tmp_path)
    node.epoch(sessions((0, 9, 1), (20, 5, 1)))
    assert shown(node.epoch(sessions((2, 3, 2)))) == [(0, 9, 1, -1), (0, 9, 3, 1)]


def test_nothing_can_be_taken_back(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="growing input"):
        Node(OF_ALL, tmp_path).epoch(sessions((0, 5, -1)))


def test_a_row_reads_the_sessions_it_meets_and_not_all_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(OF_ALL, tmp_path, look=False)
    node.epoch(sessions(*((20 * number, 5, 1) for number in range(20_000))))
    read: list[int] = []
    for module in ("between", "ends"):
        monkeypatch.setattr(f"evert.trace.{module}.same_rows", counted(read))
    emitted = node.epoch(sessions((200_004, 17, 1), (100_007, 3, 1)))
    assert shown(emitted) == [
        (100_007, 100_010, 1, 1),
        (200_000, 200_005, 1, -1),
        (200_000, 200_025, 3, 1),
        (200_020, 200_025, 1, -1),
    ]
    assert sum(read) <= 5


def counted(read: list[int]) -> Any:
    def same(keys: Any, needles: Any, stored: Any, rows: Any, **options: Any) -> Any:
        read.append(len(rows))
        return same_rows(keys, needles, stored, rows, **options)

    return same

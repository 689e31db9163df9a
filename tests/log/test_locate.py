"""Finding the place of an offset, wherever its row lies."""

from __future__ import annotations

import pytest
from tests.log.logs import TINY

import evert


@pytest.fixture
def db(tmp_path):
    with evert.open(tmp_path / "db", direct_rows=TINY.direct_rows, background=False) as made:
        yield made


def test_a_row_in_the_tail_before_a_segment_is_found_before_it(db):
    topic = db.stream("t", "n INT")
    topic.append([{"n": n} for n in range(3)])
    topic.append([{"n": n} for n in range(3, 40)])
    topic.append([{"n": 40}])
    for offset in (0, 2, 3, 39, 40):
        after = topic.position_of(0, offset)
        rows = [row for batch in topic.read(after=after) for row in batch.to_pylist()]
        assert offset in [row["_offset"] for row in rows]
    with db.consumer("g", "t") as consumer:
        consumer.seek("t", 0, 1)
        (first, *_) = consumer.poll()
        assert first.rows.column("n").to_pylist()[0] == 1


def test_an_offset_that_is_not_there_yet_is_at_the_head(db):
    topic = db.stream("t", "n INT")
    topic.append([{"n": 1}])
    assert topic.position_of(0, 1) == db.position

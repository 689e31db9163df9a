"""Where groups stand: retention, compaction, seeking and resetting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.log.consuming import SCHEMA, drain, ids, rows

from evert.errors import BadOption, Expired, Fenced, NotFound, Refused


def test_one_large_commit_is_polled_in_pieces_and_resumed_in_the_middle(db):
    db.stream("clicks", SCHEMA, partitions=3).append(rows(*range(500)))
    seen = []
    while len(seen) < 500:
        with db.consumer("g", "clicks") as consumer:
            found = ids(consumer.poll(0, max_rows=37)) + ids(consumer.poll(0, max_rows=5))
            consumer.commit()
        seen += found
    assert sorted(seen) == list(range(500))


def test_sealing_between_two_polls_changes_nothing(db):
    clicks = db.stream("clicks", SCHEMA, partitions=2)
    for number in range(20):
        clicks.append(rows(number))
    consumer = db.consumer("g", "clicks")
    first = ids(consumer.poll(0, max_rows=7))
    db.maintain()
    assert sorted(first + drain(consumer)) == list(range(20))


def test_rows_that_retention_took_are_an_error_that_says_which(db, clock):
    clicks = db.stream("clicks", SCHEMA, retain="1 day")
    clicks.append(rows(1))
    consumer = db.consumer("g", "clicks", lease="30 days")
    consumer.poll(0)
    consumer.commit()
    clicks.append(rows(2, 3, 4))
    clock.advance("2 days")
    db.maintain()
    clicks.append(rows(5))
    with pytest.raises(Expired, match=r"3 rows of clicks .* partition 0, offsets 1 to 3") as caught:
        consumer.poll(0)
    assert caught.value.details["lost"] == 3
    assert "evert groups reset g --to earliest --topic clicks" in caught.value.hint
    db.reset("g", "earliest", force=True)
    assert drain(consumer) == [5]


def test_a_group_that_has_read_everything_does_not_mind_retention(db, clock):
    clicks = db.stream("clicks", SCHEMA, retain="1 day", partitions=2)
    clicks.append(rows(1, 2, 3))
    consumer = db.consumer("g", "clicks", lease="30 days")
    drain(consumer)
    consumer.commit()
    clock.advance("2 days")
    db.maintain()
    clicks.append(rows(4))
    assert drain(consumer) == [4]


def test_gaps_of_a_compacted_table_are_normal(db):
    users = db.table("users", SCHEMA, key="id")
    for turn in range(5):
        users.upsert([{"id": number, "word": str(turn)} for number in range(4)])
    consumer = db.consumer("g", "users")
    assert len(ids(consumer.poll(0, max_rows=3))) == 3
    consumer.commit()
    users.compact()
    again = db.consumer("g", "users", member="again")
    consumer.close()
    assert {number: word for batch in again.poll(0) for number, word in _pairs(batch)} == dict.fromkeys(
        range(4), "4"
    )
    again.commit()
    assert again.poll(0) == []


def test_seek_polls_from_an_offset(db):
    clicks = db.stream("clicks", SCHEMA)
    for number in range(10):
        clicks.append(rows(number))
        if number == 4:
            db.maintain()
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    for offset in (7, 2, 10):
        consumer.seek("clicks", 0, offset)
        assert drain(consumer) == list(range(offset, 10))
    with pytest.raises(Expired, match="offsets 0 to 10"):
        consumer.seek("clicks", 0, 11)
    with pytest.raises(Refused):
        consumer.seek("clicks", 1, 0)


@pytest.mark.parametrize("partitions", [1, 3])
def test_reset_moves_a_group_to_an_end_a_position_or_a_time(db, clock, partitions):
    clicks = db.stream("clicks", SCHEMA, partitions=partitions)
    times, positions = [], []
    for number in range(6):
        times.append(timedelta(microseconds=clock.now()))
        positions.append(clicks.append(rows(10 * number, 10 * number + 1)))
        clock.advance("1 minute")
        if number == 3:
            db.maintain()
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    consumer.commit()
    with pytest.raises(Refused, match="1 live members"):
        db.reset("g", "earliest")
    consumer.close()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    everything = [10 * n + extra for n in range(6) for extra in (0, 1)]
    for to, left in (
        ("earliest", everything),
        ("latest", []),
        (positions[1], everything[4:]),
        (positions[4], everything[10:]),
        (epoch + times[2], everything[4:]),
        (epoch + times[2] + timedelta(seconds=1), everything[6:]),
        (epoch + timedelta(days=90_000), []),
    ):
        db.reset("g", to)
        with db.consumer("g", "clicks") as again:
            assert drain(again) == left, to
    with pytest.raises(BadOption):
        db.reset("g", "somewhere")
    with pytest.raises(NotFound):
        db.reset("nobody", "earliest")


def test_a_forced_reset_fences_live_members(db):
    db.stream("clicks", SCHEMA).append(rows(1, 2))
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    db.reset("g", "latest", force=True)
    with pytest.raises(Fenced):
        consumer.commit()
    assert consumer.poll(0) == []


def _pairs(batch):
    return zip(batch.rows.column("id").to_pylist(), batch.rows.column("word").to_pylist(), strict=True)

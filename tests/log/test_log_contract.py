"""What every log promises, on every log there is.

`tiny` seals, cuts and writes segments at a few rows; `sweeping` is the same with a sweep between every two
steps of each append.
"""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest
from tests.log.logs import append, begin, column, delete, make_log, rows_of, upsert

from evert.errors import (
    BadName,
    BadOption,
    BadSchema,
    Conflict,
    RequestReused,
    SchemaChangeRefused,
    TopicExists,
    UnknownColumn,
    UnknownTopic,
)
from evert.log.protocol import Request
from evert.log.topic import define


@pytest.fixture(params=["memory", "embedded", "tiny", "sweeping"])
def log(request, tmp_path, clock):
    made, close = make_log(request.param, tmp_path / "db", clock)
    yield made
    close()


@pytest.fixture
def clicks(log):
    return log.create(define("clicks", "stream", "n BIGINT, url STRING"))


def click(n):
    return {"n": n, "url": f"/{n}"}


def keep(log):
    """Let the log rearrange what it holds, if it is of the kind that does."""
    keeper = getattr(log, "keeper", None)
    if keeper is not None:
        keeper.keep(seal_all=True)


def test_what_is_appended_is_read_back_in_order(log, clicks):
    for n in range(0, 30, 3):
        append(log, "clicks", [click(n), click(n + 1), click(n + 2)])
    keep(log)
    append(log, "clicks", [click(30)])
    assert column(log, "clicks", "n") == list(range(31))


def test_every_commit_has_the_next_position(log, clicks):
    assert [append(log, "clicks", [click(n)]) for n in range(3)] == [1, 2, 3]
    assert log.head() == 3


def test_rows_carry_position_partition_offset_and_time(log, clicks, clock):
    append(log, "clicks", [click(1), click(2)])
    clock.advance("1 minute")
    append(log, "clicks", [click(3)])
    rows = rows_of(log, "clicks")
    assert [(row["_position"], row["_partition"], row["_offset"]) for row in rows] == [
        (1, 0, 0),
        (1, 0, 1),
        (2, 0, 2),
    ]
    assert (rows[2]["_ingested_at"] - rows[0]["_ingested_at"]).total_seconds() == 60


def test_large_and_small_appends_look_the_same_to_a_reader(log, clicks):
    numbers = iter(range(1000))
    expected = []
    for size in (1, 30, 2, 25, 1, 1, 1, 50, 7):
        batch = [click(next(numbers)) for _ in range(size)]
        expected += batch
        append(log, "clicks", batch)
        keep(log)
    rows = rows_of(log, "clicks")
    assert [{"n": row["n"], "url": row["url"]} for row in rows] == expected
    assert [row["_offset"] for row in rows] == list(range(len(expected)))


def test_a_read_after_and_up_to_a_position_gives_just_that(log, clicks):
    for n in range(1, 13):
        append(log, "clicks", [click(n), click(n)])
    for _ in range(2):
        assert column(log, "clicks", "n", after=3, upto=5) == [4, 4, 5, 5]
        assert column(log, "clicks", "n", after=10) == [11, 11, 12, 12]
        assert column(log, "clicks", "n", upto=2) == [1, 1, 2, 2]
        assert column(log, "clicks", "n", after=12) == []
        keep(log)


def test_a_read_may_ask_for_some_columns_only(log, clicks):
    append(log, "clicks", [click(1)])
    for _ in range(2):
        (batch,) = log.read(["clicks"], columns=["url"])
        assert batch.rows.schema.names == ["url", "_position", "_partition", "_offset", "_ingested_at"]
        keep(log)


def test_a_column_that_is_not_there_is_an_error(log, clicks):
    append(log, "clicks", [click(1)])
    with pytest.raises(UnknownColumn):
        list(log.read(["clicks"], columns=["uri"]))


def test_a_topic_that_is_not_there_is_an_error_that_guesses(log, clicks):
    with pytest.raises(UnknownTopic) as raised:
        list(log.read(["click"]))
    assert "clicks" in raised.value.hint


def test_a_transaction_is_one_position_in_several_topics(log, clicks):
    log.create(define("visits", "stream", "who STRING"))
    with begin(log) as tx:
        tx.append("clicks", [click(1)])
        tx.append("visits", [{"who": "x"}])
        tx.append("clicks", [click(2)])
    assert tx.position == 1
    assert [(b.topic, b.first, b.rows.num_rows) for b in log.read(["visits", "clicks"])] == [
        ("visits", 1, 1),
        ("clicks", 1, 2),
    ]


def test_a_transaction_whose_block_raises_leaves_nothing(log, clicks):
    def failing():
        with begin(log) as tx:
            tx.append("clicks", [click(1)])
            raise KeyError("changed my mind")

    with pytest.raises(KeyError):
        failing()
    assert rows_of(log, "clicks") == []
    assert log.head() == 0


def test_several_topics_are_read_in_one_order_of_positions(log, clicks):
    log.create(define("visits", "stream", "n BIGINT"))
    for n in range(1, 40):
        append(log, "clicks" if n % 3 else "visits", [{"n": n}] * (n % 4 + 1))
        if n == 20:
            keep(log)
    positions = [row["_position"] for row in rows_of(log, "clicks", "visits")]
    assert positions == sorted(positions)
    assert set(positions) == set(range(1, 40))
    assert [row["n"] for row in rows_of(log, "clicks", "visits", after=5, upto=7)] == [5 + 1] * 3 + [7] * 4


def test_a_table_keeps_its_changes_with_deletes_marked(log):
    log.create(define("users", "table", "id BIGINT NOT NULL, name STRING NOT NULL", key="id"))
    upsert(log, "users", [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}])
    delete(log, "users", [1])
    for _ in range(2):
        assert [(r["id"], r["name"], r["_deleted"]) for r in rows_of(log, "users")] == [
            (1, "x", False),
            (2, "y", False),
            (1, None, True),
        ]
        keep(log)


def test_the_same_request_id_is_written_once_and_gives_the_first_position(log, clicks):
    first = append(log, "clicks", [click(1)], Request("r-1"))
    append(log, "clicks", [click(2)])
    assert append(log, "clicks", [click(1)], Request("r-1")) == first
    assert column(log, "clicks", "n") == [1, 2]


def test_the_same_request_id_with_other_content_is_an_error(log, clicks):
    append(log, "clicks", [click(1)], Request("r-1"))
    with pytest.raises(RequestReused):
        append(log, "clicks", [click(2)], Request("r-1"))
    assert column(log, "clicks", "n") == [1]


def test_a_large_request_is_written_once_too(log, clicks):
    rows = [click(n) for n in range(100)]
    assert [append(log, "clicks", rows, Request("5", "web-1")) for _ in range(3)] == [1, 1, 1]
    assert column(log, "clicks", "n") == list(range(100))


def test_sequences_of_different_producers_do_not_meet(log, clicks):
    append(log, "clicks", [click(1)], Request("1", "a"))
    append(log, "clicks", [click(2)], Request("1", "b"))
    assert column(log, "clicks", "n") == [1, 2]


def test_an_append_on_the_condition_that_the_topic_has_not_moved(log, clicks):
    seen = append(log, "clicks", [click(1)])
    log.create(define("visits", "stream", "who STRING"))
    append(log, "visits", [{"who": "x"}])
    tx = begin(log)
    tx.append("clicks", [click(2)])
    tx.require_unmoved("clicks", seen)
    assert tx.commit() == 3
    late = begin(log)
    late.append("clicks", [click(3)])
    late.require_unmoved("clicks", seen)
    with pytest.raises(Conflict):
        late.commit()
    assert column(log, "clicks", "n") == [1, 2]


def test_an_append_on_the_condition_that_a_key_has_not_moved(log):
    log.create(define("users", "table", "id BIGINT, name STRING", key="id"))
    seen = upsert(log, "users", [{"id": 1, "name": "a"}])
    upsert(log, "users", [{"id": 2, "name": "b"}])
    keep(log)
    tx = begin(log)
    tx.upsert("users", [{"id": 1, "name": "c"}])
    tx.require_unmoved("users", seen, key=1)
    tx.commit()
    keep(log)
    late = begin(log)
    late.upsert("users", [{"id": 1, "name": "d"}])
    late.require_unmoved("users", seen, key=1)
    with pytest.raises(Conflict):
        late.commit()
    assert column(log, "users", "name") == ["a", "b", "c"]


def test_a_key_stays_in_its_partition_and_offsets_count_per_partition(log):
    log.create(define("events", "stream", "who STRING, n BIGINT", key="who", partitions=4))
    for n in range(12):
        append(log, "events", [{"who": f"u{i}", "n": n} for i in range(n % 5 * 6)])
    for _ in range(2):
        rows = rows_of(log, "events")
        homes = {(row["who"], row["_partition"]) for row in rows}
        assert len(homes) == len({who for who, _ in homes})
        for partition in range(4):
            offsets = [row["_offset"] for row in rows if row["_partition"] == partition]
            assert offsets == list(range(len(offsets)))
        keep(log)


def test_rows_without_a_key_are_spread_over_the_partitions(log):
    log.create(define("events", "stream", "n BIGINT", partitions=3))
    append(log, "events", [{"n": n} for n in range(9)])
    assert sorted(row["_partition"] for row in rows_of(log, "events")) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_new_column_is_null_in_old_rows_and_a_wider_one_keeps_them(log):
    log.create(define("t", "stream", "n INT"))
    append(log, "t", [{"n": 1}])
    append(log, "t", [{"n": 2}] * 30)
    keep(log)
    append(log, "t", [{"n": 3}])
    log.alter("t", schema="n BIGINT, note STRING")
    append(log, "t", [{"n": 2**40, "note": "wide"}])
    keep(log)
    rows = rows_of(log, "t")
    assert [row["n"] for row in rows] == [1] + [2] * 30 + [3, 2**40]
    assert [row["note"] for row in rows][-2:] == [None, "wide"]
    (batch, *_) = log.read(["t"], columns=["note"])
    assert batch.rows.schema.field("note").type == pa.string()


def test_a_retry_after_the_schema_was_widened_is_still_known(log):
    log.create(define("t", "stream", "n INT"))
    first = append(log, "t", [{"n": 1}], Request("r"))
    log.alter("t", schema="n BIGINT, note STRING")
    assert append(log, "t", [{"n": 1}], Request("r")) == first


def test_a_change_of_schema_that_loses_something_is_refused_with_the_way_out(log, clicks):
    for schema in (
        "n BIGINT",
        "n INT, url STRING",
        "n BIGINT, url BINARY",
        "n BIGINT, url STRING, x INT NOT NULL",
    ):
        with pytest.raises(SchemaChangeRefused) as raised:
            log.alter("clicks", schema=schema)
        assert raised.value.hint


def test_creating_what_is_there_is_fine_and_anything_else_is_refused(log, clicks):
    assert log.create(define("clicks", "stream", "n BIGINT, url STRING")) == clicks
    for other in (
        define("clicks", "stream", "n STRING"),
        define("clicks", "table", "n BIGINT, url STRING", key="n"),
        define("clicks", "stream", "n BIGINT, url STRING", partitions=2),
        define("Clicks", "stream", "n BIGINT, url STRING"),
    ):
        with pytest.raises(TopicExists):
            log.create(other)


def test_a_program_that_declares_an_older_schema_goes_on_working(log, clicks):
    log.alter("clicks", schema="n BIGINT, url STRING, referrer STRING")
    assert log.create(define("clicks", "stream", "n BIGINT, url STRING")).schema.names[-1] == "referrer"


def test_a_dropped_topic_is_gone_and_its_name_is_free(log, clicks):
    append(log, "clicks", [click(n) for n in range(50)])
    log.drop("clicks")
    assert log.topics() == {}
    log.create(define("clicks", "stream", "other STRING"))
    assert rows_of(log, "clicks") == []


@pytest.mark.parametrize(
    "name", ["", "a b", "../up", "a/b", "1st", "-x", "a..b", "x" * 200, "a\0b", ".hidden", "ä b"]
)
def test_a_hostile_name_is_refused(name):
    with pytest.raises(BadName):
        define(name, "stream", "n INT")


def test_names_may_have_letters_of_any_script_and_dots_and_hyphens(log):
    for name in ("käufe", "clicks.late", "web-1", "_x", "注文"):
        log.create(define(name, "stream", "n INT"))
        append(log, name, [{"n": 1}])
        assert column(log, name, "n") == [1]


def test_a_table_needs_a_key_that_it_has():
    with pytest.raises(BadSchema):
        define("users", "table", "id BIGINT")
    with pytest.raises(UnknownColumn):
        define("users", "table", "id BIGINT", key="uid")
    with pytest.raises(BadSchema):
        define("users", "table", "id MAP<STRING, INT>", key="id")


def test_options_that_make_no_sense_are_refused():
    for options in (
        {"retain": "soon"},
        {"when_full": "explode"},
        {"when_full": "block"},
        {"nonsense": 1},
        {"history": 5},
    ):
        with pytest.raises(BadOption):
            define("clicks", "stream", "n INT", options=options)
    with pytest.raises(BadOption, match="for streams"):
        define("users", "table", "n INT", key="n", options={"views": "forget"})


def test_waiting_ends_with_the_next_commit(log, clicks):
    append(log, "clicks", [click(1)])
    thread = threading.Thread(target=lambda: (time.sleep(0.05), append(log, "clicks", [click(2)])))
    thread.start()
    assert log.wait(1, 10.0) == 2
    thread.join()
    assert log.wait(2, 0.01) == 2


def test_many_threads_append_and_nothing_is_lost_or_doubled(log, clicks):
    def work(start):
        for n in range(start, start + 25):
            append(log, "clicks", [click(n)])

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = rows_of(log, "clicks")
    assert sorted(row["n"] for row in rows) == sorted(100 * i + n for i in range(4) for n in range(25))
    assert [row["_position"] for row in rows] == list(range(1, 101))
    assert [row["_offset"] for row in rows] == list(range(100))
    for i in range(4):
        assert [r["n"] for r in rows if r["n"] // 100 == i] == list(range(100 * i, 100 * i + 25))

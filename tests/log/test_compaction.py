"""Compaction: the latest row of each key, deletes for a while, history where asked for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.log.logs import append, column, delete, make_log, rows_of, upsert

from evert.errors import Expired, Refused
from evert.log.topic import define
from evert.testing import ManualClock


@pytest.fixture
def log(tmp_path, clock):
    made, close = make_log("tiny", tmp_path / "db", clock)
    yield made
    close()


def users(log, **options):
    return log.create(define("users", "table", "id BIGINT, name STRING", key="id", options=options))


def test_only_the_latest_row_of_a_key_stays_where_it_was(log):
    users(log)
    for n in range(10):
        upsert(log, "users", [{"id": i, "name": f"{n}"} for i in range(3)])
    before = rows_of(log, "users")
    assert log.keeper.compact("users") == 27
    assert rows_of(log, "users") == before[-3:]
    upsert(log, "users", [{"id": 7, "name": "new"}])
    assert rows_of(log, "users")[-1]["_offset"] == 30


def test_a_delete_stays_for_a_time_and_then_goes_with_its_key(log, clock):
    users(log, tombstones="1 hour")
    upsert(log, "users", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    delete(log, "users", [1])
    log.keeper.compact("users")
    assert [(r["id"], r["_deleted"]) for r in rows_of(log, "users")] == [(2, False), (1, True)]
    clock.advance("2 hours")
    log.keeper.compact("users")
    assert [r["id"] for r in rows_of(log, "users")] == [2]


def test_a_reader_that_would_miss_a_delete_is_told(log, clock):
    users(log, tombstones="1 hour")
    seen = upsert(log, "users", [{"id": 1, "name": "a"}])
    delete(log, "users", [1])
    upsert(log, "users", [{"id": 2, "name": "b"}])
    clock.advance("2 hours")
    log.keeper.compact("users")
    with pytest.raises(Expired):
        list(log.read(["users"], after=seen))
    assert column(log, "users", "id") == [2]


def test_when_all_is_deleted_nothing_stays_and_the_log_goes_on(log, clock):
    users(log, tombstones="1 hour")
    upsert(log, "users", [{"id": n, "name": "x"} for n in range(30)])
    delete(log, "users", list(range(30)))
    clock.advance("2 hours")
    assert log.keeper.compact("users") == 60
    assert rows_of(log, "users") == []
    upsert(log, "users", [{"id": 1, "name": "again"}])
    assert [(r["name"], r["_offset"]) for r in rows_of(log, "users")] == [("again", 60)]


def test_history_keeps_the_versions_that_were_valid_within_it(log, clock):
    users(log, history="1 day")
    for day in range(5):
        upsert(log, "users", [{"id": 1, "name": f"{day}"}])
        clock.advance("12 hours")
    log.keeper.compact("users")
    assert column(log, "users", "name") == ["3", "4"]


def test_a_stream_is_never_compacted(log):
    log.create(define("clicks", "stream", "id BIGINT", key="id"))
    append(log, "clicks", [{"id": 1}, {"id": 1}])
    with pytest.raises(Refused) as raised:
        log.keeper.compact("clicks")
    assert raised.value.hint
    assert column(log, "clicks", "id") == [1, 1]


def test_disk_follows_contents_not_writes(log, tmp_path):
    users(log)

    def size():
        return sum(path.stat().st_size for path in (tmp_path / "db" / "log").rglob("*.parquet"))

    sizes = []
    for _ in range(4):
        for n in range(10):
            upsert(log, "users", [{"id": i, "name": f"{n}" * 20} for i in range(40)])
        log.keeper.compact("users")
        sizes.append(size())
    assert max(sizes) < 2 * min(sizes)


def table_of(rows):
    table = {}
    for row in rows:
        key = (row["a"], row["b"])
        table.pop(key, None)
        if not row["_deleted"]:
            table[key] = row["v"]
    return table


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("upsert"),
                st.lists(
                    st.tuples(st.integers(0, 3), st.sampled_from("xy"), st.integers()),
                    min_size=1,
                    max_size=30,
                ),
            ),
            st.tuples(
                st.just("delete"), st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy")), min_size=1)
            ),
            st.tuples(st.just("compact"), st.none()),
            st.tuples(st.just("keep"), st.none()),
            st.tuples(st.just("pause"), st.integers(1, 30)),
        ),
        max_size=20,
    ),
    st.integers(1, 3),
    st.sampled_from([(1, 64), (1, 50), (64 << 20, 64), (64 << 20, 2)]),
)
def test_a_table_rebuilt_from_the_log_is_the_same_whenever_it_was_compacted(
    monkeypatch, tmp_path_factory, steps, partitions, looking
):
    """Whatever is looked at together, and though different keys share a hash."""
    monkeypatch.setattr("evert.log.compaction.PART_BYTES", looking[0])
    monkeypatch.setattr("evert.log.compaction.HASH_BITS", looking[1])
    clock = ManualClock()
    log, close = make_log("tiny", tmp_path_factory.mktemp("db"), clock)
    small = 2**62
    try:
        schema = "a INT, b STRING, v BIGINT"
        log.create(define("t", "table", schema, key=("a", "b"), partitions=partitions))
        model = {}
        for step, given_ in steps:
            if step == "upsert":
                upsert(log, "t", [{"a": a, "b": b, "v": v % small} for a, b, v in given_])
                for a, b, v in given_:
                    model[(a, b)] = v % small
            elif step == "delete":
                delete(log, "t", given_)
                for key in given_:
                    model.pop(key, None)
            elif step == "compact":
                log.keeper.compact("t")
            elif step == "keep":
                log.keeper.keep(seal_all=True)
            else:
                clock.advance(f"{given_} hours")
            assert table_of(rows_of(log, "t")) == model
        log.keeper.compact("t")
        left = [(r["a"], r["b"]) for r in rows_of(log, "t")]
        assert len(left) == len(set(left))
    finally:
        close()

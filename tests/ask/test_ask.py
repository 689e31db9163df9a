from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.views.engine import Engine, open_database

from evert.errors import (
    BadOption,
    BadQuery,
    Corrupt,
    Expired,
    NotReady,
    NotTranslated,
    Stopped,
    TimedOut,
    TooManyRows,
    UnknownRelation,
)
from evert.testing import ManualClock

WRONG = [
    "",
    "SELEC 1",
    "SELECT",
    "SELECT 1 +",
    "SELECT (1",
    "SELECT 'a",
    "SELECT 1; SELECT 2",
    "SELECT id, count(*) FROM orders",
    "SELECT id FROM orders a JOIN orders b ON a.id = b.id",
    "SELECT 1/0",
    "SELECT CAST('x' AS INT)",
    "SELECT * FROM orders WHERE id",
    "SELECT sum(count(*)) FROM orders",
    "SELECT 1 UNION SELECT 1, 2",
    "SELECT id FROM orders ORDER BY 3",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
]


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path, clock):
    with open_database(tmp_path / "db", clock=clock, direct_rows=50) as made:
        yield made


@pytest.fixture
def orders(db):
    return db.stream("orders", "id BIGINT, shop STRING, amount DECIMAL(10,2), at TIMESTAMP")


def many(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": ids,
            "shop": [f"s{i % 3}" for i in ids],
            "amount": pa.array([Decimal(i) for i in ids], pa.decimal128(10, 2)),
            "at": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)] * count, pa.timestamp("us", "UTC")),
        }
    )


def value(db, sql, **options):
    (row,) = db.ask(sql, **options).rows()
    (found,) = row.values()
    return found


def test_an_answer_has_rows_arrow_pandas_and_where_it_comes_from(db, orders):
    position = orders.append({"id": 1, "shop": "a", "amount": "1.50"})
    answer = db.ask("SELECT shop, sum(amount) AS total FROM orders GROUP BY shop")
    assert answer.rows() == [{"shop": "a", "total": Decimal("1.50")}]
    assert answer.arrow().schema == pa.schema([("shop", pa.string()), ("total", pa.decimal128(20, 2))])
    assert answer.pandas()["shop"].tolist() == ["a"]
    assert (answer.position, answer.engine, answer.dialect, len(answer)) == (position, "duckdb", "spark", 1)
    assert answer.positions == {"orders": position}


def test_a_stream_shows_its_system_columns_wherever_its_rows_lie(db, orders, clock):
    """In the tail, in a segment of one large append, and in one that was sealed from many."""
    first = orders.append({"id": 0, "shop": "a"})
    clock.advance(1)
    second = orders.append(many(1, 100))
    sql = "SELECT id, _position, _partition, _offset, _ingested_at FROM orders ORDER BY id"
    before = db.ask(sql).rows()
    assert [(row["_position"], row["_offset"]) for row in before[:2]] == [(first, 0), (second, 1)]
    assert before[100]["_offset"] == 100
    assert before[1]["_ingested_at"] - before[0]["_ingested_at"] == dt.timedelta(seconds=1)
    read = [row for batch in orders.read(columns=["id"]) for row in batch.to_pylist()]
    assert before == sorted(read, key=lambda row: row["id"])
    db.maintain()
    orders.append({"id": 101, "shop": "b"})
    assert db.ask(sql).rows()[:101] == before
    assert value(db, "SELECT count(*) FROM orders WHERE _offset >= 100") == 2
    assert value(db, f"SELECT count(*) FROM orders WHERE _position = {second} AND _partition = 0") == 100


def test_rows_of_several_partitions_have_their_own_offsets(db):
    spread = db.stream("spread", "k INT, v STRING", key="k", partitions=4)
    spread.append([{"k": i, "v": "x"} for i in range(40)])
    spread.append(pa.table({"k": pa.array(range(40, 140), pa.int32()), "v": ["y"] * 100}))
    read = [row for batch in spread.read() for row in batch.to_pylist()]
    asked = db.ask("SELECT * FROM spread ORDER BY k").rows()
    assert asked == sorted(read, key=lambda row: row["k"])
    assert value(db, "SELECT count(DISTINCT _partition) FROM spread") == 4


def test_rows_from_before_a_change_of_the_schema_are_shown_in_the_new_one(db):
    old = db.stream("old", "n INT")
    old.append(pa.table({"n": pa.array(range(100), pa.int32())}))
    old.append({"n": 100})
    db.maintain()
    db.alter("old", "n BIGINT, note STRING")
    old.append({"n": 2**40, "note": "new"})
    answer = db.ask("SELECT count(*) AS c, sum(n) AS s, count(note) AS notes FROM old")
    assert answer.rows() == [{"c": 102, "s": sum(range(101)) + 2**40, "notes": 1}]
    assert value(db, "SELECT note FROM old WHERE n > 1000") == "new"


def test_a_table_shows_the_last_row_of_every_key_that_is_not_deleted(db):
    customers = db.table("customers", "id DOUBLE, name STRING", key="id")
    customers.upsert([{"id": 1.0, "name": "a"}, {"id": 1.0, "name": "b"}, {"id": 2.0, "name": "c"}])
    seen = customers.upsert([{"id": 0.0, "name": "zero"}, {"id": float("nan"), "name": "n"}])
    customers.delete(2.0)
    customers.upsert([{"id": -0.0, "name": "minus"}, {"id": float("nan"), "name": "nan"}])
    names = "SELECT name FROM customers ORDER BY name"
    assert [row["name"] for row in db.ask(names).rows()] == ["b", "minus", "nan"]
    assert [row["name"] for row in db.ask(names, at=seen).rows()] == ["b", "c", "n", "zero"]
    assert value(db, "SELECT count(*) FROM customers") == 3


def test_the_past_is_asked_for_with_a_position(db, orders):
    first = orders.append({"id": 1})
    orders.append([{"id": 2}, {"id": 3}])
    count = "SELECT count(*) FROM orders"
    assert [value(db, count, at=at) for at in (0, first, first + 1)] == [0, 1, 3]
    db.maintain()
    assert [value(db, count, at=at) for at in (0, first, first + 1)] == [0, 1, 3]
    for wrong in (-1, first + 2, True, "1"):
        with pytest.raises(BadOption):
            db.ask(count, at=wrong)


def test_what_retention_removed_is_not_asked_for(db, clock):
    short = db.stream("short", "n INT", retain="1 day")
    old = short.append([{"n": 1}])
    db.maintain()
    clock.advance(3 * 86_400)
    short.append([{"n": 2}])
    db.maintain()
    assert [row["n"] for row in db.ask("SELECT n FROM short").rows()] == [2]
    with pytest.raises(Expired):
        db.ask("SELECT n FROM short", at=old - 1)


def test_a_query_that_names_a_view_is_answered_where_the_view_stands(db, orders):
    engine = Engine(db)
    engine.view("per_shop", key=("shop",))
    position = orders.append({"id": 1, "shop": "a"})
    engine.epoch(position, {"per_shop": {("a", 1): 1, ("b", 2): 1}})
    orders.append({"id": 2, "shop": "a"})
    answer = db.ask("SELECT count(*) AS n FROM orders JOIN per_shop USING (shop)")
    assert (answer.position, answer.rows()) == (position, [{"n": 1}])
    assert answer.positions == {"orders": position, "per_shop": position}
    assert value(db, "SELECT count(*) FROM orders") == 2


def test_a_view_shows_a_row_as_often_as_it_counts(db):
    engine = Engine(db)
    engine.view("several")
    engine.epoch(1, {"several": {("a", 1): 3, ("b", None): 1}})
    assert value(db, "SELECT count(*) FROM several") == 4
    assert db.ask("SELECT n, count(*) AS c FROM several GROUP BY n ORDER BY n").rows() == [
        {"n": None, "c": 1},
        {"n": 1, "c": 3},
    ]


def test_views_of_other_groups_are_shown_as_of_the_default_group(db, orders):
    engine = Engine(db)
    engine.view("kept", key=("shop",))
    engine.view("ranked", key=("shop",), group="ranked")
    for _ in range(5):
        orders.append({"id": 1, "shop": "a"})
    engine.epoch(2, {"ranked": {("x", 2): 1}})
    engine.epoch(3, {"kept": {("a", 3): 1}})
    engine.epoch(4, {"ranked": {("x", 2): -1, ("x", 4): 1}})
    both = "SELECT r.n FROM ranked r CROSS JOIN kept"
    answer = db.ask(both)
    assert (answer.position, dict(answer.positions)) == (3, {"ranked": 2, "kept": 3})
    assert answer.rows() == [{"n": 2}]
    assert db.ask("SELECT n FROM ranked").position == 4
    past = db.ask("SELECT kept.shop FROM kept, orders", at=5)
    assert dict(past.positions) == {"kept": 3, "orders": 5}
    assert len(past) == 5


def test_a_view_that_is_not_there_yet_or_has_stopped_gives_no_answer(db):
    engine = Engine(db)
    engine.define("building")
    with pytest.raises(NotReady):
        db.ask("SELECT * FROM building")
    engine.view("stopped")
    engine.epoch(1, {"stopped": {("a", 1): 1}})
    db.stream("filler", "n INT").append({"n": 1})
    engine.stop("stopped")
    with pytest.raises(Stopped):
        db.ask("SELECT * FROM stopped")
    assert db.ask("SELECT * FROM stopped", at=1).rows() == [{"shop": "a", "n": 1}]


def test_names_are_found_whatever_their_case_and_with_dots(db):
    db.stream("shop.Clicks", "Url STRING").append({"Url": "/"})
    for name in ("shop.clicks", "`shop.Clicks`", "SHOP.CLICKS"):
        assert value(db, f"SELECT URL FROM {name}") == "/"
    assert value(db, "SELECT clicks.url FROM shop.clicks") == "/"


def test_mistakes_are_told_with_what_was_perhaps_meant(db, orders, monkeypatch):
    # Other tests of this process may have begun one.
    monkeypatch.setattr("evert.plan.catalyst.Catalyst.running", lambda: None)
    with pytest.raises(UnknownRelation, match="ordrs") as found:
        db.ask("SELECT 1 FROM ordrs")
    assert found.value.hint == "did you mean 'orders'?"
    with pytest.raises(BadQuery, match="amuont") as wrong:
        db.ask("SELECT amuont FROM orders")
    assert "amount" in wrong.value.hint
    for sql in ("SELECT shop + 1 FROM orders", "SELECT foo(1)", "SELECT rlike(shop, 'a') FROM orders"):
        with pytest.raises(NotTranslated) as refused:
            db.ask(sql)
        assert refused.value.hint
    for sql in WRONG:
        with pytest.raises(BadQuery) as bad:
            db.ask(sql)
        assert "\n" not in bad.value.message, sql
        assert len(bad.value.message) < 300


def test_an_answer_of_too_many_rows_is_an_error(db, orders):
    orders.append(many(0, 100))
    assert len(db.ask("SELECT id FROM orders", max_rows=100)) == 100
    with pytest.raises(TooManyRows, match="99") as found:
        db.ask("SELECT id FROM orders", max_rows=99)
    assert "max_rows" in found.value.hint
    assert len(db.ask("SELECT id FROM orders LIMIT 3", max_rows=3)) == 3


def test_a_query_that_takes_too_long_is_interrupted(db, orders):
    orders.append(many(0, 20_000))
    with pytest.raises(TimedOut, match=r"0\.3 seconds") as found:
        db.ask(
            "SELECT count(*) FROM orders a, orders b, orders c WHERE a.id + b.id + c.id = -1", max_seconds=0.3
        )
    assert "max_seconds" in found.value.hint


def test_options_that_make_no_sense_are_refused(db):
    for options in ({"dialect": "mysql"}, {"max_seconds": 0}, {"max_rows": -1}):
        with pytest.raises(BadOption):
            db.ask("SELECT 1", **options)
    with pytest.raises(BadOption):
        db.ask(17)


def test_a_damaged_segment_is_named_and_not_served(db, orders):
    orders.append(many(0, 100))
    (file,) = (db.path / "log").rglob("*.parquet")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)
    with open_database(db.path) as other, pytest.raises(Corrupt):
        other.ask("SELECT sum(id) FROM orders")


def test_segments_that_go_while_a_question_is_asked_are_still_read(db, orders, monkeypatch):
    from evert.ask import duck

    orders.append(many(0, 100))
    run = duck.run

    def without_files(*args, **options):
        for file in (db.path / "log").rglob("*.parquet"):
            file.unlink()
        return run(*args, **options)

    monkeypatch.setattr(duck, "run", without_files)
    assert value(db, "SELECT count(*) FROM orders WHERE amount >= 0") == 100


def test_a_missing_package_is_named(db, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "duckdb", None)
    from evert.errors import NotFound

    with pytest.raises(NotFound) as found:
        db.ask("SELECT 1")
    assert found.value.hint == "pip install 'evert[ask]'"


def test_many_threads_ask_at_once(db, orders):
    from concurrent.futures import ThreadPoolExecutor

    orders.append(many(0, 1000))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: value(db, f"SELECT count(*) FROM orders WHERE id < {n}"), range(20)))
    assert found == list(range(20))

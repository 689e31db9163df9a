"""Views with functions in Python: right after every change, called for what they are asked for, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import functions as f
from pyspark.sql.types import LongType
from tests.plan import udfs

import evert
from evert.errors import BadQuery


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False, shards=2) as made:
        yield made


@pytest.fixture
def items(db):
    return db.table("items", "id BIGINT, kind STRING, price BIGINT", key="id")


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def proved(db):
    return [proof.view for proof in db.prove() if not proof.holds] == []


@pytest.mark.timeout(600)
def test_functions_of_every_kind_give_what_spark_gives_after_inserts_updates_and_deletes(db):
    auctions = db.table("auction", "id BIGINT, seller BIGINT, category INT, reserve BIGINT", key="id")
    people = db.table("person", "id BIGINT, name STRING, state STRING", key="id")
    bids = db.stream("bid", "auction BIGINT, price BIGINT")
    for query in udfs.KEPT:
        db.view(query.__name__, query)
    assert [name for name in db.views if db.explain(name).recomputes] == ["pandas_aggregate_of_all"]
    auctions.upsert([{"id": n, "seller": n % 3, "category": n % 2, "reserve": n * 7} for n in range(9)])
    people.upsert([{"id": n, "name": "x", "state": "y"} for n in range(2)])
    bids.append([{"auction": n, "price": n * 3} for n in range(4)])
    db.refresh(timeout=300)
    assert rows(db.view("projected"))[:3] == [(0, 0), (1, 14), (2, 28)]
    assert rows(db.view("inside_an_aggregate")) == [(0, 280, 3), (1, 224, 3)]
    auctions.upsert({"id": 1, "seller": None, "category": None, "reserve": 99})
    people.upsert({"id": 2, "name": None, "state": "y"})
    auctions.delete(2)
    bids.append({"auction": None, "price": None})
    db.refresh(timeout=300)
    assert rows(db.view("projected"))[:3] == [(0, 0), (1, 198), (3, 42)]
    assert rows(db.view("top_by")) == [(1,), (7,), (8,)]
    assert proved(db)
    for n in range(9):
        auctions.delete(n)
    db.refresh(timeout=300)
    assert db.view("projected").rows() == []
    assert db.view("pandas_aggregate_of_all").count() == 0
    assert proved(db)


class Calls:
    """Functions that write down in a file what they are called with."""

    def __init__(self, file: Path) -> None:
        self.file = file
        name = str(file)

        def note(value):
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.write(handle, f"{value}\n".encode())
            os.close(handle)

        def plain(value):
            note(value)
            return value

        def with_pandas(values: pd.Series) -> pd.Series:
            values.map(note)
            return values

        def with_arrow(values: pa.Array) -> pa.Array:
            list(map(note, values.to_pylist()))
            return values

        self.functions = {
            "plain": f.udf(plain, LongType()),
            "pandas": f.pandas_udf(with_pandas, LongType()),
            "arrow": f.arrow_udf(with_arrow, LongType()),
        }

    def taken(self) -> list[str]:
        """What they were called with since this was asked last, each once."""
        found = sorted(set(self.file.read_text().split())) if self.file.exists() else []
        self.file.unlink(missing_ok=True)
        return found


@pytest.mark.parametrize("kind", ["plain", "pandas", "arrow"])
def test_a_function_sees_only_rows_of_its_relation_that_pass_the_filter_below_it(db, items, tmp_path, kind):
    calls = Calls(tmp_path / "calls")
    called = calls.functions[kind]
    others = db.stream("others", "price BIGINT")

    def dear(spark):
        frame = spark.table("items").where("price > 10")
        return frame.select("id", called("price").alias("price"))

    def dear_others(spark):
        return spark.table("others").groupBy("price").count()

    db.view("dear", dear)
    db.view("dear_others", dear_others)
    items.upsert([{"id": n, "kind": "a", "price": n} for n in (5, 15, 25)])
    others.append([{"price": 77}, {"price": None}])
    db.refresh(timeout=120)
    assert calls.taken() == ["15", "25"]
    items.upsert({"id": 25, "kind": "a", "price": 35})
    others.append([{"price": 78}])
    db.refresh(timeout=120)
    assert calls.taken() == ["25", "35"]
    others.append([{"price": 79}])
    db.refresh(timeout=120)
    assert calls.taken() == []
    assert rows(db.view("dear")) == [(15, 15), (25, 35)]
    assert db.view("dear_others").count() == 4
    assert proved(db)


def test_a_function_over_groups_sees_the_rows_of_the_groups_that_changed(db, items, tmp_path):
    calls = Calls(tmp_path / "calls")

    def spread(spark):
        called = calls.functions["plain"](f.col("price"))
        return spark.table("items").groupBy("kind").agg(f.median(called).alias("m"))

    db.view("spread", spread)
    items.upsert([{"id": n, "kind": "ab"[n % 2], "price": n} for n in range(10, 16)])
    db.refresh(timeout=120)
    calls.taken()
    items.upsert({"id": 11, "kind": "b", "price": 21})
    db.refresh(timeout=120)
    assert set(calls.taken()) <= {"11", "13", "15", "21"}
    assert rows(db.view("spread")) == [("a", 12.0), ("b", 15.0)]


def test_a_function_that_may_answer_otherwise_is_refused(db, items):
    guess = f.udf(lambda x: x, LongType()).asNondeterministic()

    def guessed(spark):
        return spark.table("items").select(guess("price").alias("price"))

    with pytest.raises(BadQuery, match="gives another answer each time"):
        db.view("guessed", guessed)
    assert db.views == {}


def test_a_function_that_raises_stops_its_view_alone_with_its_words(db, items):
    def unlucky(price):
        if price == 13:
            raise ValueError("13 is no price")
        return price

    checked = f.udf(unlucky, LongType())

    def prices(spark):
        return spark.table("items").select("id", checked("price").alias("price"))

    view = db.view("prices", prices)
    count = db.view("count", "SELECT count(*) AS n FROM items")
    items.upsert({"id": 1, "kind": "a", "price": 7})
    db.refresh(timeout=120)
    good = view.position
    bad = items.upsert({"id": 2, "kind": "a", "price": 13})
    db.refresh(timeout=120)
    assert (view.state, view.position) == ("stopped", good)
    assert "13 is no price" in view.error["message"]
    assert view.error["position"] == bad
    assert count.rows() == [{"n": 2}]
    items.upsert({"id": 2, "kind": "a", "price": 14})
    db.refresh(timeout=120)
    assert rows(view) == [(1, 7), (2, 14)]
    assert proved(db)


def test_a_view_is_built_anew_when_the_body_of_its_function_has_changed(spark, tmp_path):
    def query(factor):
        times = f.udf(lambda x: x * factor, LongType())

        def scaled(spark):
            return spark.table("items").select("id", times("price").alias("price"))

        return scaled

    for factor, price in ((2, 7), (3, 8)):
        with evert.open(tmp_path / "db", background=False) as db:
            items = db.table("items", "id BIGINT, price BIGINT", key="id")
            db.view("scaled", query(factor))
            items.upsert({"id": price, "price": price})
            db.refresh(timeout=120)
            db.refresh(timeout=120)
            expected = [(n, n * factor) for n in range(7, price + 1)]
            assert rows(db.view("scaled")) == expected
            assert proved(db)

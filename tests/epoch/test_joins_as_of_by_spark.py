"""Spark's own as-of joins: the nearest row before, after or around, kept as the table changes."""

from __future__ import annotations

import random

import pytest

import evert

KINDS = {
    "before": {"direction": "backward", "how": "left"},
    "strictly_before": {"direction": "backward", "how": "inner", "allowExactMatches": False},
    "after": {"direction": "forward", "how": "left"},
    "nearest": {"direction": "nearest", "how": "inner"},
}


SINCE = range(0, 50, 10)
AT = sorted(set(range(50)) - {(one + other) / 2 for one in SINCE for other in SINCE if one < other})
"""Never as far from one as from another: which of those is nearest, Spark leaves open."""


def joined(options):
    def query(spark):
        options_of_all = {
            "leftAsOfColumn": "at",
            "rightAsOfColumn": "since",
            "on": "symbol",
            "tolerance": None,
        }
        found = spark.table("trades")._joinAsOf(spark.table("quotes"), **{**options_of_all, **options})
        return found.select("id", "price")

    query.__qualname__ = f"joined_{options['direction']}_{options['allowExactMatches']}"
    return query


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        made.stream("trades", "id BIGINT, symbol STRING, at BIGINT")
        made.table("quotes", "symbol STRING, since BIGINT, price BIGINT", key=["symbol", "since"])
        yield made


def rows(view):
    return sorted(view.rows(), key=lambda row: row["id"])


def test_the_nearest_row_is_found_and_corrected_when_a_nearer_one_comes(db):
    view = db.view("before", joined({**KINDS["before"], "allowExactMatches": True}))
    db.topic("quotes").upsert(
        [{"symbol": "a", "since": 1, "price": 10}, {"symbol": "a", "since": 5, "price": 20}]
    )
    db.topic("trades").append([{"id": 1, "symbol": "a", "at": 3}, {"id": 2, "symbol": "b", "at": 7}])
    db.refresh()
    assert rows(view) == [{"id": 1, "price": 10}, {"id": 2, "price": None}]
    db.topic("quotes").upsert({"symbol": "a", "since": 3, "price": 15})
    db.refresh()
    assert rows(view) == [{"id": 1, "price": 15}, {"id": 2, "price": None}]
    db.topic("quotes").delete({"symbol": "a", "since": 3})
    db.refresh()
    assert rows(view)[0] == {"id": 1, "price": 10}
    assert db.explain("before").recomputes is None


def test_every_direction_gives_what_spark_gives_whatever_changes(db):
    chance = random.Random(1)
    for name, options in KINDS.items():
        db.view(name, joined({"allowExactMatches": True, **options}))
    for epoch in range(3):
        for _ in range(6):
            quote = {"symbol": chance.choice("ab"), "since": chance.choice(SINCE)}
            if chance.random() < 0.3:
                db.topic("quotes").delete(quote)
            else:
                db.topic("quotes").upsert({**quote, "price": chance.randrange(9)})
        trades = [
            {"id": 10 * epoch + n, "symbol": chance.choice("abc"), "at": chance.choice(AT)} for n in range(5)
        ]
        db.topic("trades").append(trades)
        db.refresh()
    assert all(db.view(name).count() for name in KINDS)
    assert [proof.view for proof in db.prove() if not proof.holds] == []

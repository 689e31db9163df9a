"""Views of streams that only filter and project: tasks keep what they have read, and it is all there once."""

from __future__ import annotations

import random

import pytest
from tests.epoch.orders import right

import evert
from evert.epoch.job import straight

VIEWS = {
    "dear": "SELECT id, amount * 2 AS twice FROM bids WHERE amount > 40",
    "all_of_them": "SELECT * FROM bids",
    "of_both": "SELECT amount FROM bids UNION ALL SELECT amount FROM asks WHERE amount < 50",
    "said": "SELECT id, upper(word) AS word FROM bids",
}


@pytest.fixture
def straights(jobs):
    """Which of the jobs so far had no exchange."""
    return lambda: [job.inline and straight(job._flow) for job in jobs]


def write(db, chance, count):
    for name in ("bids", "asks"):
        rows = [
            {"id": n, "amount": chance.randrange(100), "word": chance.choice(["one", "two"])}
            for n in range(count)
        ]
        db.topic(name).append(rows)


def opened(path, **options):
    db = evert.open(path, background=False, **options)
    for name in ("bids", "asks"):
        db.stream(name, "id INT, amount INT, word STRING")
    return db


@pytest.mark.parametrize("shards", [1, 2, 3])
@pytest.mark.parametrize("small", [0, 100_000])
def test_small_and_large_ranges_in_any_number_of_shards(
    spark, tmp_path, monkeypatch, straights, shards, small
):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", small)
    chance = random.Random(shards)
    with opened(tmp_path / "db", shards=shards, direct_rows=200) as db:
        for name, query in VIEWS.items():
            db.view(name, query)
        for count in (500, 3, 300, 1, 700):
            write(db, chance, count)
            db.refresh(timeout=120)
        assert right(db)
        assert sum(1 for _ in db.views["all_of_them"].rows()) == 1504
        assert set(straights()) == {True}


def test_what_workers_cannot_evaluate_is_kept_with_an_exchange_from_then_on(spark, tmp_path, straights):
    with opened(tmp_path / "db") as db:
        db.view("said", VIEWS["said"])
        for word in ("one", "straße", "two"):
            db.topic("bids").append([{"id": n, "amount": n, "word": f"{word} {n}"} for n in range(20)])
            db.refresh(timeout=120)
        assert {row["word"] for row in db.views["said"].rows()} >= {"ONE 0", "STRASSE 0", "TWO 0"}
        assert right(db)
        assert straights() == [True, True, False, False]


def test_beside_views_with_state_and_where_rows_may_go_again_there_is_an_exchange(spark, tmp_path, straights):
    with opened(tmp_path / "db") as db:
        db.view("dear", VIEWS["dear"])
        db.view("counted", "SELECT word, count(*) AS n FROM bids GROUP BY word")
        db.table("lots", "id INT, amount INT", key="id")
        db.view("large", "SELECT amount FROM lots WHERE amount > 1", group="lots")
        for number in range(3):
            write(db, random.Random(number), 50)
            db.topic("lots").upsert([{"id": n, "amount": n + number} for n in range(20)])
            db.topic("lots").delete(number)
            db.refresh(timeout=120)
        assert right(db)
        assert not any(straights())


def test_rows_that_will_be_forgotten_are_exchanged(spark, tmp_path, straights):
    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("bids", "id INT, amount INT, word STRING", retain="1 day", views="forget")
        db.view("dear", VIEWS["dear"])
        db.topic("bids").append([{"id": n, "amount": n, "word": "w"} for n in range(100)])
        db.refresh(timeout=120)
        assert straights() == [False]

"""The time at which a row came in is a column for queries that name it."""

from __future__ import annotations

from datetime import timedelta

import pytest

import evert
from evert.errors import Refused
from evert.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(spark, tmp_path, clock):
    with evert.open(tmp_path / "db", background=False, clock=clock) as made:
        yield made


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def proved(db):
    return [proof.view for proof in db.prove() if not proof.holds] == []


@pytest.mark.parametrize("small", [0, 20_000])
def test_views_with_and_without_it_stand_side_by_side(db, clock, monkeypatch, small):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", small)
    clicks = db.stream("clicks", "url STRING")
    stock = db.table("stock", "item INT, n INT", key="item")
    hours = db.view(
        "hours", "SELECT date_trunc('hour', _ingested_at) AS h, count(*) AS n FROM clicks GROUP BY 1"
    )
    fresh = db.view("fresh", "SELECT item, _ingested_at AS since FROM stock")
    count = db.view("count", "SELECT count(*) AS n FROM clicks JOIN stock ON length(url) = item")
    clicks.append([{"url": "a"}, {"url": "b"}])
    stock.upsert([{"item": 1, "n": 5}, {"item": 2, "n": 5}])
    db.refresh(timeout=120)
    clock.advance(timedelta(hours=1))
    clicks.append({"url": "c"})
    stock.upsert({"item": 1, "n": 5})
    db.refresh(timeout=120)
    assert [n for _, n in rows(hours)] == [2, 1]
    first, second = (since for _, since in rows(fresh))
    assert first - second == timedelta(hours=1)
    assert rows(count) == [(3,)]
    assert proved(db)


def test_it_is_kept_when_retention_has_removed_the_events(db, clock):
    clicks = db.stream("clicks", "url STRING", retain="1 day")
    hours = db.view(
        "hours", "SELECT date_trunc('hour', _ingested_at) AS h, count(*) AS n FROM clicks GROUP BY 1"
    )
    clicks.append([{"url": "a"}, {"url": "b"}])
    db.refresh(timeout=120)
    before = rows(hours)
    db.maintain()
    clock.advance(timedelta(days=2))
    db.maintain()
    clicks.append({"url": "c"})
    db.refresh(timeout=120)
    assert len(rows(hours)) == 2
    assert before[0] in rows(hours)
    assert proved(db)


def test_only_a_query_that_names_it_has_it(db):
    db.stream("clicks", "url STRING")
    assert db.view("all_clicks", "SELECT * FROM clicks").columns.names == ["url"]
    with pytest.raises(Refused, match="system column"):
        db.view("stamped", "SELECT *, _ingested_at AS at FROM clicks")
    stamped = db.view("stamped", "SELECT * EXCEPT (_ingested_at), _ingested_at AS at FROM clicks")
    assert stamped.columns.names == ["url", "at"]

"""Retention and views: what the log forgets, views still count, or take back."""

from __future__ import annotations

from datetime import timedelta

import pytest

import evert
from evert.testing import ManualClock

QUERY = "SELECT url, count(*) AS n, sum(size) AS bytes FROM clicks GROUP BY url"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def opened(spark, tmp_path, clock):
    with evert.open(tmp_path / "db", background=False, clock=clock) as made:
        yield made


def clicks(db, **options):
    return db.stream("clicks", "url STRING, size INT, who STRING", retain="1 day", **options)


def fill(topic, who, urls):
    topic.append([{"url": url, "size": len(url), "who": who} for url in urls])


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def proved(db):
    return [(proof.view, proof.holds) for proof in db.prove() if not proof.holds] == []


def test_a_view_that_keeps_still_counts_what_is_gone_and_can_be_proved_and_rebuilt(opened, clock):
    topic = clicks(opened)
    view = opened.view("hits", QUERY)
    ranked = opened.view("ranked", "SELECT url, row_number() OVER (ORDER BY url) AS place FROM clicks")
    fill(topic, "a", ["/", "/cart", "/"])
    opened.refresh()
    opened.maintain()
    clock.advance(timedelta(days=2))
    fill(topic, "b", ["/"])
    opened.refresh()
    opened.maintain()
    assert sum(batch.num_rows for batch in topic.read()) == 1
    assert rows(view) == [("/", 3, 3), ("/cart", 1, 5)]
    assert proved(opened)
    fill(topic, "b", ["/new"])
    opened.refresh()
    assert rows(ranked) == [("/", 1), ("/", 2), ("/", 3), ("/cart", 4), ("/new", 5)]
    opened.view("hits", QUERY + " HAVING url <> '/new'", replace=True)
    opened.refresh()
    assert rows(view) == [("/", 3, 3), ("/cart", 1, 5)]
    later = opened.view("later", "SELECT who FROM clicks")
    opened.refresh()
    assert rows(later) == [("b",), ("b",)]
    assert proved(opened)


def test_a_base_holds_only_what_views_use(opened, clock):
    topic = clicks(opened)
    opened.view("hits", QUERY)
    fill(topic, "a", ["/"] * 50)
    opened.refresh()
    clock.advance(timedelta(days=2))
    opened.maintain()
    with opened.catalog.read() as tx:
        ((columns, count),) = tx.all("SELECT columns, rows FROM bases")
    assert (columns, count) == ('["url", "size"]', 1)
    assert proved(opened)


def test_a_view_that_forgets_takes_expired_events_back(opened, clock):
    topic = clicks(opened, views="forget")
    view = opened.view("hits", QUERY)
    total = opened.view("total", "SELECT sum(n) AS n FROM hits")
    fill(topic, "a", ["/", "/cart", "/"])
    opened.refresh()
    opened.maintain()
    clock.advance(timedelta(days=2))
    fill(topic, "b", ["/"])
    opened.refresh()
    assert rows(view) == [("/", 1, 1)]
    assert rows(total) == [(1,)]
    opened.maintain()
    assert sum(batch.num_rows for batch in topic.read(after=1)) == 1
    assert proved(opened)
    clock.advance(timedelta(days=2))
    opened.maintain()
    opened.refresh()
    assert rows(view) == []
    assert proved(opened)


def test_retention_waits_for_a_view_that_is_behind(opened, clock):
    topic = clicks(opened)
    view = opened.view("hits", QUERY)
    fill(topic, "a", ["/", "/cart"])
    clock.advance(timedelta(days=2))
    opened.maintain()
    opened.refresh()
    assert rows(view) == [("/", 1, 1), ("/cart", 1, 5)]
    assert proved(opened)

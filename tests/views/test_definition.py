"""Defining, replacing and dropping views, and what shares their names."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests.views.engine import COLUMNS, counted, weights

from evert.errors import BadName, BadOption, Refused, TopicExists, UnknownTopic, ViewExists
from evert.views import changes, definition
from evert.views.definition import Read


def find(db, name):
    with db.catalog.read() as tx:
        return definition.find(tx, name)


def everything(db):
    with db.catalog.read() as tx:
        return definition.all(tx)


def files(db, room):
    return sorted(path.name for path in (db.path / room).glob("*"))


def test_a_new_view_is_being_built_and_has_no_columns(db, engine):
    view = engine.define("Sold", "SELECT 1", key="shop", history="2 days", interval="1 minute")
    made = find(db, "sold")
    assert (made.name, made.state, made.position, made.columns) == ("Sold", "building", -1, None)
    assert (made.group, made.options.key, made.options.history) == ("default", ("shop",), 2 * 86_400_000_000)
    assert made.feed == made.id
    assert (view.query, view.key, view.group) == ("SELECT 1", None, "default")


def test_views_are_listed_in_the_order_of_their_definition(db, engine):
    for name in ("b", "c", "a"):
        engine.define(name)
    assert list(db.views) == ["b", "c", "a"]


def test_defining_the_same_view_again_is_fine_and_another_is_refused(db, engine):
    engine.define("sold", "SELECT 1", key=["shop"], group="g")
    engine.define("sold", "SELECT 1", key="shop", group="g")
    for query, options, what in (
        ("SELECT 2", {"key": "shop", "group": "g"}, "query"),
        ("SELECT 1", {"group": "g"}, "options"),
        ("SELECT 1", {"key": "shop"}, "options"),
        ("SELECT 1", {"key": "shop", "group": "g", "history": "1 day"}, "options"),
    ):
        with pytest.raises(ViewExists, match=f"the view sold exists with another {what}") as error:
            engine.define("sold", query, **options)
        assert "replace=True" in error.value.hint
    with pytest.raises(ViewExists, match="differs from the existing view sold in case only"):
        engine.define("SOLD", "SELECT 1", key="shop", group="g")
    assert len(everything(db)) == 1


def test_a_view_that_got_a_group_of_its_own_is_still_the_same(db, engine):
    engine.define("sold")
    db.catalog.write(lambda tx: tx.run("UPDATE views SET \"group\" = 'sold'"))
    engine.define("sold")
    assert find(db, "sold").group == "sold"


@pytest.mark.parametrize(("options", "error"), [({"key": []}, BadOption), ({"history": "soon"}, BadOption)])
def test_options_that_make_no_sense_are_refused(engine, options, error):
    with pytest.raises(error):
        engine.define("sold", **options)


def test_topics_and_views_share_their_names(db, engine):
    db.stream("clicks", "n INT")
    with pytest.raises(TopicExists, match="the stream clicks exists, so a view cannot be named Clicks"):
        engine.define("Clicks")
    engine.define("sold")
    with pytest.raises(ViewExists, match="the view sold exists, so a topic cannot be named SOLD"):
        db.table("SOLD", "n INT", key="n")
    with pytest.raises(BadName):
        engine.define("no name")
    db.drop("sold")
    db.stream("sold", "n INT")


def test_what_a_view_reads_cannot_be_dropped(db, engine):
    db.stream("clicks", "n INT")
    topic = db.definition("clicks")
    engine.define("sold")
    engine.plan("sold", reads=[Read("stream", topic.id, "clicks", 1)])
    engine.define("best")
    engine.plan("best", reads=[Read("view", find(db, "sold").id, "sold")])
    with pytest.raises(Refused, match="the stream clicks cannot be dropped: the view sold reads it") as error:
        db.drop("clicks")
    assert error.value.hint == "drop sold first"
    db.alter("clicks", "n INT, m INT", retain="1 day")
    with pytest.raises(Refused, match="the view sold cannot be dropped: the view best reads it"):
        db.drop("sold")
    for name in ("best", "sold", "clicks"):
        db.drop(name)
    assert (db.views, db.topics) == ({}, {})
    with pytest.raises(UnknownTopic):
        db.drop("sold")


def test_the_id_of_a_topic_is_not_taken_for_that_of_a_view(db, engine):
    db.stream("clicks", "n INT")
    sold = engine.define("sold").definition
    assert sold.id == db.definition("clicks").id
    engine.define("best")
    engine.plan("best", reads=[Read("view", sold.id, "sold")])
    db.drop("clicks")


def test_a_dropped_view_leaves_nothing(db, engine, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    monkeypatch.setattr(changes, "INLINE_BYTES", 0)
    engine.view("sold")
    engine.view("kept")
    engine.epoch(1, {"sold": {("a", 1): 1}, "kept": {("a", 1): 1}})
    db.maintain()
    assert len(files(db, "views")) == 2
    engine.define("sold", "SELECT 2", replace=True)
    engine.plan("sold", replacement=True)
    db.drop("sold")
    assert [view.name for view in everything(db)] == ["kept"]
    assert len(files(db, "views")) == 1
    assert len(files(db, "state")) == 1
    with db.catalog.read() as tx:
        for table, where in (("nodes", "view"), ("changes", "feed")):
            assert {row for (row,) in tx.all(f"SELECT {where} FROM {table}")} == {find(db, "kept").id}
        assert tx.all("SELECT file FROM garbage") == []
    assert db.views["kept"].count() == 1


def test_a_replacement_is_built_beside_and_may_be_changed_or_given_up(db, engine):
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    engine.define("sold", "SELECT 2", replace=True)
    old, new = everything(db)
    assert (new.replaces, new.current, new.state) == (old.id, False, "building")
    assert view.rows() == [{"shop": "a", "n": 1}]
    engine.define("sold", "SELECT 2", replace=True)
    assert everything(db)[1].id == new.id
    engine.define("sold", "SELECT 3", replace=True)
    assert [v.query for v in everything(db)] == ["SELECT 1", "SELECT 3"]
    engine.define("sold", "SELECT 1", replace=True)
    assert [v.query for v in everything(db)] == ["SELECT 1"]
    engine.define("sold", "SELECT 4", replace=True, hold=True)
    engine.define("sold", "SELECT 1", replace=True)
    assert [(v.query, v.held) for v in everything(db)] == [("SELECT 1", False), ("SELECT 4", True)]
    engine.define("sold", "SELECT 4", replace=True)
    assert not everything(db)[1].held


def switch(db, engine, position, columns=COLUMNS):
    """A replacement of `sold` that is ready, and has the row (b, 2)."""
    engine.define("sold", "SELECT 2", replace=True)
    new = engine.plan("sold", columns, replacement=True)
    row = ("b", 2, None)[: len(columns)]
    rows = pa.table([[value] for value in row], schema=columns)
    delta = changes.piece(rows.append_column("__w", pa.array([1])))

    def work(tx):
        changes.publish(tx, new.feed, 1, tx.now, [delta])
        return definition.switch(tx, new.id, position)

    return db.catalog.write(work)


def test_a_replacement_with_the_same_columns_goes_on_with_the_feed(db, engine):
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    engine.define("best")
    engine.plan("best", reads=[Read("view", find(db, "sold").id, "sold")])
    feed = view.changes(follow=True)
    assert weights(next(feed).rows) == {("a", 1): 1}
    made = switch(db, engine, 2)
    assert (made.name, made.feed, made.state, made.position, made.query) == ("sold", 1, "live", 2, "SELECT 2")
    assert find(db, "best").reads[0].id == made.id
    difference = pa.table([["a", "b"], [1, 2]], names=["shop", "n"]).append_column("__w", pa.array([-1, 1]))
    db.catalog.write(lambda tx: changes.publish(tx, made.feed, 2, tx.now, [changes.piece(difference)]))
    change = next(feed)
    assert (change.kind, change.position, weights(change.rows)) == ("delta", 2, {("a", 1): -1, ("b", 2): 1})
    assert counted(view.at(2).arrow()) == {("b", 2): 1}
    assert counted(view.at(1).arrow()) == {("a", 1): 1}


def test_a_replacement_with_other_columns_resets_whoever_followed(db, engine):
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    feed = view.changes(follow=True)
    next(feed)
    made = switch(db, engine, 2, pa.schema([*COLUMNS, ("more", pa.int64())]))
    assert made.feed == made.id
    assert [next(feed).kind for _ in range(2)] == ["reset", "snapshot"]
    assert [c.kind for c in view.changes(after=1)] == ["reset", "snapshot"]
    assert list(view.changes(after=2)) == []
    assert view.at(2).rows() == [{"shop": "b", "n": 2, "more": None}]
    with db.catalog.read() as tx:
        assert tx.all("SELECT DISTINCT feed FROM changes") == [(made.feed,)]


def test_resuming_wakes_those_that_stopped_with_the_view_but_not_above_one_that_is_stopped(db, engine):
    below = engine.view("below")
    above = engine.view("above")
    engine.plan_reads("above", [Read("view", find(db, "below").id, "below")])
    engine.stop("below")
    engine.stop("above")
    with pytest.raises(Refused, match="cannot go on while below, which it reads, is stopped"):
        above.resume()
    below.resume()
    assert (below.state, above.state) == ("resuming", "resuming")


def test_a_view_is_defined_by_a_query_or_a_function_with_or_without_options(db, monkeypatch):
    asked = []

    def define(wanted):
        asked.append((wanted.name, wanted.query, wanted.key))
        return SimpleNamespace(name=wanted.name)

    monkeypatch.setattr(db, "_running", SimpleNamespace(define=define))
    assert db.view("sold", "SELECT 1", key="shop").name == "sold"

    @db.view
    def plain(spark):
        return None

    @db.view(key="id")
    def keyed(spark):
        return None

    assert asked == [
        ("sold", "SELECT 1", "shop"),
        ("plain", plain.function, None),
        ("keyed", keyed.function, "id"),
    ]
    assert plain.function.__name__ == "plain"
    with pytest.raises(BadOption, match="the view sold needs a query"):
        db.view("sold", key="shop")

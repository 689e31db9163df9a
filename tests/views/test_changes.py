"""The changelog: what was published adds up, at every position, until it expires."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.engine import COLUMNS, Engine, counted, named, open_database, table_of, weights

from evert.catalog import SqliteCatalog
from evert.errors import Corrupt, Expired, Stopped
from evert.log.files import Files
from evert.testing import ManualClock
from evert.views import changes, definition, upkeep

FEED = 1
ROWS = st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2))
DELTAS = st.lists(st.dictionaries(ROWS, st.integers(-2, 3).filter(bool), max_size=4), max_size=8)


def piece(delta):
    return changes.piece(named(table_of(COLUMNS, delta), COLUMNS))


def content(catalog, folder, position):
    entries = changes.look_again(catalog, lambda tx: changes.entries_at(tx, folder, FEED, position))
    return weights(changes.consolidated(FEED, entries, COLUMNS))


@given(
    deltas=DELTAS,
    cuts=st.sets(st.integers(1, 8)),
    expire_at=st.integers(0, 9),
    inline=st.booleans(),
    part_bytes=st.sampled_from([1, 100, 1 << 20]),
)
@settings(max_examples=60, deadline=None)
def test_the_content_at_a_position_is_the_sum_of_what_was_published(
    deltas, cuts, expire_at, inline, part_bytes
):
    """Snapshots at any epochs and in any parts, and any end of history, change only how far back one can look."""
    clock = ManualClock()
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        catalog = SqliteCatalog(folder, clock=clock)
        files = Files(catalog, folder)
        patch.setattr(changes, "SNAPSHOT_ROWS", -1)
        patch.setattr(changes, "SNAPSHOT_BYTES", part_bytes)
        patch.setattr(changes, "INLINE_BYTES", 1 << 20 if inline else 0)
        expected, total = {}, Counter()
        for index, delta in enumerate(deltas, 1):
            position = 10 * index
            clock.advance(1)
            half = len(delta) // 2
            pieces = [piece(dict(list(delta.items())[:half])), piece(dict(list(delta.items())[half:]))]
            catalog.write(lambda tx, p=position, pieces=pieces: changes.publish(tx, FEED, p, tx.now, pieces))
            for row, weight in delta.items():
                total[row] += weight
            expected[position] = {row: weight for row, weight in total.items() if weight}
            if index in cuts:
                changes.snapshot(catalog, files, FEED, COLUMNS)
            if index == 3:  # somebody else was faster
                with pytest.MonkeyPatch.context() as late:
                    late.setattr(changes, "snapshot_due", changes.first)
                    with catalog.read() as tx:
                        there = tx.one("SELECT 1 FROM changes WHERE kind = 'snapshot'")
                    taken = changes.snapshot(catalog, files, FEED, COLUMNS)
                    assert (taken is None) == (there is not None)
            if index == expire_at:
                catalog.write(lambda tx: changes.expire(tx, FEED, tx.now))
                files.sweep()
        with catalog.read() as tx:
            begin = changes.first(tx, FEED)
        for position, rows in expected.items():
            if position >= begin:
                assert content(catalog, folder, position) == rows
                assert content(catalog, folder, position + 5) == rows
            else:
                with pytest.raises(Expired, match=f"the history begins at position {begin}"):
                    content(catalog, folder, position)
        with catalog.read() as tx:
            referred = {file for (file,) in tx.all("SELECT file FROM changes WHERE file IS NOT NULL")}
        assert {f"views/{path.name}" for path in (folder / "views").glob("*")} == referred
        catalog.close()


@given(deltas=DELTAS, start=st.integers(0, 8), at_once=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_whoever_follows_a_view_from_anywhere_ends_with_its_rows(deltas, start, at_once):
    """A reader that applies a snapshot, or what it had, and all changes after it, has what the view has."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("evert.views.feed.ROWS_AT_ONCE", at_once)
        with open_database(Path(name) / "db") as db:
            engine = Engine(db)
            view = engine.view("sold")
            held, mine, position = Counter(), {}, None
            for index, delta in enumerate(deltas, 1):
                if index == start:
                    (first,) = view.changes()
                    assert first.kind == "snapshot"
                    mine, position = weights(first.rows), first.position
                possible = {row: w for row, w in delta.items() if held[row] + w >= 0}
                held.update(possible)
                engine.epoch(index, {"sold": possible}, merge=index % 3 == 0)
            for change in view.changes(after=position):
                assert change.kind == ("snapshot" if position is None else "delta")
                assert change.position > (-1 if position is None else position)
                position = change.position
                for row, weight in weights(change.rows).items():
                    assert weight
                    mine[row] = mine.get(row, 0) + weight
            assert {row: w for row, w in mine.items() if w} == {row: w for row, w in held.items() if w}
            assert counted(view.arrow()) == {row: w for row, w in held.items() if w}
            assert list(view.changes(after=view.position)) == []


def test_a_view_that_has_a_column_named_like_the_weight_keeps_it(engine):
    columns = pa.schema([("__w", pa.int64()), ("_weight", pa.int64()), ("__h", pa.string())])
    view = engine.view("odd", columns=columns)
    engine.epoch(1, {"odd": {(7, 8, "x"): 2}})
    assert counted(view.arrow()) == {(7, 8, "x"): 2}
    assert view.at(1).rows() == view.rows() == [{"__w": 7, "_weight": 8, "__h": "x"}] * 2
    (change,) = view.changes()
    assert change.rows.column_names == ["__w", "_weight", "__h", "_weight"]


def test_a_feed_takes_no_epoch_twice(engine, db):
    view = engine.view("sold")
    engine.epoch(3, {"sold": {("a", 1): 1}})
    with pytest.raises(ValueError, match="has reached position 3"):
        engine.epoch(3, {"sold": {("a", 1): 1}})
    assert view.count() == 1


def test_pairs_that_cancel_are_not_told_and_progress_only_if_asked_for(engine):
    view = engine.view("sold")
    engine.epoch(2, {"sold": {("a", 1): 1}})
    engine.epoch(3, {"sold": {}})
    assert [(c.kind, c.position) for c in view.changes(after=0)] == [("delta", 2)]
    told = list(view.changes(after=0, progress=True))
    assert [(c.kind, c.position, c.rows.num_rows) for c in told] == [("delta", 2, 1), ("progress", 3, 0)]
    assert told[1].rows.schema == told[0].rows.schema


def test_a_position_that_history_has_lost_gives_a_reset_and_a_snapshot(db, engine, clock, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    view = engine.view("sold", history="1 hour")
    for position in (1, 2, 3):
        engine.epoch(position, {"sold": {("a", position): 1}})
    upkeep.keep(db.catalog, db.log)
    clock.advance("2 hours")
    engine.epoch(4, {"sold": {("a", 4): 1}})
    assert [c.position for c in view.changes(after=1)] == [2, 3, 4]
    upkeep.keep(db.catalog, db.log)
    assert [c.position for c in view.changes(after=3)] == [4]
    reset, snapshot = view.changes(after=2)
    assert (reset.kind, reset.rows.num_rows) == ("reset", 0)
    assert (snapshot.kind, snapshot.position, snapshot.rows.num_rows) == ("snapshot", 4, 4)
    with pytest.raises(Expired, match="the rows of sold at position 2 are not kept: its history begins at 3"):
        view.at(2)
    assert counted(view.at(3).arrow()) == {("a", 1): 1, ("a", 2): 1, ("a", 3): 1}


def test_history_without_bound_is_kept(db, engine, clock, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    view = engine.view("sold", history=None)
    for position in (1, 2, 3):
        engine.epoch(position, {"sold": {("a", position): 1}})
        clock.advance("400 days")
        upkeep.keep(db.catalog, db.log)
    assert view.at(1).rows() == [{"shop": "a", "n": 1}]
    assert view.at(0).rows() == []


def test_a_snapshot_is_taken_when_more_has_changed_than_it_would_hold(db, engine, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 5)
    view = engine.view("sold")

    def snapshots():
        upkeep.keep(db.catalog, db.log)
        with db.catalog.read() as tx:
            return [
                p for (p,) in tx.all("SELECT position FROM changes WHERE kind = 'snapshot' ORDER BY position")
            ]

    engine.epoch(1, {"sold": {("a", n): 1 for n in range(5)}})
    assert snapshots() == []
    engine.epoch(2, {"sold": {("b", n): 1 for n in range(5)}})
    assert snapshots() == [2]
    engine.epoch(3, {"sold": {("c", n): 1 for n in range(10)}})
    assert snapshots() == [2]
    engine.epoch(4, {"sold": {("d", 1): 1}})
    assert snapshots() == [2, 4]
    assert view.at(3).count() == 20


def test_the_position_of_the_past_is_the_last_epoch_before_it(engine, db):
    view = engine.view("sold")
    engine.epoch(10, {"sold": {("a", 1): 1}})
    engine.epoch(20, {"sold": {}})
    engine.epoch(30, {"sold": {("a", 1): -1, ("b", 2): 1}})
    assert [(p, view.at(p).position, view.at(p).rows()) for p in (0, 9, 10, 25, 31)] == [
        (0, 0, []),
        (9, 0, []),
        (10, 10, [{"shop": "a", "n": 1}]),
        (25, 20, [{"shop": "a", "n": 1}]),
        (31, 30, [{"shop": "b", "n": 2}]),
    ]


def test_the_past_can_be_read_in_all_ways(engine):
    view = engine.view("sold", key=["shop"])
    engine.epoch(1, {"sold": {("a", 1): 1, ("b", 2): 1, (None, 3): 1}})
    engine.epoch(2, {"sold": {("a", 1): -1}})
    past = view.at(1)
    assert past.count() == past.arrow().num_rows == 3
    assert past.get("a") == {"shop": "a", "n": 1}
    assert past.get(None) == {"shop": None, "n": 3}
    assert past.get("c") is None
    assert past.answer().position == 1
    assert past.answer().rows.schema == COLUMNS


def test_pieces_that_are_damaged_are_not_served(db, engine, monkeypatch):
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    engine.epoch(2, {"sold": {("b", 1): 1}})
    db.catalog.write(lambda tx: tx.run("UPDATE changes SET checksum = checksum + 1 WHERE position = 1"))
    with pytest.raises(Corrupt, match="damaged at position 1"):
        view.at(1).rows()
    with pytest.raises(Corrupt, match="damaged at position 1"):
        list(view.changes(after=0))
    assert [c.position for c in view.changes(after=1)] == [2]


def test_a_file_that_is_missing_is_damage_and_not_waited_for(db, engine, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    monkeypatch.setattr(changes, "INLINE_BYTES", 0)
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    upkeep.keep(db.catalog, db.log)
    engine.epoch(2, {"sold": {("a", 1): -1}})
    assert view.at(1).count() == 1
    (file,) = (db.path / "views").iterdir()
    file.unlink()
    with pytest.raises(Corrupt, match="is missing"):
        view.at(1).rows()


def test_following_waits_for_what_comes(engine):
    view = engine.view("sold")
    found = []

    def read():
        for change in view.changes(follow=True):
            found.append((change.kind, change.position, weights(change.rows)))
            if change.position == 2:
                return

    thread = threading.Thread(target=read)
    thread.start()
    engine.epoch(1, {"sold": {("a", 1): 1}})
    engine.epoch(2, {"sold": {("b", 1): 1}})
    thread.join(30)
    assert not thread.is_alive()
    rows = Counter()
    for _, _, delta in found:
        rows.update(delta)
    assert rows == {("a", 1): 1, ("b", 1): 1}
    assert list(view.changes(after=2, follow=True, timeout=0.05)) == []


def test_whoever_follows_a_view_that_stops_gets_all_up_to_there_and_then_the_error(engine):
    view = engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    engine.stop("sold")
    for follow in (False, True):
        feed = view.changes(after=0, follow=follow)
        assert next(feed).position == 1
        with pytest.raises(Stopped, match="stopped at 1"):
            next(feed)


def test_whoever_follows_a_view_that_is_dropped_is_told(db, engine):
    view = engine.view("sold")
    feed = view.changes(follow=True)
    assert next(feed).kind == "snapshot"
    db.drop("sold")
    with pytest.raises(Expired, match="the view sold was dropped while it was read"):
        next(feed)


@pytest.mark.parametrize("snapshot_after", [0, 2, 3])
def test_a_view_that_was_built_in_steps_begins_with_all_of_them_at_once(
    db, engine, monkeypatch, snapshot_after
):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    view = engine.define("sold")
    engine.plan("sold")
    for position in (1, 2, 3):
        engine.epoch(position, {"sold": {("a", position): 1}}, live=position == 3)
        if position == snapshot_after:
            assert changes.snapshot(db.catalog, db.log.files, view.definition.feed, COLUMNS) == position
    db.catalog.write(lambda tx: changes.begin(tx, definition.find(tx, "sold").feed, 3))
    assert [(c.kind, c.position) for c in view.changes(after=2)] == [("reset", 3), ("snapshot", 3)]
    assert view.at(3).count() == 3
    with pytest.raises(Expired):
        view.at(2)
    engine.epoch(4, {"sold": {("a", 3): -1}})
    assert [(c.kind, weights(c.rows)) for c in view.changes(after=3)] == [("delta", {("a", 3): -1})]
    assert view.at(4).count() == 2

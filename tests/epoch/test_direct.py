"""Workers read large ranges from the segments themselves: all rows of the range, once, however they are stored."""

from __future__ import annotations

import pytest

import evert
from evert.epoch import direct


@pytest.fixture
def ways(monkeypatch):
    """How many row groups each large range had, or None where Spark read it."""
    seen = []
    slices = direct.slices

    def noted(db, flow, topics):
        found = slices(db, flow, topics)
        if topics:
            seen.append(None if found is None else len(found[0]))
        return found

    monkeypatch.setattr(direct, "slices", noted)
    monkeypatch.setattr("evert.epoch.inputs.SMALL", 0)
    return seen


def proved(db):
    return all(proof.holds for proof in db.prove())


def rows(first, count):
    return [{"id": first + n, "kind": f"k{n % 3}", "n": None if n % 5 == 0 else n} for n in range(count)]


@pytest.mark.parametrize("partitions", [1, 3])
def test_segments_of_large_appends_and_of_many_small_ones_and_the_tail(spark, tmp_path, ways, partitions):
    options = {"background": False, "direct_rows": 50, "shards": 2}
    with evert.open(tmp_path / "db", **options) as db:
        events = db.stream("events", "id BIGINT, kind STRING, n INT", key="kind", partitions=partitions)
        table = db.table("things", "id BIGINT, kind STRING, n INT", key="id", partitions=partitions)
        db.view("all_of_it", "SELECT * FROM events", group="streams")
        db.view("counted", "SELECT count(*) AS c FROM events", group="streams")
        db.view("present", "SELECT kind, count(*) AS c, sum(n) AS s FROM things GROUP BY kind")
        for start in (0, 100):
            events.append(rows(start, 80))
            table.upsert(rows(start // 2, 80))
            for n in range(4):
                events.append(rows(start + 80 + n, 1))
                table.upsert(rows(n * 7, 3))
            db.log.keeper.seal("events")
            db.log.keeper.seal("things")
            events.append(rows(start + 90, 2))
            table.delete([{"id": start // 2 + 3}])
            db.refresh(timeout=120)
            assert proved(db)
        assert db.view("counted").rows() == [{"c": 172}]
        found = [way for way in ways if way is not None]
        assert max(found) >= 2
        assert partitions > 1 or len(found) == len(ways)


def test_a_range_that_begins_and_ends_within_a_segment(spark, tmp_path, ways, monkeypatch):
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 3)
    with evert.open(tmp_path / "db", background=False) as db:
        events = db.stream("events", "id BIGINT, kind STRING, n INT")
        for n in range(10):
            events.append(rows(n, 1))
        db.log.keeper.seal("events")
        view = db.view("all_of_it", "SELECT id FROM events WHERE n IS NULL OR n >= 0")
        db.refresh(timeout=120)
        assert sorted(row["id"] for row in view.rows()) == list(range(10))
        assert len(ways) > 2
        assert set(ways) == {1}


def test_text_that_repeats_in_one_segment_and_not_in_another(spark, tmp_path, ways):
    with evert.open(tmp_path / "db", background=False, direct_rows=50) as db:
        events = db.stream("events", "id BIGINT, kind STRING, n INT")
        for start in (0, 400):
            events.append(rows(start, 400))
        for start in (800, 1200):
            events.append([row | {"kind": f"a kind of its own {row['id']}"} for row in rows(start, 400)])
        db.view("per_kind", "SELECT kind, count(*) AS c FROM events GROUP BY kind", group="both")
        db.view("all_of_it", "SELECT kind, id FROM events", group="both")
        db.refresh(timeout=120)
        assert proved(db)
        assert ways == [4]


def test_what_spark_must_evaluate_or_convert_is_read_by_spark(spark, tmp_path, ways):
    with evert.open(tmp_path / "db", background=False, direct_rows=5) as db:
        events = db.stream("events", "id BIGINT, kind STRING, n INT")
        events.append(rows(0, 20))
        db.view("plain", "SELECT id, n FROM events")
        db.refresh(timeout=120)
        assert ways == [1]
        db.view("turned", "SELECT reverse(kind) AS kind FROM events")
        db.refresh(timeout=120)
        assert ways == [1, None]
        db.drop("turned")
        assert proved(db)


def test_a_column_that_came_later_is_null_before(spark, tmp_path, ways):
    with evert.open(tmp_path / "db", background=False, direct_rows=5) as db:
        events = db.stream("events", "id BIGINT, kind STRING, n INT")
        events.append(rows(0, 20))
        events.alter("id BIGINT, kind STRING, n BIGINT, more STRING")
        events.append([row | {"more": "x"} for row in rows(20, 20)])
        view = db.view("all_of_it", "SELECT id, n, more FROM events")
        db.refresh(timeout=120)
        assert view.count() == 40
        assert proved(db)
        assert ways == [None]

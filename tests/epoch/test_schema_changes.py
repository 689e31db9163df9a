"""Topics change under views: new columns do not reach them, widened ones make them be built anew."""

from __future__ import annotations

import pytest

import evert


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        yield made


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def test_a_view_of_all_columns_does_not_grow_with_its_topic(db):
    topic = db.table("users", "id INT, name STRING", key="id")
    view = db.view("everyone", "SELECT * FROM users")
    topic.upsert({"id": 1, "name": "a"})
    db.refresh()
    db.alter("users", schema="id INT, name STRING, age INT")
    topic.upsert({"id": 2, "name": "b", "age": 7})
    db.refresh()
    assert rows(view) == [(1, "a"), (2, "b")]
    assert all(proof.holds for proof in db.prove())


def test_a_view_of_a_widened_column_is_built_anew_and_its_readers_follow(db):
    topic = db.table("users", "id INT, points INT", key="id")
    view = db.view("scores", "SELECT id, points FROM users")
    total = db.view("total", "SELECT sum(points) AS points FROM scores")
    topic.upsert({"id": 1, "points": 5})
    db.refresh()
    db.alter("users", schema="id BIGINT, points BIGINT")
    topic.upsert({"id": 2**40, "points": 2**40})
    topic.upsert({"id": 1, "points": 6})
    db.refresh()
    db.refresh()
    assert rows(view) == [(1, 6), (2**40, 2**40)]
    assert rows(total) == [(2**40 + 6,)]
    topic.delete(1)
    db.refresh()
    assert rows(total) == [(2**40,)]
    assert all(proof.holds for proof in db.prove())

"""A run is torn or missing: nobody is served wrong rows, and the view is built anew from the log."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from tests.crash.views_faulty import summed
from tests.crash.views_workload import QUERIES, SETTINGS, check_answers, define, expected, make, write

import evert
from evert.doctor import examine_database


@pytest.fixture
def db(spark, tmp_path, chance):
    make(tmp_path / "db")
    with evert.open(tmp_path / "db", **SETTINGS) as made:
        define(made)
        for number in range(6):
            write(made, chance, number)
        made.refresh()
        yield made


@pytest.fixture
def chance():
    return random.Random(3)


def missing(path, at):
    path.unlink(missing_ok=True)


def torn(path, at):
    os.truncate(path, at)


def flipped(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


def runs_of(db, view, node):
    """The files of a view's runs, and where in them the middle of a run is."""
    which = "=" if node == "output" else "<>"
    sql = (
        "SELECT file, start + bytes / 2 FROM runs r JOIN nodes n ON r.node = n.state"
        f" JOIN views v ON v.id = n.view WHERE v.name = ? AND n.name {which} 'output' ORDER BY start DESC"
    )
    with db.catalog.read() as tx:
        return [(db.path / file, at) for file, at in tx.all(sql, view)]


def check(db):
    right = expected(db)
    for name, view in db.views.items():
        assert (view.state, view.error) == ("live", None)
        assert Counter(tuple(row.values()) for row in view.rows()) == right[name], name
        assert summed(view.changes(after=0)) == right[name], name
    check_answers(db.answers(list(QUERIES)))
    assert all(proof.holds for proof in db.prove())


@pytest.mark.parametrize(
    ("view", "node", "damage"),
    [
        ("joined", "inner", missing),
        ("joined", "output", torn),
        ("counted", "inner", flipped),
        ("grand", "output", missing),
    ],
)
def test_a_view_with_a_damaged_run_is_rebuilt_from_the_log(db, chance, view, node, damage):
    before = {name: db.view(name).rows() for name in QUERIES}
    feed = dict.fromkeys(QUERIES, db.position)
    for file, at in runs_of(db, view, node):
        damage(file, at)
    for name, rows in before.items():
        assert Counter(map(repr, db.view(name).rows())) == Counter(map(repr, rows)), (
            "the changelog has them too"
        )
    for number in range(6, 9):
        write(db, chance, number)
    told = []

    def on_epoch(done):
        told.append((db.view(view).state, str(db.view(view).error)))

    db.refresh(on_epoch=on_epoch)
    assert any(state == "stopped" and "being rebuilt" in error for state, error in told)
    check(db)
    for name, after in feed.items():
        kinds = {change.kind for change in db.view(name).changes(after=after)}
        assert kinds <= {"delta"}, "readers of its changes go on as if nothing had happened"
    write(db, chance, 9)
    db.refresh()
    check(db)
    assert [c for c in examine_database(db.path, deep=True) if c.level == "error"] == []


def test_a_view_that_is_damaged_while_it_is_built_begins_again(spark, tmp_path, chance, monkeypatch):
    make(tmp_path / "db")
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 30)
    with evert.open(tmp_path / "db", **SETTINGS) as db:
        for number in range(6):
            write(db, chance, number)
        define(db)
        damaged = []

        def on_epoch(done):
            if not damaged and done.position < db.position:
                damaged.extend(runs_of(db, "joined", "inner"))
                for file, at in damaged:
                    missing(file, at)

        db.refresh(on_epoch=on_epoch)
        assert damaged
        check(db)


def test_a_replacement_that_fails_when_it_takes_over_leaves_the_view_as_it_was(db, chance):
    query = "SELECT customer, count(*) AS n, sum({}) AS x FROM orders GROUP BY customer"
    ratios = db.view("ratios", query.format("amount div 1"))
    db.refresh()
    db.view("ratios", query.format("100 div (amount - 1000)"), replace=True)
    spoiled = []

    def on_epoch(done):
        if not spoiled and any(s.replacing and s.state == "live" for s in db.status()):
            spoiled.append(db.topic("orders").append({"id": 1, "customer": 1, "amount": 1000}))

    db.refresh(on_epoch=on_epoch)
    assert spoiled
    write(db, chance, 6)
    write(db, chance, 7)
    db.refresh()
    assert {view.position for view in db.views.values()} == {db.position}
    counted = {row["customer"]: row["n"] for row in db.view("counted").rows()}
    assert {row["customer"]: row["n"] for row in ratios.rows()} == counted
    assert all(proof.holds for proof in db.prove())


def test_a_view_replaced_twice_shows_no_changes_from_before_it_was_there(db, chance):
    """Its columns changed, so its feed is new; replaced again with the same columns, it goes on from there."""
    view = db.view("v", "SELECT customer FROM orders")
    db.refresh()
    db.view("v", "SELECT customer, amount FROM orders", replace=True)
    write(db, chance, 6)
    db.refresh()
    switched = db.position
    db.view("v", "SELECT customer, amount FROM orders WHERE amount IS NOT NULL", replace=True)
    write(db, chance, 7)
    db.refresh()
    assert [change.kind for change in view.changes(after=switched - 1)][:2] == ["reset", "snapshot"]
    assert {change.kind for change in view.changes(after=switched)} == {"delta"}

"""Files of state: many are announced by one prefix, and the sweep takes those that nothing refers to."""

from __future__ import annotations

import pytest
from tests.views.engine import Engine, open_database

from evert.errors import Fenced
from evert.log.files import LEASE, to_garbage
from evert.log.verify import verify
from evert.testing import ManualClock
from evert.views import changes
from evert.views.verify import verify as verify_views


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path, clock):
    with open_database(tmp_path / "db", clock=clock) as made:
        yield made


def write(db, *names):
    for name in names:
        (db.path / name).parent.mkdir(exist_ok=True)
        (db.path / name).write_bytes(b"x")


def there(db):
    return sorted(str(path.relative_to(db.path)) for path in (db.path / "state").glob("*"))


def refer(tx, file):
    tx.run(
        "INSERT INTO runs (node, trace, shard, file, start, bytes, rows, checksum)"
        " VALUES (0, 'rows', 0, ?, 0, 0, 0, 0)",
        file,
    )


def test_all_files_of_a_prefix_are_held_while_it_is_announced(db, clock):
    prefix = db.log.files.announce_prefix("state")
    assert prefix.endswith("-")
    write(db, f"{prefix}1", f"{prefix}2")
    clock.advance(LEASE / 1_000_000 - 1)
    assert db.log.files.sweep() == 0
    assert len(there(db)) == 2
    clock.advance(2)
    write(db, "state/other")
    db.log.files.sweep()
    assert there(db) == ["state/other"]
    with pytest.raises(Fenced):
        db.catalog.write(lambda tx: db.log.files.claim(tx, prefix))


def test_the_sweep_takes_of_a_prefix_only_what_nothing_refers_to(db):
    files = db.log.files
    prefix = files.announce_prefix("state")
    write(db, f"{prefix}1", f"{prefix}2", f"{prefix}3")

    def commit(tx):
        files.renew(tx, prefix)
        refer(tx, f"{prefix}1")
        changes.publish(tx, 9, 1, tx.now, [changes.Piece(1, 1, 0, file=f"{prefix}2")])
        to_garbage(tx, prefix)

    db.catalog.write(commit)
    files.sweep()
    assert there(db) == [f"{prefix}1", f"{prefix}2"]


@pytest.mark.parametrize("committed", [False, True])
def test_a_prefix_that_is_given_up_keeps_what_was_committed_after_all(db, committed):
    files = db.log.files
    prefix = files.announce_prefix("state")
    write(db, f"{prefix}1", f"{prefix}2")
    if committed:
        db.catalog.write(lambda tx: refer(tx, f"{prefix}1"))
    files.discard([prefix])
    assert there(db) == ([f"{prefix}1"] if committed else [])
    with db.catalog.read() as tx:
        assert tx.all("SELECT file FROM garbage UNION ALL SELECT file FROM announcements") == []


def test_a_file_of_several_runs_goes_with_the_last_of_them(db):
    engine = Engine(db)
    engine.view("one")
    engine.view("two")
    engine.epoch(1, {"one": {("a", 1): 1}, "two": {("a", 1): 1}})
    with db.catalog.read() as tx:
        (file,), *_ = tx.all("SELECT file FROM runs")
    db.catalog.write(lambda tx: tx.run("UPDATE runs SET file = ?", file))
    db.drop("one")
    assert file in there(db)
    db.drop("two")
    assert file not in there(db)


def test_the_doctor_knows_the_files_of_views(db):
    engine = Engine(db)
    engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    prefix = db.log.files.announce_prefix("state")
    write(db, f"{prefix}1")
    assert verify(db, deep=True) == []
    write(db, "state/stray", "views/stray.arrow")
    assert [problem.file for problem in verify(db)] == ["state/stray", "views/stray.arrow"]


@pytest.mark.parametrize("damage", ["missing", "short", "changed"])
@pytest.mark.parametrize("room", ["state", "views"])
def test_damage_to_the_files_of_a_view_is_found(db, monkeypatch, damage, room):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 0)
    monkeypatch.setattr(changes, "INLINE_BYTES", 0)
    engine = Engine(db, shards=1)
    engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    db.maintain()
    assert verify_views(db.catalog, db.path, deep=True) == []
    (path,) = (db.path / room).iterdir()
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "short":
        path.write_bytes(content[:-100])
    else:
        path.write_bytes(content[:-60] + b"!" + content[-59:])
        assert verify_views(db.catalog, db.path) == []
    (problem,) = verify_views(db.catalog, db.path, deep=damage == "changed")
    assert (problem.level, problem.file) == ("error", f"{room}/{path.name}")
    assert "sold" in problem.what
    assert "replace=True" in problem.hint


def test_damage_to_a_piece_in_the_catalog_is_found_by_looking_deep(db):
    engine = Engine(db)
    engine.view("sold")
    engine.epoch(1, {"sold": {("a", 1): 1}})
    db.catalog.write(lambda tx: tx.run("UPDATE changes SET checksum = checksum + 1 WHERE rows > 0"))
    assert verify_views(db.catalog, db.path) == []
    (problem,) = verify_views(db.catalog, db.path, deep=True)
    assert "the history of sold" in problem.what

"""Damage is noticed, named and never served."""

from __future__ import annotations

import random
import re
import shutil
import sqlite3

import pytest
from tests.log.logs import append, column, make_log, rows_of, upsert

import evert
from evert.catalog import SqliteCatalog
from evert.catalog.steps import STEPS
from evert.errors import Corrupt, FormatTooNew, NotADatabase
from evert.log.topic import define
from evert.testing import ManualClock


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "db"


@pytest.fixture
def log(folder):
    made, close = make_log("tiny", folder, ManualClock())
    made.create(define("clicks", "stream", "n BIGINT, url STRING"))
    yield made
    close()


def click(n):
    return {"n": n, "url": f"/{n}"}


def fresh(folder):
    """The same folder, opened by a process that has verified nothing yet."""
    return make_log("tiny", folder, ManualClock())


def damage_catalog(folder, sql, *values):
    with sqlite3.connect(folder / "catalog.sqlite") as connection:
        assert connection.execute(sql, values).rowcount == 1
    connection.close()


def test_any_changed_byte_of_a_segment_is_noticed_and_the_file_is_named(log, folder):
    append(log, "clicks", [click(n) for n in range(30)])
    (file,) = folder.rglob("*.parquet")
    content = file.read_bytes()
    chance = random.Random(7)
    for place in sorted(chance.sample(range(len(content)), 150)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x41]) + content[place + 1 :])
        again, close = fresh(folder)
        with pytest.raises(Corrupt) as raised:
            rows_of(again, "clicks")
        close()
        assert file.name in raised.value.message
        assert raised.value.details["topic"] == "clicks"
        assert raised.value.details["offset"] == 0


@pytest.mark.parametrize("left", [0, 1, 100, -1])
def test_a_segment_that_was_cut_is_noticed(log, folder, left):
    append(log, "clicks", [click(n) for n in range(30)])
    (file,) = folder.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:left])
    again, close = fresh(folder)
    with pytest.raises(Corrupt):
        rows_of(again, "clicks")
    close()


def test_a_segment_whose_file_is_missing_is_named(log, folder):
    append(log, "clicks", [click(n) for n in range(30)])
    (file,) = folder.rglob("*.parquet")
    file.unlink()
    with pytest.raises(Corrupt, match="missing"):
        rows_of(log, "clicks")


@pytest.mark.parametrize(
    "change",
    [
        "data = CAST(substr(data, 1, 200) || x'FF' || substr(data, 202) AS BLOB)",
        "at = at + 1",
        "rows = rows + 1",
        "spans = '[[0,1,4]]'",
        "spans = 'nonsense'",
        "schema = 2",
    ],
)
def test_a_changed_tail_entry_is_noticed_at_its_position(log, folder, change):
    append(log, "clicks", [click(1)])
    append(log, "clicks", [click(2), click(3)])
    if "schema" in change:
        log.alter("clicks", schema="n BIGINT, url STRING, x INT")
    damage_catalog(folder, f"UPDATE tail SET {change} WHERE position = 2")
    with pytest.raises(Corrupt) as raised:
        rows_of(log, "clicks")
    assert raised.value.details["position"] == 2
    assert column(log, "clicks", "n", upto=1) == [1]


def test_a_tail_entry_that_is_missing_leaves_a_gap_that_is_noticed(log, folder):
    for n in range(3):
        append(log, "clicks", [click(n)])
    damage_catalog(folder, "DELETE FROM tail WHERE position = 2")
    with pytest.raises(Corrupt, match="offsets 1 to 1 of partition 0 of clicks are missing"):
        rows_of(log, "clicks")


def test_a_first_entry_that_is_missing_is_noticed(log, folder):
    for n in range(3):
        append(log, "clicks", [click(n)])
    damage_catalog(folder, "DELETE FROM tail WHERE position = 1")
    with pytest.raises(Corrupt, match="missing"):
        rows_of(log, "clicks")


def test_a_changed_segment_row_is_noticed(log, folder):
    append(log, "clicks", [click(n) for n in range(30)])
    damage_catalog(folder, "UPDATE segments SET first_at = first_at - 1")
    with pytest.raises(Corrupt):
        rows_of(log, "clicks")


def test_sealing_does_not_launder_a_damaged_tail(log, folder):
    append(log, "clicks", [click(1)])
    damage_catalog(folder, "UPDATE tail SET at = at + 1")
    with pytest.raises(Corrupt):
        log.keeper.keep(seal_all=True)
    with pytest.raises(Corrupt):
        rows_of(log, "clicks")


def test_compaction_does_not_launder_a_damaged_segment(log, folder):
    log.create(define("users", "table", "id BIGINT", key="id"))
    upsert(log, "users", [{"id": n % 3} for n in range(30)])
    (file,) = folder.rglob("*.parquet")
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"!" + content[101:])
    again, close = fresh(folder)
    with pytest.raises(Corrupt):
        again.keeper.compact("users")
    close()


def test_commits_that_vanished_from_the_catalog_are_reported_at_opening(log, folder, tmp_path):
    append(log, "clicks", [click(1)])
    shutil.copytree(folder, tmp_path / "older")
    append(log, "clicks", [click(2)])
    restored = tmp_path / "restored"
    shutil.copytree(tmp_path / "older", restored)
    shutil.copy(folder / "head", restored / "head")
    with pytest.raises(Corrupt, match="had been acknowledged") as raised:
        SqliteCatalog(restored)
    assert "doctor" in raised.value.hint


def test_a_catalog_cut_in_the_middle_is_reported(log, folder, tmp_path):
    for n in range(40):
        append(log, "clicks", [{"n": n, "url": "x" * 500}])
    log._catalog.shrink()
    cut = tmp_path / "cut"
    shutil.copytree(folder, cut)
    file = cut / "catalog.sqlite"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    def use():
        again, close = fresh(cut)
        try:
            rows_of(again, "clicks")
        finally:
            close()

    with pytest.raises(Corrupt):
        use()


def test_a_folder_of_a_newer_version_is_refused(log, folder):
    with sqlite3.connect(folder / "catalog.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(FormatTooNew, match="format 99"):
        SqliteCatalog(folder)


def test_a_folder_of_an_older_version_is_migrated_with_its_rows(tmp_path):
    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("clicks", "n BIGINT").append([{"n": 1}])
    with sqlite3.connect(tmp_path / "db" / "catalog.sqlite") as connection:
        for table in re.findall(r"CREATE TABLE (\w+)", "".join(STEPS[1:])):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with evert.open(tmp_path / "db", background=False) as db:
        clicks = db.topics["clicks"]
        clicks.append([{"n": 2}])
        assert [n for batch in clicks.read() for n in batch.column("n").to_pylist()] == [1, 2]
        assert db.views == {}


def test_a_file_that_is_not_a_catalog_is_refused(tmp_path):
    (tmp_path / "catalog.sqlite").write_bytes(b"hello, this is no database at all" * 100)
    with pytest.raises(Corrupt):
        SqliteCatalog(tmp_path)


def test_another_programs_database_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "catalog.sqlite") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(NotADatabase):
        SqliteCatalog(tmp_path)


def test_a_folder_without_a_database_is_refused_when_it_is_not_to_be_made(tmp_path):
    with pytest.raises(NotADatabase) as raised:
        evert.open(tmp_path / "none", create=False)
    assert "evert init" in raised.value.hint
    assert not (tmp_path / "none").exists()

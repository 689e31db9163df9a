"""Larger tail entries in files of their own: read like others, gone when sealed, never lost."""

from __future__ import annotations

import os

import pytest

import evert
from evert.errors import Corrupt
from evert.log.files import LEASE


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "db"


@pytest.fixture
def db(folder, clock):
    with evert.open(folder, clock=clock, spill_bytes=1_000, background=False) as made:
        made.stream("t", "n INT, text STRING")
        yield made


def rows(n):
    return [{"n": n, "text": "x" * 500}] * 5


def spilled(folder):
    return sorted((folder / "tail").glob("*.arrow"))


def numbers(db, **options):
    return [n for batch in db.topic("t").read(**options) for n in batch.column("n").to_pylist()]


def test_small_and_larger_entries_are_read_in_one_order(db, folder):
    for n in range(6):
        db.topic("t").append(rows(n) if n % 2 else [{"n": n}])
    assert len(spilled(folder)) == 1
    assert numbers(db) == [0] + [1] * 5 + [2] + [3] * 5 + [4] + [5] * 5
    assert numbers(db, after=2, upto=4) == [2] + [3] * 5


def test_the_file_goes_when_its_rows_are_sealed_and_its_process_is_done_with_it(db, folder):
    db.topic("t").append(rows(1))
    db.log.keeper.seal("t")
    db.log.files.sweep()
    assert len(spilled(folder)) == 1
    db.maintain()
    assert spilled(folder) == []
    db.topic("t").append(rows(2))
    assert numbers(db) == [1] * 5 + [2] * 5


def test_closing_leaves_the_file_while_the_tail_refers_to_it(folder, clock):
    with evert.open(folder, clock=clock, spill_bytes=1_000, background=False) as db:
        db.stream("t", "n INT, text STRING").append(rows(1))
    clock.advance("1 day")
    with evert.open(folder, clock=clock, spill_bytes=1_000, background=False) as db:
        db.log.files.sweep()
        assert numbers(db) == [1] * 5
        db.maintain()
        assert spilled(folder) == []
        assert numbers(db) == [1] * 5


def test_a_writer_whose_announcement_was_revoked_goes_on_in_another_file(db, folder, clock):
    topic = db.topic("t")
    topic.append(rows(1))
    clock.advance(LEASE / 1_000_000 + 1)
    db.log.files.sweep()
    topic.append(rows(2))
    assert len(spilled(folder)) == 2
    assert numbers(db) == [1] * 5 + [2] * 5
    db.maintain()
    assert numbers(db) == [1] * 5 + [2] * 5


def test_the_file_of_a_writer_that_died_before_its_first_commit_is_swept(db, folder, clock):
    db.log._spill.write(b"never committed")
    db.log._spill.forget()
    clock.advance(LEASE / 1_000_000 + 1)
    db.log.files.sweep()
    assert spilled(folder) == []


def test_dropping_a_topic_lets_its_files_go(db, folder):
    db.topic("t").append(rows(1))
    db.log._spill.release()
    db.drop("t")
    assert spilled(folder) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_to_the_file_is_noticed(db, folder, damage):
    db.topic("t").append(rows(1))
    (file,) = spilled(folder)
    content = file.read_bytes()
    if damage == "flip":
        file.write_bytes(content[:900] + b"!" + content[901:])
    elif damage == "cut":
        os.truncate(file, 900)
    else:
        file.unlink()
    with pytest.raises(Corrupt) as raised:
        numbers(db)
    assert raised.value.details["topic"] == "t"


def test_a_forked_child_has_a_file_of_its_own(db, folder):
    topic = db.topic("t")
    topic.append(rows(1))
    child = os.fork()
    if child == 0:
        try:
            topic.append(rows(2))
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    topic.append(rows(3))
    assert len(spilled(folder)) == 2
    assert numbers(db) == [1] * 5 + [2] * 5 + [3] * 5

"""Announced files: what the sweep may take, and what it never takes."""

from __future__ import annotations

import pytest
from tests.log.logs import append, begin, column, make_log

from evert.errors import DiskFailed, Fenced
from evert.log import segments
from evert.log.files import LEASE
from evert.log.topic import define


@pytest.fixture
def log(tmp_path, clock):
    made, close = make_log("tiny", tmp_path / "db", clock)
    made.create(define("clicks", "stream", "n BIGINT"))
    yield made
    close()


def rows(count):
    return [{"n": n} for n in range(count)]


def files(log):
    return sorted(str(p.relative_to(log.files.folder)) for p in log.files.folder.rglob("*.parquet"))


def test_the_sweep_leaves_an_announced_file_alone_while_its_lease_lasts(log, clock):
    file = log.files.announce("log/1")
    log.files.path(file).write_bytes(b"half")
    clock.advance(LEASE / 1_000_000 - 1)
    assert log.files.sweep() == 0
    assert files(log) == [file]


def test_the_sweep_takes_the_file_of_a_writer_that_is_gone(log, clock):
    file = log.files.announce("log/1")
    log.files.path(file).write_bytes(b"half")
    clock.advance(LEASE / 1_000_000 + 1)
    assert log.files.sweep() == 1
    assert files(log) == []


@pytest.mark.parametrize("step", ["before writing", "before the commit"])
def test_a_writer_whose_file_was_swept_cannot_commit_and_can_append_again(log, clock, monkeypatch, step):
    def late(*_):
        clock.advance(LEASE / 1_000_000 + 1)
        log.files.sweep()

    if step == "before writing":
        announce = log.files.announce
        monkeypatch.setattr(log.files, "announce", lambda room: (announce(room), late())[0])
    else:
        sync = segments.sync
        monkeypatch.setattr(segments, "sync", lambda path: (sync(path), late())[0])
    with pytest.raises((Fenced, DiskFailed)):
        append(log, "clicks", rows(30))
    monkeypatch.undo()
    assert column(log, "clicks", "n") == []
    append(log, "clicks", rows(30))
    assert column(log, "clicks", "n") == list(range(30))
    assert len(files(log)) == 1


def test_a_commit_that_is_refused_leaves_no_file(log):
    seen = append(log, "clicks", rows(1))
    append(log, "clicks", rows(1))
    tx = begin(log)
    tx.append("clicks", rows(50))
    tx.require_unmoved("clicks", seen)
    with pytest.raises(Exception, match="moved"):
        tx.commit()
    assert files(log) == []


def test_sealing_leaves_only_the_files_that_the_catalog_knows(log):
    for _ in range(10):
        append(log, "clicks", rows(7))
    log.keeper.keep(seal_all=True)
    assert column(log, "clicks", "n") == list(range(7)) * 10
    log.drop("clicks")
    assert files(log) == []


def test_a_keeper_that_lost_its_lease_while_sealing_changes_nothing(log, clock, monkeypatch):
    append(log, "clicks", rows(5))
    sync = segments.sync

    def late(path):
        sync(path)
        monkeypatch.undo()
        clock.advance("2 minutes")
        other = type(log.keeper)(log._catalog, log.registry, log.files, log.reader, log._config)
        assert other.keep()

    monkeypatch.setattr(segments, "sync", late)
    with pytest.raises(Fenced):
        log.keeper.keep(seal_all=True)
    assert column(log, "clicks", "n") == list(range(5))
    log.keeper.keep(seal_all=True)
    assert len(files(log)) == 1

"""Only one runner commits: one that slept too long finds that another went on, and one that waits does not push."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from tests.crash.views_faulty import ViewServer
from tests.crash.views_workload import QUERIES, SETTINGS, check_answers, expected, make, write

import evert
from evert.epoch import runner


@pytest.fixture
def folder(tmp_path):
    make(tmp_path / "db")
    return tmp_path / "db"


@pytest.fixture
def server(tmp_path):
    made = ViewServer(tmp_path)
    yield made
    made.close()


@pytest.fixture
def chance():
    return random.Random(5)


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def asleep(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def token(db):
    with db.catalog.read() as tx:
        return tx.one("SELECT token, owner FROM leases WHERE name = ?", runner.LEASE)


def right(db):
    check_answers(db.answers(list(QUERIES)))
    rows = expected(db)
    return all(
        sorted(tuple(r.values()) for r in db.view(v).rows()) == sorted(rows[v].elements()) for v in rows
    )


@pytest.mark.timeout(300)
def test_a_runner_that_slept_through_its_lease_cannot_commit(spark, folder, server, chance):
    with evert.open(folder, **SETTINGS) as db:
        for number in range(12):
            write(db, chance, number)
        pid = server.start(folder, point="computed", nth=1, how=signal.SIGSTOP, seconds=240)
        until(lambda: asleep(pid))
        before = token(db)
        write(db, chance, 12)
        position = db.refresh(timeout=120)
        assert token(db)[0] > before[0], "the sleeper's lease was over, so another runner took it"
        assert right(db)
        with db.catalog.read() as tx:
            epochs = tx.all("SELECT * FROM epochs")
        os.kill(pid, signal.SIGCONT)
        time.sleep(1)
        with db.catalog.read() as tx:
            assert tx.all("SELECT * FROM epochs") == epochs, "the sleeper committed"
        assert db.view("grand").position == position
        last = db.topic("orders").append({"id": 1, "customer": 1, "amount": 1})
        db.view("grand").wait(last, timeout=60)
        assert token(db)[0] > before[0] + 1, "the sleeper waits for its turn, and gets it"
        assert right(db)
        os.kill(pid, signal.SIGKILL)
        server.end()


@pytest.mark.timeout(300)
def test_a_refresh_beside_a_runner_waits_for_it(spark, folder, server, chance):
    with evert.open(folder, **SETTINGS) as db:
        pid = server.start(folder, seconds=120)
        until(lambda: "grand" in db.views and db.view("grand").state == "live")
        before = token(db)
        for number in range(6):
            write(db, chance, number)
            position = db.refresh(timeout=60)
            assert db.view("grand").position >= position
        assert token(db) == before, "the runner has kept its lease"
        assert right(db)
        os.kill(pid, signal.SIGKILL)
        server.end()

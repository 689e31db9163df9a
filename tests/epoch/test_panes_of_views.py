"""Hopping windows over more rows than are put into windows one by one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.epoch.orders import right

import evert
from evert.delta.panes import common
from evert.epoch.job import Job

START = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
HOPPING = (
    "SELECT device, window.start AS begins, window.end AS ends, {}"
    " FROM readings GROUP BY device, window(at, {})"
)
VIEWS = {
    "counted": HOPPING.format("count(*) AS n", "'10 seconds', '2 seconds'"),
    "summed": HOPPING.format(
        "sum(value) AS total, max(value) AS most", "'1 minute', '20 seconds', '7 seconds'"
    ),
    "uneven": HOPPING.format("count(value) AS n", "'10 seconds', '3 seconds'"),
}


@pytest.fixture
def works(monkeypatch):
    """The works that workers do for the same port, of all jobs."""
    seen = []
    run = Job.run

    def noted(self, folder, epoch):
        ports = {}
        for _, edge in self._edges[1]:
            ports.setdefault((edge.node, edge.port), []).append(edge.work)
        seen.extend(tuple(port) for port in ports.values())
        return run(self, folder, epoch)

    monkeypatch.setattr(Job, "run", noted)
    return seen


def test_windows_are_right_over_a_stream(spark, tmp_path, works):
    chance = random.Random(1)
    with evert.open(tmp_path / "db", background=False) as db:
        readings = db.stream("readings", "device STRING, at TIMESTAMP, value BIGINT")
        for name, query in VIEWS.items():
            db.view(name, query)
        for count in (3000, 5, 2500):
            readings.append([reading(chance) for _ in range(count)])
            db.refresh(timeout=120)
            assert right(db)
    assert any(len(port) == 5 and common(port) is not None for port in works)


def test_windows_are_right_over_a_table(spark, tmp_path):
    chance = random.Random(2)
    with evert.open(tmp_path / "db", background=False) as db:
        readings = db.table("readings", "id BIGINT, device STRING, at TIMESTAMP, value BIGINT", key="id")
        for name, query in VIEWS.items():
            db.view(name, query)
        for _ in range(3):
            ids = chance.sample(range(4000), 3000)
            readings.upsert([reading(chance) | {"id": number} for number in ids])
            readings.delete(chance.sample(range(4000), 1500))
            db.refresh(timeout=120)
            assert right(db)


def reading(chance):
    at = None if chance.random() < 0.01 else START + timedelta(milliseconds=chance.randrange(120_000))
    return {"device": chance.choice(["a", "b", None]), "at": at, "value": chance.randrange(10)}

"""Workers evaluate what they can; where they fail, Spark has the last word."""

from __future__ import annotations

import pytest

import evert
from evert.epoch.job import Job


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        made.stream("numbers", "id INT, n INT")
        yield made


@pytest.fixture
def jobs(monkeypatch):
    """Whether workers evaluate something, of each job that is run."""
    seen = []
    run = Job.run

    def noted(self, folder, epoch):
        seen.append(self.inline)
        return run(self, folder, epoch)

    monkeypatch.setattr(Job, "run", noted)
    return seen


def test_an_error_in_a_branch_that_is_not_taken_is_none(db, jobs):
    view = db.view("parts", "SELECT id, CASE WHEN n <> 0 THEN 100 % n END AS part FROM numbers WHERE id > 0")
    db.topic("numbers").append([{"id": 1, "n": 7}, {"id": -1, "n": 0}])
    db.refresh(timeout=120)
    assert view.rows() == [{"id": 1, "part": 2}]
    assert jobs == [True]
    db.topic("numbers").append([{"id": 2, "n": 0}])
    db.refresh(timeout=120)
    assert sorted(row["id"] for row in view.rows()) == [1, 2]
    assert jobs == [True, True, False]
    db.topic("numbers").append([{"id": 3, "n": 0}])
    db.refresh(timeout=120)
    assert jobs == [True, True, False, False]  # from now on Spark is asked at once
    assert all(proof.holds for proof in db.prove())


def test_an_error_that_spark_finds_too_stops_the_view_in_its_words(db, jobs):
    view = db.view("sums", "SELECT id + n AS s FROM numbers")
    db.topic("numbers").append([{"id": 2**31 - 1, "n": 1}])
    db.refresh(timeout=120)
    assert view.state == "stopped"
    assert "overflow" in view.error["message"]


def test_after_a_row_that_fails_workers_go_on(db, jobs):
    table = db.table("rows", "id INT, n INT", key="id")
    view = db.view("sums", "SELECT id, n + 2000000000 AS s FROM rows")
    db.view("counts", "SELECT n, count(*) AS c FROM rows GROUP BY n")
    for value in (1, 2**31 - 1, 2, 3):
        table.upsert([{"id": 0, "n": value}])
        db.refresh(timeout=120)
    assert view.rows() == [{"id": 0, "s": 2000000003}]
    assert jobs[-1]


def test_what_only_spark_can_evaluate_goes_beside_what_workers_can(db, jobs):
    db.view("plain", "SELECT id % 3 AS kind, count(*) AS c FROM numbers GROUP BY 1")
    db.view("mixed", "SELECT upper(hex(n)) AS h, max(id) AS most FROM numbers WHERE n > 1 GROUP BY 1")
    db.view("spread", "SELECT id, e FROM numbers LATERAL VIEW explode(sequence(0, n)) AS e")
    for start in (0, 10, 20):
        db.topic("numbers").append([{"id": start + n, "n": n} for n in range(10)])
        db.refresh(timeout=120)
    assert all(proof.holds for proof in db.prove())
    assert all(jobs)

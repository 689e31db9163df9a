"""Every kernel runs once for each level, shard and epoch, whatever way the events come in."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from pyspark.sql import functions
from pyspark.sql.types import LongType

import evert
import evert.epoch.epoch


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """A file to which every kernel that runs adds its epoch, level and shard."""
    file = tmp_path / "ran"

    def kernel(batches, members, level, then, file):
        import os

        from pyspark import TaskContext

        from evert.epoch import worker

        task = TaskContext.get()
        line = f"{task.getLocalProperty(worker.EPOCH)} {level} {task.partitionId()}\n"
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(handle, line.encode())
        os.close(handle)
        yield from worker.kernel(batches, members, level, then)

    monkeypatch.setattr("evert.epoch.worker.kernel", partial(kernel, file=str(file)))
    return file


def twice(spark):
    double = functions.udf(lambda x: x * 2, LongType())
    return spark.table("totals").select(double("n").alias("twice"), "id")


@pytest.mark.parametrize("small", [0, 20_000])
def test_a_kernel_runs_once_a_level_shard_and_epoch(spark, tmp_path, counted, monkeypatch, small):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", small)
    receipts = []
    original = evert.epoch.epoch.commit

    def commit(tx, files, lease, work, outcome, *rest):
        receipts.append([(receipt.node, receipt.shard) for receipt in outcome.receipts])
        return original(tx, files, lease, work, outcome, *rest)

    monkeypatch.setattr("evert.epoch.epoch.commit", commit)
    with evert.open(tmp_path / "db", background=False, shards=2) as db:
        orders = db.stream("orders", "id BIGINT, customer BIGINT")
        db.table("customers", "id BIGINT, country STRING", key="id")
        db.topic("customers").upsert([{"id": n, "country": f"C{n % 3}"} for n in range(10)])
        db.view("joined", "SELECT o.id, country FROM orders o JOIN customers c ON customer = c.id")
        db.view("counted", "SELECT country, count(*) AS n FROM joined GROUP BY country")
        db.view("ranked", "SELECT id, row_number() OVER (ORDER BY id) AS place FROM orders")
        db.view("ranked_again", "SELECT id, rank() OVER (ORDER BY id) AS place FROM orders", refresh="full")
        db.view("totals", "SELECT id, count(*) OVER (PARTITION BY country) AS n FROM joined")
        db.view("medians", "SELECT country, median(id) AS m FROM joined GROUP BY country")
        db.view("spread", "SELECT n, stddev(m) AS s FROM totals JOIN medians ON n % 3 = m % 3 GROUP BY n")
        db.view("twice", twice)
        epochs = []
        for start in range(0, 40, 10):
            orders.append([{"id": n, "customer": n % 10} for n in range(start, start + 10)])
            db.refresh(on_epoch=epochs.append)
        assert sum(row["n"] for row in db.view("counted").rows()) == 40
        assert db.view("ranked").count() == db.view("ranked_again").count() == db.view("twice").count() == 40
        assert db.view("medians").count() == 3
        assert all(proof.holds for proof in db.prove())
    ran = Counter(tuple(line.split()) for line in counted.read_text().splitlines())
    assert set(ran.values()) == {1}
    assert len({epoch for epoch, _, _ in ran}) == len(epochs) == len(receipts)
    levels = {(epoch, level) for epoch, level, _ in ran}
    assert set(ran) == {(epoch, level, shard) for epoch, level in levels for shard in "01"}
    for received in receipts:
        assert received
        assert set(Counter(received).values()) == {1}

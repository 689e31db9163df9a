"""A million transfers between ten accounts, read while they arrive: no reader ever sees money made or lost.

In every version that any reader sees, all views are at one position, the balances sum up to 0, and credits and
debits both sum up to the transfers that the log has up to there.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import evert

ACCOUNTS = 10
TRANSFERS = 1_000_000
WRITERS = 2
VIEWS = {
    "credits": "SELECT receiver AS account, count(*) AS total FROM transfers GROUP BY receiver",
    "debits": "SELECT sender AS account, count(*) AS total FROM transfers GROUP BY sender",
    "balance": "SELECT c.account, c.total - d.total AS balance FROM credits c JOIN debits d USING (account)",
    "total": "SELECT sum(balance) AS total FROM balance",
}


def write(folder, seed):
    """One half of the transfers, out of order, in batches of 10,000 to 20,000."""
    chance = random.Random(seed)
    left = list(range(seed, TRANSFERS - ACCOUNTS, WRITERS))
    chance.shuffle(left)
    with evert.open(folder, background=False) as db:
        topic = db.topic("transfers")
        while left:
            size = chance.randint(10_000, 20_000)
            batch, left = left[:size], left[size:]
            sender = [chance.randrange(ACCOUNTS) for _ in batch]
            receiver = [chance.randrange(ACCOUNTS) for _ in batch]
            topic.append(pa.table({"id": batch, "sender": sender, "receiver": receiver}))


def read(folder, over, found):
    """Ask for all views again and again, and follow two of them; how many transfers each version counted."""
    seen, fed = {}, {name: Counter() for name in ("credits", "debits")}
    at = dict.fromkeys(fed)
    with evert.open(folder, background=False) as db:
        while True:
            last = over.is_set()
            answers = db.answers(list(VIEWS))
            (position,) = {answer.position for answer in answers.values()}
            sums = {
                name: pc.sum(answers[name].rows.column("total")).as_py() for name in ("credits", "debits")
            }
            assert sums["credits"] == sums["debits"], (position, sums)
            assert pc.sum(answers["balance"].rows.column("balance")).as_py() == 0
            assert answers["total"].rows.to_pylist() == [{"total": 0}]
            seen[position] = sums["credits"]
            for name in fed:
                for change in db.view(name).changes(after=at[name]):
                    at[name] = change.position
                    for row in change.rows.to_pylist():
                        fed[name][row["account"]] += row["total"] * row["_weight"]
                    whole = sum(fed[name].values())
                    assert seen.setdefault(change.position, whole) == whole, (name, change.position)
            if last:
                break
            time.sleep(0.01)
    found.put(seen)


@pytest.mark.timeout(300)
def test_every_version_that_any_reader_sees_balances(spark, tmp_path):
    folder = tmp_path / "db"
    processes = multiprocessing.get_context("spawn")
    over, found = processes.Event(), processes.Queue()
    with evert.open(folder, background=False) as db:
        db.stream("transfers", "id BIGINT, sender BIGINT, receiver BIGINT", partitions=2)
        ring = [{"id": -n, "sender": n, "receiver": (n + 1) % ACCOUNTS} for n in range(ACCOUNTS)]
        db.topic("transfers").append(ring)
        for name, query in VIEWS.items():
            db.view(name, query)
        db.refresh()
        writers = [processes.Process(target=write, args=(folder, seed)) for seed in range(WRITERS)]
        reader = processes.Process(target=read, args=(folder, over, found))
        for process in [*writers, reader]:
            process.start()
        stop, epochs = threading.Event(), []
        running = threading.Thread(target=db.run, kwargs={"stop": stop, "on_epoch": epochs.append})
        running.start()
        for writer in writers:
            writer.join()
        db.view("total").wait(db.position, timeout=200)
        over.set()
        seen = found.get(timeout=60)
        stop.set()
        for worker in (reader, running):
            worker.join()
        assert [process.exitcode for process in [*writers, reader]] == [0] * (WRITERS + 1)
        assert len(seen) >= min(3, len(epochs))
        assert seen[db.position] == TRANSFERS
        sizes = Counter()
        for batch in db.read(["transfers"], columns=["id"]):
            for position, count in Counter(batch.rows.column("_position").to_pylist()).items():
                sizes[position] += count
        for position, count in seen.items():
            assert count == sum(size for at, size in sizes.items() if at <= position)
        assert all(proof.holds for proof in db.prove())

"""Four producers and two consumer groups at full speed: nothing lost, nothing doubled, order kept."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

import evert

PRODUCER = """
import sys, time, evert
folder, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
with evert.open(folder, seal_entries=200, seal_rows=50_000) as db:
    topic = db.topics["facts"]
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        size = (1, 10, 1000)[n % 3]
        topic.append([{"who": name, "key": k % 50, "n": n} for k in range(size)])
        n += 1
print(n)
"""
CONSUMER = """
import sys, evert
from evert.errors import Fenced
folder, group, member = sys.argv[1:4]
with evert.open(folder) as db, db.consumer(group, "facts", member=member) as consumer:
    done = db.topics["done"]
    taken = 0
    while True:
        batches = consumer.poll(timeout=0.2)
        if not batches:
            if any(True for _ in done.read()) and not any(lag.events for lag in db.lag(group=group)):
                break
            continue
        tx = db.transaction()
        for batch in batches:
            seen = {}
            rows = batch.rows.select(["_partition", "_offset"]).to_pylist()
            for row in rows:
                seen.setdefault(row["_partition"], []).append(row["_offset"])
            for partition, offsets in seen.items():
                assert offsets == list(range(offsets[0], offsets[-1] + 1))
                place = {"group": group, "partition": partition}
                tx.append("seen", {**place, "first": offsets[0], "end": offsets[-1] + 1})
        consumer.commit(tx)
        try:
            tx.commit()
        except Fenced:
            continue
        taken += sum(batch.rows.num_rows for batch in batches)
print(taken)
"""


def start(source, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def finish(process):
    said, _ = process.communicate(timeout=900)
    assert process.returncode == 0
    return int(said)


@pytest.mark.parametrize("seconds", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_producers_and_groups_at_full_speed_lose_and_double_nothing(tmp_path, seconds):
    folder = tmp_path / "db"
    with evert.open(folder) as db:
        facts = db.stream("facts", "who STRING, key INT, n INT", key="key", partitions=4)
        db.stream("seen", "group STRING, partition INT, first BIGINT, `end` BIGINT")
        done = db.stream("done", "n INT")
        consumers = {
            group: [start(CONSUMER, folder, group, f"{group}-{i}") for i in range(2)]
            for group in ("left", "right")
        }
        producers = {f"p{i}": start(PRODUCER, folder, f"p{i}", seconds) for i in range(4)}
        appended = {name: finish(process) for name, process in producers.items()}
        done.append({"n": 0})
        taken = {group: sum(finish(process) for process in pair) for group, pair in consumers.items()}

        expected = Counter()
        for name, count in appended.items():
            for n in range(count):
                expected[(name, n)] = (1, 10, 1000)[n % 3]
        found, last, offsets = Counter(), {}, Counter()
        for batch in facts.read():
            for row in batch.to_pylist():
                found[(row["who"], row["n"])] += 1
                assert row["_offset"] == offsets[row["_partition"]]
                offsets[row["_partition"]] += 1
                assert last.get((row["who"], row["_partition"]), -1) <= row["n"]
                last[(row["who"], row["_partition"])] = row["n"]
        assert found == expected
        assert taken == dict.fromkeys(consumers, found.total())
        reached = Counter()
        for batch in db.topic("seen").read():
            for row in batch.to_pylist():
                place = (row["group"], row["partition"])
                assert row["first"] == reached[place], (
                    "a committed row was delivered twice, or one was skipped"
                )
                reached[place] = row["end"]
        assert reached == {(group, p): offsets[p] for group in consumers for p in offsets}
        if seconds >= 60:  # in less, one that starts late on a busy machine has no time to catch up
            assert min(appended.values()) * 8 > max(appended.values()), "a producer was starved"

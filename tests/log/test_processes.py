"""Several processes on one log: all make progress, nothing is lost, and readers wake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import evert

APPENDER = """
import sys, evert
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with evert.open(folder, seal_entries=40, seal_rows=200) as db:
    facts = db.topics["facts"]
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        position = facts.append([{"who": name, "n": n}] * (n % 3 + 1), producer=name, sequence=n)
        print(n, position, flush=True)
"""
FOLLOWER = """
import sys, time, evert
with evert.open(sys.argv[1]) as db:
    print("ready", flush=True)
    for batch in db.topics["facts"].read(follow=True, timeout=20):
        now = time.time()
        for sent in batch.column("sent").to_pylist():
            print(now - sent, flush=True)
            if sent < 0:
                sys.exit(0)
"""


@pytest.fixture
def folder(tmp_path):
    with evert.open(tmp_path / "db") as db:
        db.stream("facts", "who STRING, n INT, sent DOUBLE", key="who", partitions=3)
    return tmp_path / "db"


def start(source, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "ready"
    return process


def finish(process):
    said = process.stdout.read()
    process.wait(60)
    process.stdin.close()
    process.stdout.close()
    return said


def facts_of(folder):
    with evert.open(folder, background=False) as db:
        return [row for batch in db.topics["facts"].read() for row in batch.to_pylist()]


def check_order(rows):
    """Offsets without gaps in each partition, positions that never go back, each producer in its own order."""
    offsets = Counter()
    last = {}
    for row in rows:
        assert row["_offset"] == offsets[row["_partition"]]
        offsets[row["_partition"]] += 1
        assert last.get(row["who"], -1) <= row["n"]
        last[row["who"]] = row["n"]
    positions = [row["_position"] for row in rows]
    assert positions == sorted(positions)


def test_four_processes_append_at_once_and_none_is_starved(folder):
    count = 150
    processes = [start(APPENDER, folder, f"p{i}", count) for i in range(4)]
    for process in processes:
        print("go", file=process.stdin, flush=True)
    said = [finish(process) for process in processes]
    rows = facts_of(folder)
    check_order(rows)
    assert Counter((row["who"], row["n"]) for row in rows) == {
        (f"p{i}", n): n % 3 + 1 for i in range(4) for n in range(count)
    }
    middles = [int(lines.splitlines()[count // 2].split()[1]) for lines in said]
    assert min(middles) > count // 2
    assert max(middles) < 4 * count - count // 4


@pytest.mark.parametrize("rounds", [8, pytest.param(200, marks=pytest.mark.slow)])
def test_writers_and_sealers_killed_at_random_lose_nothing_acknowledged(folder, rounds):
    acknowledged: dict[str, int] = {}
    for round_ in range(rounds):
        names = [f"w{round_}-{i}" for i in range(2)]
        processes = [start(APPENDER, folder, name, 100_000) for name in names]
        for process in processes:
            print("go", file=process.stdin, flush=True)
        begun = [process.stdout.readline() for process in processes]
        time.sleep(0.1 + 0.05 * (round_ % 8))
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
        for name, process, first in zip(names, processes, begun, strict=True):
            whole = [line for line in (first + finish(process)).split("\n")[:-1] if line]
            acknowledged[name] = int(whole[-1].split()[0])
    rows = facts_of(folder)
    check_order(rows)
    there = Counter((row["who"], row["n"]) for row in rows)
    for name, last in acknowledged.items():
        for n in range(last + 1):
            assert there[(name, n)] == n % 3 + 1
        beyond = {n: c for (who, n), c in there.items() if who == name and n > last}
        assert beyond in ({}, {last + 1: (last + 1) % 3 + 1})
    assert sum(acknowledged.values()) > 100


def test_a_blocked_reader_wakes_soon_after_another_process_commits(folder):
    follower = start(FOLLOWER, folder)
    with evert.open(folder, background=False) as db:
        facts = db.topics["facts"]
        for n in range(50):
            facts.append([{"who": "x", "n": n, "sent": time.time()}])
            time.sleep(0.01)
        facts.append([{"who": "x", "n": 50, "sent": -1.0}])
    delays = sorted(map(float, finish(follower).split()))[:-1]
    assert len(delays) == 50
    assert delays[len(delays) // 2] < 3  # on a machine with other work; alone it is milliseconds


def test_a_waiting_reader_hardly_uses_the_processor(folder):
    with evert.open(folder, background=False) as db:
        before = time.process_time()
        db.log.wait(db.position, 1.0)
        assert time.process_time() - before < 0.2


def test_a_forked_child_has_its_own_connections(folder):
    with evert.open(folder, background=False) as db:
        facts = db.topics["facts"]
        facts.append([{"who": "parent", "n": 0}])
        child = os.fork()
        if child == 0:
            try:
                facts.append([{"who": "child", "n": 0}])
                os._exit(0)
            except BaseException:
                os._exit(1)
        facts.append([{"who": "parent", "n": 1}])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        facts.append([{"who": "parent", "n": 2}])
    assert Counter(row["who"] for row in facts_of(folder)) == {"parent": 3, "child": 1}


def test_a_handle_notices_that_its_topic_was_changed_or_made_anew_by_another(folder):
    with evert.open(folder, background=False) as mine, evert.open(folder, background=False) as other:
        facts = mine.topic("facts")
        facts.append({"who": "x", "n": 1})
        other.alter("facts", "who STRING, n BIGINT, sent DOUBLE, note STRING")
        facts.append({"who": "x", "n": 2**40, "note": "new"})
        other.drop("facts")
        other.stream("facts", "other INT")
        facts.append({"other": 5})
        assert [row["other"] for batch in facts.read() for row in batch.to_pylist()] == [5]


def test_rows_from_a_generator_are_appended_once_though_the_topic_changed(folder):
    with evert.open(folder, background=False) as mine, evert.open(folder, background=False) as other:
        facts = mine.topic("facts")
        facts.append({"who": "x", "n": 1})
        other.alter("facts", "who STRING, n BIGINT, sent DOUBLE")
        facts.append({"who": "x", "n": 2**40 + n} for n in range(3))
        assert [row["n"] for batch in facts.read() for row in batch.to_pylist()] == [
            1,
            2**40,
            2**40 + 1,
            2**40 + 2,
        ]

"""Runs views again and again, each time in a forked child that is killed somewhere; one JVM serves them all.

Started by `ViewServer`. Reads one JSON object a line, says the child's pid, and when it has ended its status. A
child that is killed leaves its Spark job running in the JVM, as a driver that dies does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from itertools import count
from pathlib import Path
from typing import Any

from tests.crash.views_workload import ANOTHER, QUERIES, SETTINGS, define, die_at, make, write, write_many

import evert
from evert.epoch import runner, schedule
from evert.epoch.spark import session
from evert.views import changes

LEASE_TIME = 1_000_000


def work(task: dict[str, Any]) -> None:
    """Keep the views up to date for a while; then, if asked, bring them to the head and prove them."""
    if task.get("point"):
        die_at(task["point"], task["nth"], task.get("how", signal.SIGKILL))
    if task.get("make"):
        make(Path(task["folder"]))
    with evert.open(Path(task["folder"]), **SETTINGS) as db:
        define(db)
        if task.get("replace"):
            now = db.view("counted").query
            query = ANOTHER if now == QUERIES["counted"] else QUERIES["counted"]
            db.view("counted", query, replace=True)
        if task.get("writes"):
            threading.Thread(target=write_on, args=(db, task["writes"]), daemon=True).start()
        db.run(seconds=task.get("seconds", 0))
        if task.get("finish"):
            db.refresh(timeout=200)
            proofs = db.prove()
            assert len(proofs) == len(QUERIES), list(db.status())
            for proof in proofs:
                assert proof.holds, (proof.view, proof.missing.to_pylist(), proof.unexpected.to_pylist())


def write_on(db: evert.Database, seed: int) -> None:
    chance = random.Random(seed)
    for number in count(seed * 1000):
        if number % 1000 == 4:
            write_many(db, number)
        write(db, chance, number)
        time.sleep(0.3)


def child(task: dict[str, Any]) -> None:
    said = Path(task["said"])

    def run() -> None:
        try:
            work(task)
        except BaseException:
            said.write_text(traceback.format_exc())
            os._exit(3)
        os._exit(0)

    thread = threading.Thread(target=run)  # a thread of its own has a connection of its own to the JVM
    thread.start()
    thread.join()


def main() -> None:
    runner.LEASE_TIME = LEASE_TIME
    schedule.KEEP_HOUSE = 0.5
    changes.SNAPSHOT_ROWS = 100
    session()
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

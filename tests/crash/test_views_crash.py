"""Whoever keeps the views dies, at every point of an epoch and at any time: nothing is lost, nothing is false.

A writer and a reader that checks every version are at work all the time. In `make test` there are twenty deaths:
a driver dies once at every named point (its Spark jobs go on without it) and eight times at random; once driver,
JVM and Python workers die together; and once the workers alone, whose epoch is run again. In `make soak`: 200
deaths. At the end every view is compared with plain Python, with plain Spark SQL over the log and with the changes
that readers got, and no file is left over.
"""

from __future__ import annotations

import os
import random
import signal
import time

import pytest
from tests.crash.views_faulty import Crowd, ViewServer, check_end
from tests.crash.views_workload import POINTS, make

TIME = 120.0
"""After so many seconds a child must have come to its point."""


def deaths(chance, points, anywhere, together):
    """What the children die of, one after the other."""
    planned = [(point, chance.randint(1, 2)) for point in points]
    planned += [("", 0)] * anywhere + [("everything", 0), ("workers", 0)] * together
    chance.shuffle(planned)
    return planned


def crash(tmp_path, seed, points, anywhere, together):
    chance = random.Random(seed)
    folder = tmp_path / "db"
    make(folder)
    server = ViewServer(tmp_path)
    try:
        with Crowd(folder, seed) as crowd:
            server.run(folder, seconds=3)
            for point, nth in deaths(chance, points, anywhere, together):
                replace = "switch" in point or "building" in point or chance.random() < 0.2
                if point in POINTS:
                    nth = 1 if replace else nth
                    died = server.run(folder, point=point, nth=nth, replace=replace, seconds=TIME)
                    assert died == -signal.SIGKILL, f"no child came to the point {point!r}"
                    continue
                seconds = 10 if point == "workers" else TIME
                pid = server.start(folder, replace=replace, seconds=seconds)
                time.sleep(chance.uniform(0.1, 3))
                if point == "workers":
                    for worker in server.members("pyspark.daemon"):
                        os.kill(worker, signal.SIGKILL)
                    assert server.end() == 0, "the driver outlives Spark's Python workers"
                elif point == "everything":
                    server.kill()
                    server = ViewServer(tmp_path)
                else:
                    os.kill(pid, signal.SIGKILL)
                    server.end()
        assert server.run(folder, finish=True) == 0
        assert len(crowd.seen) > 3
        check_end(folder, crowd)
    finally:
        server.close()


@pytest.mark.timeout(600)
def test_no_death_loses_or_falsifies_anything(tmp_path):
    crash(tmp_path, seed=1, points=POINTS, anywhere=5, together=1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_fifty_deaths_lose_and_falsify_nothing(tmp_path, seed):
    crash(tmp_path, seed=seed, points=3 * POINTS, anywhere=14, together=6)

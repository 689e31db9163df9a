"""Backfill: a new view over a long history, beside plain Spark SQL over the same log.

Events of Nexmark lie in the log, and one view is live. While the new view is built, another process appends a
signal every 100 ms and waits until the live view shows it: that is how far the other views lag behind meanwhile.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Event
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.beside import Beside
from bench.figures import Figures
from bench.memory import Watch
from bench.nexmark import UNIT, batch, fill

import evert
from evert.testing import nexmark

LIVE = "SELECT count(*) AS n, max(number) AS last FROM signals"
SPARK = "spark, all at once"
EVERY = 0.1


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--events", type=int, default=20_000_000)
    options.add_argument("--queries", nargs="*", default=["q1", "q4", "q17", "q18"])
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    with (
        Figures("backfill", chosen) as figures,
        tempfile.TemporaryDirectory() as folder,
        evert.open(Path(folder) / "backfill.evert") as db,
        Beside() as beside,
    ):
        fill(db, chosen.events, with_clicks=False)
        db.stream("signals", "number BIGINT")
        db.view("live", LIVE)
        db.refresh()
        for name in chosen.queries:
            fill_back(figures, beside, db, name, chosen.events, chosen.runs)
        ours, theirs = figures.of("evert"), figures.of(SPARK)
        ratios = [ours[name] / theirs[name] for name in chosen.queries]
        figures.say(
            f"against plain Spark: median {statistics.median(ratios):.2f} times, least {min(ratios):.2f}"
        )


def fill_back(
    figures: Figures, beside: Beside, db: evert.Database, name: str, events: int, runs: int
) -> None:
    """One query: a run of each system to warm up, then one of each in turn."""
    ours: list[float] = []
    theirs: list[float] = []
    lags: list[float] = []
    with Watch(without=[beside.number]) as memory:
        for _ in range(runs + 1):
            taken, behind = build(db, name)
            ours.append(taken)
            lags += behind
            theirs.append(beside.do(batch, db.path, name))
    right = beside.proves(db, name)
    db.drop(name)
    for system, times, correct, note in (("evert", ours, right, str(memory)), (SPARK, theirs, None, "")):
        figures.add(name, system, [events / taken / 1e3 for taken in times[1:]], UNIT, correct, note)
    figures.add(f"{name}, lag of the other view", "evert", lags, "ms")


def build(db: evert.Database, name: str) -> tuple[float, list[float]]:
    """Seconds from the log to the new view, and milliseconds from a signal to the live view meanwhile."""
    if name in db.views:
        db.drop(name)
    stop = threading.Event()
    context = multiprocessing.get_context("spawn")
    begins, over, lags = context.Event(), context.Event(), context.Queue()
    writer = context.Process(target=signal, args=(str(db.path), begins, over, lags))
    with ThreadPoolExecutor(1) as background:
        running = background.submit(db.run, stop=stop)
        try:
            writer.start()
            begins.wait()
            view = db.view(name, nexmark.QUERIES[name].sql)
            begun = time.perf_counter()
            view.wait(db.position, timeout=3600)
            taken = time.perf_counter() - begun
            over.set()
            return taken, lags.get(timeout=60)
        finally:
            over.set()
            writer.join()
            stop.set()
            running.result()


def signal(path: str, begins: Event, over: Event, lags: multiprocessing.Queue) -> None:
    """Append signals one by one until told to stop, and wait for each until the live view shows it."""
    found = []
    with evert.open(path) as db:
        number = 0
        begins.set()
        while not found or not over.is_set():
            begun = time.perf_counter()
            db.views["live"].wait(db.topic("signals").append({"number": number}), timeout=600)
            found.append((time.perf_counter() - begun) * 1e3)
            number += 1
            time.sleep(EVERY)
    lags.put(found)


if __name__ == "__main__":
    main()

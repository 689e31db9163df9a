"""How many events a second a store takes, from one or several processes or threads at the same time."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.nexmark_bids import bids
from bench.stores import Expected, Store, Writer

MOST_PREPARED = 500_000
PATIENCE = 300
CLOCK = time.monotonic


@dataclass
class Measured:
    """What one thread did, or all of them together; times are of the system-wide monotonic clock."""

    start: float
    end: float
    events: int
    stored: Expected = field(default_factory=Expected)

    @property
    def rate(self) -> float:
        return self.events / (self.end - self.start)


@dataclass(frozen=True)
class Load:
    """Each thread of each process appends batches, one acknowledged before the next, for some seconds."""

    batch: int
    seconds: float
    processes: int = 1
    threads: int = 1
    most_events: int = 50_000_000

    @property
    def most_batches(self) -> int:
        """Of each worker."""
        return self.most_events // self.batch // (self.processes * self.threads)

    def prepared(self, worker: int) -> Sequence[tuple[int, int]]:
        """The slices of the sequence of bids that a worker appends, over and over: (first, count)."""
        workers = self.processes * self.threads
        many = max(1, min(500, MOST_PREPARED // self.batch // workers, self.most_batches))
        return [(worker * 10**9 + n * self.batch, self.batch) for n in range(many)]


def measure(store: Store, load: Load) -> Measured:
    """Append with all workers at once, from a common start to the end of the slowest."""
    store.create()
    parts = _work(store, load, 0, None) if load.processes == 1 else _in_processes(store, load)
    whole = Measured(min(p.start for p in parts), max(p.end for p in parts), sum(p.events for p in parts))
    for part in parts:
        whole.stored.add(part.stored)
    return whole


def fill(store: Store, events: int) -> Expected:
    """Append so many bids, no two the same; the clock is not looked at."""
    store.create()
    (writer,) = store.writers(1)
    stored = Expected()
    for first in range(0, events, store.batch):
        batch = bids(first, min(store.batch, events - first))
        writer.append(store.inputs(batch))
        stored.events += batch.num_rows
        stored.price += int(batch["price"].to_numpy().sum())
        stored.last = batch.slice(batch.num_rows - 1).to_pylist()
    writer.close()
    stored.first = bids(0, 1).to_pylist()
    return stored


def _in_processes(store: Store, load: Load) -> list[Measured]:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(load.processes), context.Queue()
    workers = [
        context.Process(target=_worker, args=(store, load, number, barrier, results), daemon=True)
        for number in range(load.processes)
    ]
    for worker in workers:
        worker.start()
    parts: list[Measured] = []
    try:
        for _ in workers:
            got = results.get(timeout=PATIENCE)
            if isinstance(got, str):
                raise RuntimeError(got)
            parts += got
        for worker in workers:
            worker.join(PATIENCE)
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    return parts


def _worker(store: Store, load: Load, number: int, barrier: Any, results: Any) -> None:
    try:
        results.put(_work(store, load, number, barrier))
    except threading.BrokenBarrierError:
        raise
    except BaseException as failure:
        barrier.abort()
        results.put(f"worker {number} on {store.name}: {failure!r}")
        raise


def _work(store: Store, load: Load, number: int, barrier: Any) -> list[Measured]:
    """What one process does: prepare, warm up with one event a thread, wait for the others, append."""
    writers = store.writers(load.threads)
    workers = [number * load.threads + thread for thread in range(load.threads)]
    jobs = [_Job(store, load, writer, worker) for writer, worker in zip(writers, workers, strict=True)]
    if barrier is not None:
        barrier.wait(PATIENCE)
    parts = [jobs[0].run(None)] if len(jobs) == 1 else _in_threads(jobs)
    if barrier is not None:
        barrier.wait(PATIENCE)
    for writer in writers:
        writer.close()
    return parts


def _in_threads(jobs: list[_Job]) -> list[Measured]:
    gate = threading.Barrier(len(jobs))
    parts: list[Measured] = []
    threads = [threading.Thread(target=lambda job=job: parts.append(job.run(gate))) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(parts) != len(jobs):
        raise RuntimeError("a thread failed")
    return parts


class _Job:
    """One thread's share: its prepared rows and the writer they go to."""

    def __init__(self, store: Store, load: Load, writer: Writer, worker: int) -> None:
        batches = [bids(first, count) for first, count in load.prepared(worker)]
        warm = batches[0].slice(0, 1)
        self._append = writer.append
        self._inputs = [store.inputs(batch) for batch in batches]
        self._sums = [int(batch["price"].to_numpy().sum()) for batch in batches]
        self._last = [batch.slice(batch.num_rows - 1).to_pylist()[0] for batch in batches]
        self._load = load
        self._append(store.inputs(warm))
        row = warm.to_pylist()[0]
        self._stored = Expected(1, row["price"], [row], [row])

    def run(self, gate: threading.Barrier | None) -> Measured:
        append, inputs, batch = self._append, self._inputs, self._load.batch
        most = self._load.most_batches
        if gate is not None:
            gate.wait(PATIENCE)
        done = 0
        start = end = CLOCK()
        until = start + self._load.seconds
        while done == 0 or (end < until and done < most):
            append(inputs[done % len(inputs)])
            done += 1
            end = CLOCK()
        return Measured(start, end, done * batch, self._expected(done))

    def _expected(self, done: int) -> Expected:
        rounds, rest = divmod(done, len(self._inputs))
        price = rounds * sum(self._sums) + sum(self._sums[:rest])
        last = self._last[(done - 1) % len(self._inputs)]
        stored = self._stored
        return Expected(stored.events + done * self._load.batch, stored.price + price, stored.first, [last])

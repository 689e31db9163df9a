"""A reader in another process: how long after the append it sees an event, and what it costs while idle."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from typing import Any

import pyarrow as pa
from bench.nexmark_bids import bids
from bench.stores import Store, Writer

START, STOP = -1, -2
PATIENCE = 60


def latencies(store: Store, *, events: int, per_second: float) -> list[float]:
    """Milliseconds from before the append until the reader has it, for single events at a steady pace."""
    store.create()
    context = multiprocessing.get_context("spawn")
    ready, results = context.Event(), context.Queue()
    reader = context.Process(target=_note_times, args=(store, ready, results), daemon=True)
    reader.start()
    (writer,) = store.writers(1)
    try:
        _append(store, writer, START)
        _wait(ready, reader)
        sent = _send(writer, [_input(store, number) for number in range(events)], per_second)
        _append(store, writer, STOP)
        seen: dict[int, int] = results.get(timeout=PATIENCE)
    finally:
        writer.close()
        reader.kill()
        reader.join()
    if seen.keys() != set(range(events)):
        raise RuntimeError(f"the reader saw {len(seen)} of {events} events")
    return sorted((seen[number] - sent[number]) / 1e6 for number in range(events))


def idle_percent(store: Store, *, seconds: float) -> float:
    """The share of a core that a process uses which follows a store where nothing happens."""
    store.create()
    context = multiprocessing.get_context("spawn")
    ready, results = context.Event(), context.Queue()
    reader = context.Process(target=_idle, args=(store, ready, results, seconds), daemon=True)
    reader.start()
    (writer,) = store.writers(1)
    try:
        _append(store, writer, START)
        _wait(ready, reader)
        used: float = results.get(timeout=PATIENCE + seconds)
        ready.clear()
        _append(store, writer, START)
        _wait(ready, reader)
    finally:
        writer.close()
        reader.kill()
        reader.join()
    return used


def _wait(ready: Any, reader: Any) -> None:
    if not ready.wait(PATIENCE):
        raise RuntimeError(f"the reader saw nothing within {PATIENCE} s (exit code {reader.exitcode})")


def _send(writer: Writer, inputs: list[Any], per_second: float) -> list[int]:
    sent = []
    begin = time.monotonic()
    for number, rows in enumerate(inputs):
        time.sleep(max(0.0, begin + number / per_second - time.monotonic()))
        sent.append(time.monotonic_ns())
        writer.append(rows)
    return sent


def _input(store: Store, price: int) -> Any:
    batch = bids(abs(price), 1)
    return store.inputs(batch.set_column(2, batch.schema.field("price"), pa.array([price])))


def _append(store: Store, writer: Writer, price: int) -> None:
    writer.append(_input(store, price))


def _note_times(store: Store, ready: Any, results: Any) -> None:
    seen = {}
    for prices in store.follow():
        now = time.monotonic_ns()
        if START in prices:
            ready.set()
        seen.update((price, now) for price in prices if price >= 0)
        if STOP in prices:
            break
    results.put(seen)


def _idle(store: Store, ready: Any, results: Any, seconds: float) -> None:
    def follow() -> None:
        for _ in store.follow():
            ready.set()

    threading.Thread(target=follow, daemon=True).start()
    if not ready.wait(PATIENCE):
        os._exit(1)
    time.sleep(1)
    before = time.process_time()
    time.sleep(seconds)
    results.put(100 * (time.process_time() - before) / seconds)
    time.sleep(PATIENCE)

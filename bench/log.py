"""Measure Evert's log beside SQLite rows, JSON lines and Kafka, all of them durable before they acknowledge.

    python bench/log.py [--quick] [--json FILE] [--peers sqlite,jsonl,kafka] ...

Each line is the median of `--repeat` runs; the order of the systems turns with each run. After every run what
is stored is compared with what was appended, and a wrong result fails the program.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.appending import Load  # noqa: E402
from bench.evert_store import Evert, EvertDicts  # noqa: E402
from bench.kafka_store import Kafka  # noqa: E402
from bench.report import Report  # noqa: E402
from bench.spark_read import measure_spark  # noqa: E402
from bench.stores import Expected, JsonLines, SqliteRows, Store  # noqa: E402

from bench import appending, following, kafka_store, report  # noqa: E402

PEERS = ("sqlite", "jsonl", "kafka")
FILL_BATCH = 10_000
LATENCY_PER_SECOND = 200
PER_SECOND = "events/s"
T = TypeVar("T")


class Bench:
    """The settings, the stores to measure, and the cases."""

    def __init__(
        self, options: argparse.Namespace, folder: Path, kafka: str | None, peers: list[str]
    ) -> None:
        self.options = options
        self.report = Report()
        self._folder = folder
        self._kafka = kafka
        self._peers = peers
        self._numbers = itertools.count()

    def store(self, name: str, batch: int = FILL_BATCH) -> Store:
        """A new place for one system."""
        number = next(self._numbers)
        if name == "kafka":
            assert self._kafka is not None
            return Kafka(self._folder / "kafka", batch, self._kafka, f"bids-{number}")
        kinds: dict[str, type[Store]] = {
            kind.name: kind for kind in (Evert, EvertDicts, SqliteRows, JsonLines)
        }
        return kinds[name](self._folder / f"{name.replace(', ', '-')}-{number}", batch)

    def names(self, *wanted: str) -> list[str]:
        return [name for name in wanted if name not in PEERS or name in self._peers]

    def turns(self, names: list[str]) -> Iterator[str]:
        """Each system `--repeat` times, in turn forwards and backwards."""
        for turn in range(self.options.repeat):
            yield from names if turn % 2 == 0 else reversed(names)

    def run_all(self) -> None:
        for batch in self.options.batches:
            for processes in self.options.processes:
                load = Load(batch, self.options.seconds, processes, most_events=self.options.most_events)
                self.append(report.append_case(batch, processes), load)
            if batch == 1:
                threads = self.options.threads
                load = Load(1, self.options.seconds, threads=threads, most_events=self.options.most_events)
                self.append(report.threads_case(threads), load)
        self.read_and_size()
        self.latency()
        self.idle()

    def append(self, case: str, load: Load) -> None:
        runs: dict[str, list[tuple[float, bool]]] = {}
        for name in self.turns(self.names("evert", "evert, dicts", *PEERS)):
            store = self.store(name, load.batch)
            try:
                measured = appending.measure(store, load)
                runs.setdefault(name, []).append((measured.rate, store.holds(measured.stored)))
            finally:
                store.drop()
        for name, figures in sorted(runs.items(), key=lambda item: ("evert" not in item[0], item[0])):
            self.report.add(case, name, PER_SECOND, figures)

    def read_and_size(self) -> None:
        """One filling of each store serves the reading and the size."""
        stores = {name: self.store(name) for name in self.names(*PEERS)}
        evert_store = Evert(self._folder / "evert-read", FILL_BATCH, background=False)
        stores = {"evert": evert_store, **stores}
        try:
            filled = {name: appending.fill(store, self.options.events) for name, store in stores.items()}
            cases = {name: (report.READ, store) for name, store in stores.items() if name != "jsonl"}
            self._read({**cases, "evert": (report.READ_TAIL, evert_store)}, filled)
            evert_store.seal()
            self._read({"evert": (report.READ_SEGMENTS, evert_store)}, filled)
            measure_spark(self.report, evert_store, filled["evert"], self.options.repeat)
            for name, store in stores.items():
                size = store.disk_bytes() / filled[name].events
                self.report.add(report.BYTES, name, "bytes", [(size, store.holds(filled[name]))])
        finally:
            for store in stores.values():
                store.drop()

    def _read(self, cases: dict[str, tuple[str, Store]], filled: dict[str, Expected]) -> None:
        runs: dict[str, list[tuple[float, bool]]] = {}
        for name in self.turns(list(cases)):
            expected = filled[name].events
            begin = time.perf_counter()
            events = cases[name][1].read(expected)
            rate = events / (time.perf_counter() - begin)
            runs.setdefault(name, []).append((rate, events == expected))
        for name, (case, _) in cases.items():
            self.report.add(case, name, PER_SECOND, runs[name])

    def latency(self) -> None:
        events = self.options.latency_events
        runs: dict[str, list[list[float]]] = {}
        for name in self.turns(self.names("evert", "kafka")):
            taken = self._on_new_store(
                name, lambda store: following.latencies(store, events=events, per_second=LATENCY_PER_SECOND)
            )
            runs.setdefault(name, []).append(taken)
        for case, share in ((report.P50, 0.5), (report.P99, 0.99)):
            for name, taken in runs.items():
                figures = [(each[int(share * (len(each) - 1))], len(each) == events) for each in taken]
                self.report.add(case, name, "ms", figures)

    def idle(self) -> None:
        for name in self.names("evert", "kafka"):
            used = self._on_new_store(
                name, lambda store: following.idle_percent(store, seconds=self.options.idle_seconds)
            )
            self.report.add(report.IDLE, name, "%", [(used, True)])

    def _on_new_store(self, name: str, measure: Callable[[Store], T]) -> T:
        store = self.store(name, batch=1)
        try:
            return measure(store)
        finally:
            store.drop()


def main() -> int:
    options = parse(sys.argv[1:])
    # So that the broker is stopped and the folder removed when this process is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=options.folder, prefix="log-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        machine = report.machine(folder)
        print(", ".join(f"{name} {value}" for name, value in machine.items()))
        peers, address = list(options.peers), None
        if "kafka" in peers:
            reason = kafka_store.available()
            if reason is None:
                broker = kafka_store.start(folder / "kafka", seconds=options.warm_up)
                stack.callback(broker.stop)
                address = broker.address
            else:
                peers.remove("kafka")
                print(f"kafka is not measured: {reason}")
        bench = Bench(options, folder, address, peers)
        bench.run_all()
    aims = report.aims(options.processes, options.threads)
    print("\nTo be reached")
    for aim in aims:
        print(aim.line(bench.report))
    if options.json:
        options.json.write_text(json.dumps(bench.report.as_dict(machine, aims), indent=1) + "\n")
    if not bench.report.correct:
        print("some results are wrong")
    return 0 if bench.report.correct else 1


def parse(arguments: list[str]) -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    def names(text: str) -> list[str]:
        chosen = [part for part in text.split(",") if part]
        for name in chosen:
            if name not in PEERS:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PEERS)}")
        return chosen

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=2_000_000, help="events in the reading and size cases")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each appending run takes")
    parser.add_argument("--batches", type=numbers, default=[1, 100, 10_000, 500_000])
    parser.add_argument("--processes", type=numbers, default=[1, 4])
    parser.add_argument("--threads", type=int, default=8, help="threads that append single events at once")
    parser.add_argument("--peers", type=names, default=list(PEERS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="where the stores lie")
    parser.add_argument("--quick", action="store_true", help="tiny counts: does it work at all?")
    options = parser.parse_args(arguments)
    options.most_events, options.latency_events = 50_000_000, 1000
    options.idle_seconds, options.warm_up = 5.0, 6.0
    if options.quick:
        options.events, options.seconds, options.repeat, options.threads = 30_000, 0.1, 1, 4
        options.batches, options.processes = [1, 10_000], [1, 2]
        options.most_events, options.latency_events = 120_000, 40
        options.idle_seconds, options.warm_up = 0.5, 0.5
    return options


if __name__ == "__main__":
    sys.exit(main())

"""Nexmark: events a second through each query's view, beside Spark and Flink on the same files.

The events lie in the log before the clock starts, all of them in segments; the peers read these very files.
Query by query each system has its turn, in an order that turns round with each query, and runs a query once
before its runs are counted. Evert commits each epoch durably and ends in its view, which is compared with what
Spark SQL makes of the whole log. Flink's changes are thrown away, those of stateless queries are written as
Parquet. A peer's run is stopped when it takes too long, and counts as if it had been done then. Peers: `batch`,
plain Spark that computes the whole at once and keeps nothing; `spark`, Structured Streaming; `heap` and
`rocksdb`, Flink with its state there, `flink` both. The query `clicks` is not of Nexmark: a join of two streams
within an hour (`bench/clicks.py`), over as many events.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.beside import Beside
from bench.figures import Figures
from bench.memory import Watch

import evert
from bench import clicks, flink, streaming
from evert.epoch import schedule
from evert.epoch.spark import read_topic, session
from evert.log.segments import segments
from evert.log.topic import LATE
from evert.testing import nexmark

STATEFUL = [*(f"q{n}" for n in (4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17, 18, 19, 20)), clicks.QUERY.name]
STATELESS = [f"q{n}" for n in (0, 1, 2, 10, 14, 21, 22)]
CHUNK = 500_000
UNIT = "thousand events/s"
STREAMING = "spark streaming"
QUERIES = {**nexmark.QUERIES, clicks.QUERY.name: clicks.QUERY}


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--epoch", type=int, nargs="*", default=[50_000, 500_000, 1_000_000])
    options.add_argument("--queries", nargs="*", default=STATEFUL + STATELESS)
    options.add_argument("--peers", type=lambda text: text.split(","), default=["batch"])
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--patience", type=float, default=60, help="seconds for a peer's run")
    chosen = options.parse_args()
    with (
        Figures("nexmark", chosen) as figures,
        tempfile.TemporaryDirectory() as folder,
        evert.open(Path(folder) / "nexmark.evert") as db,
        Beside() as beside,
        ExitStack() as sessions,
    ):
        bench = Bench(figures, beside, chosen.events, chosen.runs, chosen.patience)
        with_clicks = clicks.QUERY.name in chosen.queries
        fill(db, chosen.events, with_clicks=with_clicks, chunk=min(CHUNK, *chosen.epoch))
        files = linked(db, Path(folder) / "files")
        systems: list[Callable[[str], None]] = [
            partial(evert_line, bench, db, epoch=size) for size in chosen.epoch
        ]
        systems += [partial(PEERS[peer], bench, db, files) for peer in chosen.peers if peer in PEERS]
        systems += [
            partial(flink_line, bench, session) for session in flinks(bench, files, chosen.peers, sessions)
        ]
        for number, name in enumerate(chosen.queries):
            for system in systems if number % 2 else systems[::-1]:
                system(name)
        for size in chosen.epoch:
            bench.compare(f"evert, {size:,} an epoch")


class Bench:
    """The runs of each case, and the rates that they come to."""

    def __init__(self, figures: Figures, beside: Beside, events: int, runs: int, patience: float) -> None:
        self.figures = figures
        self.beside = beside
        self.events = events
        self.runs = runs
        self.patience = patience
        self.others = [beside.number]
        """The processes whose memory is not Evert's."""

    def timed(self, work: Callable[[], float]) -> list[float]:
        """The seconds of each run but the first, which warms up."""
        return [work() for _ in range(self.runs + 1)][1:]

    def add(self, name: str, system: str, times: list[float], right: bool | None, note: str = "") -> None:
        self.figures.add(name, system, [self.events / taken / 1e3 for taken in times], UNIT, right, note)

    def peer(self, name: str, system: str, found: list[float] | str, note: str = "") -> None:
        """The seconds of a peer's runs, or why there are none."""
        if isinstance(found, str):
            self.figures.skip(name, system, found.strip().splitlines()[-1])
        elif found[-1] >= self.patience:
            stopped = f"  stopped after {self.patience:g} s: fewer than this"
            self.add(name, system, [self.patience], None, note + stopped)
        else:
            self.add(name, system, found, None, note)

    def compare(self, mine: str) -> None:
        """How often as fast as each peer Evert is, over the queries that both ran."""
        ours = self.figures.of(mine)
        for peer in dict.fromkeys(figure.system for figure in self.figures.found):
            for kind, names in (("stateful", STATEFUL), ("stateless", STATELESS)):
                theirs = self.figures.of(peer)
                both = [name for name in names if name in ours and name in theirs]
                times = [ours[name] / theirs[name] for name in both]
                if times and not peer.startswith("evert"):
                    self.figures.say(
                        f"{mine} against {peer}, {kind}: median {statistics.median(times):.2f} times,"
                        f" least {min(times):.2f} ({both[times.index(min(times))]})"
                    )


def flinks(bench: Bench, files: Path, peers: Sequence[str], sessions: ExitStack) -> list[flink.Flink]:
    """A session of Flink for each place of its state that is asked for, if it is to be had."""
    states = [state for state in flink.STATES if {state, "flink"} & set(peers)]
    if states and (why := flink.available()) is not None:
        bench.figures.skip("all", "flink", why)
        return []
    found = [
        sessions.enter_context(flink.Flink(files, state=state, written=STATELESS, patience=bench.patience))
        for state in states
    ]
    bench.others += [session.process for session in found]
    return found


def fill(db: evert.Database, events: int, *, with_clicks: bool, chunk: int = CHUNK) -> None:
    """The log of so many events, a commit for each topic and chunk, all of it in segments.

    An epoch ends with a commit, so chunks must not be larger than epochs are to be.
    """
    for name, schema in nexmark.SCHEMAS.items():
        db.stream(name, schema)
    for name, schema in clicks.SCHEMAS.items() if with_clicks else ():
        db.stream(name, schema, **clicks.OPTIONS)
    for first in range(0, events, chunk):
        count = min(chunk, events - first)
        made = nexmark.events(first, count).tables()
        made |= clicks.tables(first, count) if with_clicks else {}
        for name, rows in made.items():
            db.topic(name).append(rows)
    db.maintain()


def linked(db: evert.Database, folder: Path) -> Path:
    """A folder for each topic, with its segments as files."""
    for name in db.topics:
        if name.endswith(LATE):
            continue
        place = folder / name
        place.mkdir(parents=True)
        with db.catalog.read() as tx:
            there = segments(tx, db.definition(name), after=0, upto=db.position)
        for number, segment in enumerate(there):
            (place / f"{number:06}.parquet").hardlink_to(db.path / segment.file)
    return folder


def evert_line(bench: Bench, db: evert.Database, name: str, *, epoch: int) -> None:
    schedule.MOST_EVENTS = epoch
    try:
        with Watch(without=bench.others) as memory:
            times = bench.timed(lambda: build(db, name))
    except RuntimeError as error:
        bench.figures.skip(name, f"evert, {epoch:,} an epoch", str(error))
        return
    right = bench.beside.proves(db, name)
    db.drop(name)
    bench.add(name, f"evert, {epoch:,} an epoch", times, right, peak(memory))


def peak(memory: Watch) -> str:
    return f"peak of {memory}"


def build(db: evert.Database, name: str) -> float:
    """Seconds from the log to the view."""
    if name in db.views:
        db.drop(name)
    db.view(name, QUERIES[name].sql)
    begun = time.perf_counter()
    db.refresh(timeout=3600)
    taken = time.perf_counter() - begun
    for view in db.status():
        if view.error is not None:
            raise RuntimeError(f"the view stopped: {view.error['message']}")
    return taken


def batch_line(bench: Bench, db: evert.Database, files: Path, name: str) -> None:
    bench.peer(name, "spark, all at once", bench.timed(lambda: bench.beside.do(batch, db.path, name)))


def streaming_line(bench: Bench, db: evert.Database, files: Path, name: str) -> None:
    query = QUERIES[name]
    written, patience = name in STATELESS, bench.patience
    work = partial(streaming.seconds, files, query.reads, query.sql, written=written, patience=patience)
    times: list[float] = []
    while len(times) <= bench.runs and not (len(times) > 1 and times[-1] >= bench.patience):
        taken = bench.beside.do(work)
        if isinstance(taken, str):
            bench.peer(name, STREAMING, taken)
            return
        times.append(taken)
    bench.peer(name, STREAMING, times[1:])


def flink_line(bench: Bench, session: flink.Flink, name: str) -> None:
    with Watch(session.process) as memory:
        found = session.seconds(name, bench.runs)
    bench.peer(name, f"flink, {session.state}", found, peak(memory))


def batch(path: Path, name: str) -> float:
    """Seconds that plain Spark takes for a query over the whole log, its rows thrown away."""
    spark, query = session(), QUERIES[name]
    with evert.open(path) as db:
        for topic in query.reads:
            read_topic(spark, db, topic).createOrReplaceTempView(topic)
    begun = time.perf_counter()
    spark.sql(query.sql).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


PEERS = {"batch": batch_line, "spark": streaming_line}


if __name__ == "__main__":
    main()

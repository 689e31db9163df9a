"""Figures: one line for each case and system, and at the end how they compare with what is to be reached."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """The median of a case's runs on one system, and whether all of them ended with the right content."""

    case: str
    system: str
    value: float | None
    unit: str
    correct: bool
    runs: tuple[float, ...] = ()
    note: str = ""

    def line(self) -> str:
        value = "-" if self.value is None else shown(self.value)
        spread = ""
        if len(self.runs) > 1:
            spread = f" ({shown(min(self.runs))} to {shown(max(self.runs))})"
        note = f"  {self.note}" if self.note else ""
        wrong = "" if self.correct else "  WRONG RESULT"
        return f"{self.case:44} {self.system:14} {value:>11} {self.unit}{spread}{note}{wrong}"


@dataclass
class Report:
    """The figures so far. Each is printed when it is known."""

    figures: list[Figure] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(
        self, case: str, system: str, unit: str, runs: Iterable[tuple[float, bool]], note: str = ""
    ) -> None:
        values, right = zip(*runs, strict=True)
        figure = Figure(case, system, statistics.median(values), unit, all(right), values, note)
        self.figures.append(figure)
        print(figure.line(), flush=True)

    def skip(self, case: str, system: str, reason: str) -> None:
        self.skipped.append(f"{case}, {system}: {reason}")
        print(f"{case:44} {system:14} skipped: {reason}", flush=True)

    def value(self, case: str, system: str) -> float | None:
        for figure in self.figures:
            if (figure.case, figure.system) == (case, system):
                return figure.value
        return None

    @property
    def correct(self) -> bool:
        return all(figure.correct for figure in self.figures)

    def as_dict(self, machine: dict[str, Any], aims: list[Aim]) -> dict[str, Any]:
        return {
            "machine": machine,
            "figures": [asdict(figure) for figure in self.figures],
            "skipped": self.skipped,
            "aims": [{"aim": aim.text, **aim.judge(self)} for aim in aims],
        }


@dataclass(frozen=True)
class Aim:
    """Something to reach: a comparison of Evert's figure with a peer's, or with a fixed bound."""

    text: str
    case: str
    compare: Callable[[float, float], bool]
    peer: str | None = None
    bound: float = 0
    system: str = "evert"
    other_case: str | None = None

    def judge(self, report: Report) -> dict[str, Any]:
        mine = report.value(self.case, self.system)
        other = report.value(self.other_case or self.case, self.peer) if self.peer else self.bound
        reached = None if mine is None or other is None else self.compare(mine, other)
        return {"evert": mine, "other": other, "reached": reached}

    def line(self, report: Report) -> str:
        verdict = self.judge(report)
        mine, other, reached = verdict["evert"], verdict["other"], verdict["reached"]
        word = "not measured" if reached is None else "reached" if reached else "missed"
        figures = ""
        if mine is not None and other is not None:
            ratio = f", {mine / other:.2f} x" if self.peer and other else ""
            figures = f"{shown(mine)} against {shown(other)}{ratio}"
        return f"{self.text:62} {word:13} {figures}"


def aims(processes: list[int], threads: int) -> list[Aim]:
    """What Evert's log is to reach beside its peers."""
    found = []
    for count in processes:
        each = append_case(10_000, count)
        found.append(Aim(f"5 x SQLite's rows, {each}", each, times(5), "sqlite"))
        found.append(Aim(f"3 x Kafka, {each}", each, times(3), "kafka"))
    singles = [append_case(1, count) for count in processes] + [threads_case(threads)]
    found += [Aim(f"as fast as Kafka, {each}", each, times(1), "kafka") for each in singles]
    found.append(Aim("5 x Kafka, reading segments", READ_SEGMENTS, times(5), "kafka", other_case=READ))
    found.append(Aim("5 x Kafka, reading the tail", READ_TAIL, times(5), "kafka", other_case=READ))
    found.append(Aim("p99 from append to read below 20 ms", P99, lambda mine, bound: mine < bound, bound=20))
    found.append(Aim("a fifth of JSON lines' bytes", BYTES, lambda mine, jsonl: 5 * mine <= jsonl, "jsonl"))
    return found


READ = "read"
READ_TAIL = "read, from the tail"
READ_SEGMENTS = "read, from segments"
READ_SPARK = "read, by Spark"
P50 = "append to read, other process, p50"
P99 = "append to read, other process, p99"
IDLE = "an idle follower's use of a core"
BYTES = "bytes an event on disk"


def append_case(batch: int, processes: int) -> str:
    plural = "process" if processes == 1 else "processes"
    what = "single events" if batch == 1 else f"batches of {batch:,}"
    return f"append {what}, {processes} {plural}"


def threads_case(threads: int) -> str:
    return f"append single events, {threads} threads"


def times(factor: float) -> Callable[[float, float], bool]:
    return lambda mine, other: mine >= factor * other


def shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def machine(folder: Path) -> dict[str, Any]:
    """What the figures depend on, the disk's fsync included."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        **{name: _version(name) for name in ("evert", "pyarrow", "pyspark", "confluent-kafka")},
        "fsync_ms": round(_fsync_ms(folder), 3),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _fsync_ms(folder: Path) -> float:
    path = folder / "fsync"
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(200):
            begin = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - begin)
    path.unlink()
    return 1000 * statistics.median(taken)

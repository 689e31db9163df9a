"""What the benchmarks of views have in common: options, a line for each case and system, a file and a picture."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from types import TracebackType

from bench.memory import Watch
from bench.picture import draw, shown


@dataclass(frozen=True)
class Figure:
    """The median of a case's runs on one system, and whether what it computed is right, if that was looked at."""

    case: str
    system: str
    value: float
    unit: str
    correct: bool | None


class Figures:
    """The figures so far, printed as they come. Within `with`; its end writes the files that were asked for."""

    def __init__(self, bench: str, chosen: argparse.Namespace) -> None:
        self.bench = bench
        self.found: list[Figure] = []
        self._chosen = chosen
        self._memory = Watch()

    @staticmethod
    def options(description: str | None) -> argparse.ArgumentParser:
        """What every benchmark understands."""
        options = argparse.ArgumentParser(description=description)
        options.add_argument("--json", type=Path, help="write the figures to this file")
        options.add_argument("--picture", type=Path, help="draw the figures into this file, an SVG")
        return options

    def __enter__(self) -> Figures:
        settings = {
            name: value for name, value in vars(self._chosen).items() if name not in ("json", "picture")
        }
        self.say(machine())
        self.say(", ".join(f"{name} {value}" for name, value in settings.items()))
        self._memory.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._memory.__exit__(kind, error, trace)
        self.say(f"peak of all processes: {self._memory}")
        if self._chosen.json:
            self._chosen.json.write_text(json.dumps([asdict(figure) for figure in self.found], indent=2))
        if self._chosen.picture:
            self._chosen.picture.write_text(draw(f"{self.bench}: {machine()}", self.found))

    def add(
        self,
        case: str,
        system: str,
        runs: Sequence[float],
        unit: str,
        correct: bool | None = None,
        note: str = "",
    ) -> None:
        """The runs of a case: their median, and from where to where they go."""
        value = statistics.median(runs)
        word = {True: "  right", False: "  WRONG", None: ""}[correct]
        spread = f" ({shown(min(runs))} to {shown(max(runs))})" if len(runs) > 1 else ""
        self.say(
            f"{case:<34} {system:<26} {shown(value):>11} {unit}{spread}{word}{'  ' if note else ''}{note}"
        )
        self.found.append(Figure(case, system, value, unit, correct))

    def skip(self, case: str, system: str, why: str) -> None:
        self.say(f"{case:<34} {system:<26} cannot: {why[:160]}")

    def of(self, system: str) -> dict[str, float]:
        """The values of one system, by case."""
        return {figure.case: figure.value for figure in self.found if figure.system == system}

    def say(self, text: str) -> None:
        print(f"{self.bench}  {text}", flush=True)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("pyspark", "pyarrow", "numpy"))
    return f"{os.cpu_count()} cores, {memory:.0f} GB, Python {platform.python_version()}, {versions}"

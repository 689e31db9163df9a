"""The views of a suite in one database, brought through rounds of changes and compared with plain Spark SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import ArithmeticException
from tests.oracle import Oracle, assert_same
from tests.tpc.source import Data
from tests.tpc.warehouse import Warehouse

import evert
from evert.errors import EvertError


@dataclass
class Kept:
    """A database with all views that could be defined, and the rows that its tables should have."""

    db: evert.Database
    warehouse: Warehouse
    queries: Mapping[str, str]
    refused: dict[str, EvertError] = field(default_factory=dict)
    wrong: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Which views were proved wrong, and when."""

    def rounds(self, count: int) -> None:
        """Change rows and prove all views after every round; the last is left to the oracle."""
        for number in range(count):
            self.warehouse.change(self.db)
            self.db.refresh()
            for proof in self.db.prove() if number < count - 1 else ():
                if not proof.holds:
                    self.wrong[proof.view].append(f"round {number}: {proof.missing} {proof.unexpected}")

    def check(self, name: str, oracle: Oracle) -> None:
        """A view was right after every round, and has now what Spark makes of the present rows.

        Where Spark itself fails on them, by a division by zero or the like, the view must have stopped.
        """
        if name in self.refused:
            raise self.refused[name]
        assert self.wrong[name] == []
        try:
            expected = oracle.answer(self.queries[name])
        except ArithmeticException:
            assert self.db.views[name].state == "stopped"
        else:
            assert_same(self.db.views[name].arrow(), expected)


def build(folder: Path, data: Data, keys: Mapping[str, str], *, seed: int) -> Kept:
    """All queries as views of a new database, over nine tenths of the rows."""
    kept = Kept(
        evert.open(folder / "db", background=False), Warehouse(data.tables, keys, seed=seed), data.queries
    )
    kept.warehouse.load(kept.db)
    for name, query in data.queries.items():
        try:
            kept.db.view(name, query)
        except EvertError as error:
            kept.refused[name] = error
    kept.db.refresh()
    return kept

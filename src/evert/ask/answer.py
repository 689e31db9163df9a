"""What `db.ask` gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

Engine = Literal["duckdb", "spark"]


@dataclass(frozen=True)
class Answer:
    """The rows of a query, and the position that they are right for.

    `positions` has the relations that the query named, each with the position of its rows: all are `position`,
    but for a view that had no epoch there, which shows what it had before.
    """

    position: int
    positions: Mapping[str, int]
    engine: Engine
    dialect: str
    table: pa.Table

    def arrow(self) -> pa.Table:
        return self.table

    def rows(self) -> list[dict[str, Any]]:
        """Dicts, in the query's order. Of columns that share a name the last one is seen here."""
        values: list[dict[str, Any]] = self.table.to_pylist()
        return values

    def pandas(self) -> Any:
        return self.table.to_pandas()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"<Answer of {len(self)} rows at {self.position}, by {self.engine}>"

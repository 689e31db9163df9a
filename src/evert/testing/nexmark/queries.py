"""The queries of Nexmark in Spark SQL, as views are defined with.

Where the rows of a query depend on which of two equal rows comes first (q6, q9, q18, q19), its order goes on to
more columns than in Nexmark: the rows of a view are a function of the data alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

_READS = {
    3: "auction person",
    4: "auction bid",
    6: "auction bid",
    8: "person auction",
    9: "auction bid",
    13: "bid side_input",
    20: "bid auction",
    23: "bid person auction",
}


@dataclass(frozen=True)
class Query:
    """One query: what it asks, its text, and the relations it reads."""

    name: str
    about: str
    sql: str
    reads: tuple[str, ...]


def _query(number: int) -> Query:
    text = (files("evert.testing.nexmark") / "sql" / f"q{number}.sql").read_text("utf-8")
    about, _, sql = text.removeprefix("-- ").partition("\n")
    return Query(f"q{number}", about, sql.strip(), tuple(_READS.get(number, "bid").split()))


QUERIES: Mapping[str, Query] = {query.name: query for query in map(_query, range(24))}
"""q0 to q23. `side_input` of q13 is a table of `key BIGINT, value BIGINT`; q12 reads `_ingested_at`."""

"""Write `docs/tpcds.md`: which of the 99 queries are kept incrementally, and why the others are not.

python -m tests.tpcds.report
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

from tests.tpc.source import Data
from tests.tpcds.small import keys, make

import evert
from evert.errors import EvertError
from evert.schema.schema import Schema

DOCUMENT = Path(__file__).parents[2] / "docs" / "tpcds.md"
HEAD = """# TPC-DS
How the 99 queries of TPC-DS are kept when they are defined as views over tables; one that is recomputed names the
node that Evert cannot keep yet. `python -m tests.tpcds.report` writes this page; `make soak` takes all of them
through rounds of inserts, updates and deletes and compares them with plain Spark SQL. The last time, on 16 November
2026 with the seed 1, all 99 were equal after every round.
"""


def outcomes(data: Data) -> dict[str, str]:
    """For each query `incremental`, or why it is not."""
    with tempfile.TemporaryDirectory() as folder, evert.open(Path(folder) / "db", background=False) as db:
        for name, table in data.tables.items():
            db.table(name, Schema.from_arrow(table.schema).ddl(), key=keys(data)[name].split())
        return {name: _outcome(db, query) for name, query in data.queries.items()}


def _outcome(db: evert.Database, query: str) -> str:
    try:
        reason = db.explain(query).recomputes
        return "incremental" if reason is None else re.sub(r" \[n\d+\]", "", reason)
    except EvertError as error:
        return f"refused: {str(error).splitlines()[0]}"


def page(found: dict[str, str]) -> str:
    """The two tables as Markdown: how many of each kind, and every query."""
    lines = [HEAD, "| queries | how they are kept |", "| ---: | --- |"]
    for outcome, count in sorted(Counter(found.values()).items(), key=lambda pair: (-pair[1], pair[0])):
        lines.append(f"| {count} | {outcome} |")
    lines += ["", "| query | how it is kept |", "| --- | --- |"]
    lines += [f"| {name} | {outcome} |" for name, outcome in found.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(page(outcomes(make())))

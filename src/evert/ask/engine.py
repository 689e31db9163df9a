"""Questions: any SELECT over topics and views, answered at one position.

    text ── reading ──> tree ── translate ──> DuckDB's SQL, and what it reads of which relation
                                                  │
    catalog ── relations ──> one position ── sources ──> Arrow ── duck ──> Answer

What the translation refuses goes to Spark, if one runs in this process.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from evert.ask import duck
from evert.ask.answer import Answer
from evert.ask.duck import Deadline
from evert.ask.reading import read
from evert.ask.relations import Catalogued, Moved, Visible, look
from evert.ask.sources import source
from evert.errors import BadOption, BadQuery, NotTranslated

if TYPE_CHECKING:
    from sqlglot import exp

    from evert.database import Database

DIALECT = "spark"
_ATTEMPTS = 5


def ask(
    db: Database,
    sql: str,
    *,
    at: int | None,
    max_seconds: float,
    max_rows: int,
    dialect: str = DIALECT,
    visible: Visible | None = None,
) -> Answer:
    """See `Database.ask`."""
    _check(sql, max_seconds, max_rows, dialect)
    duck.imported()
    deadline = Deadline(max_seconds)
    tree = read(sql)
    for attempt in range(_ATTEMPTS):
        try:
            return _asked(db, sql, tree, at, deadline, max_rows, visible)
        except Moved:
            if attempt == _ATTEMPTS - 1:
                raise BadQuery("what the query reads is altered all the time", hint="ask again") from None
    raise AssertionError


def spark_runs() -> bool:
    """Whether this process may have a Spark; to find out costs nothing where it has not."""
    return "pyspark" in sys.modules


def _check(sql: object, max_seconds: float, max_rows: int, dialect: str) -> None:
    if not isinstance(sql, str):
        raise BadOption(f"a query is a text, not {type(sql).__name__}")
    if dialect != DIALECT:
        raise BadOption(f"no dialect is named {dialect!r}", hint=f"there is {DIALECT!r}")
    if not max_seconds > 0:
        raise BadOption(f"max_seconds is more than 0, not {max_seconds!r}")
    if not isinstance(max_rows, int) or max_rows < 0:
        raise BadOption(f"max_rows is a whole number from 0 on, not {max_rows!r}")


def _asked(
    db: Database,
    sql: str,
    tree: exp.Expression,
    at: int | None,
    deadline: Deadline,
    max_rows: int,
    visible: Visible | None,
) -> Answer:
    from evert.ask.shapes import Around
    from evert.ask.translate import Translation

    catalogued = Catalogued(db, visible)
    try:
        query = Translation(catalogued).query(tree, Around())
        seen = look(db, catalogued.found, at)
        sources = {}
        for found in catalogued.found:
            deadline.check()
            sources[found.sql] = source(db, found, seen, past=at is not None)
        columns = list(zip(query.names, query.types, strict=True))
        rows = duck.run(
            query.sql,
            sources,
            columns,
            deadline=deadline,
            max_rows=max_rows,
            threads=min(4, os.cpu_count() or 1),
        )
    except RecursionError:
        raise BadQuery("the query is nested too deeply", hint="use WITH, or fewer parentheses") from None
    except NotTranslated:
        if not spark_runs():
            raise
        from evert.epoch import asking

        answer = asking.answer(db, sql, tree, at, deadline, max_rows, visible)
        if answer is None:
            raise
        return answer
    positions = {found.name: sources[found.sql].position for found in catalogued.found}
    return Answer(seen.position, positions, "duckdb", DIALECT, rows)

"""DuckDB, shut in: in memory, without files, extensions or settings, and for a limited time."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from evert.ask.quotients import MACROS
from evert.ask.sources import Source
from evert.ask.terms import UNTESTED
from evert.errors import BadQuery, EvertError, NotFound, NotTranslated, TimedOut, TooManyRows
from evert.schema.types import DataType

MEMORY = "2GB"
_BATCH = 65_536
_CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


class Deadline:
    """When a question has taken too long."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    def check(self) -> None:
        if self.left <= 0:
            raise self.passed()

    def passed(self) -> TimedOut:
        return TimedOut(
            f"the query has taken longer than {self.seconds:g} seconds",
            hint="ask for less, or allow more with max_seconds= (--seconds on the command line)",
        )


def imported() -> tuple[Any, Any]:
    """DuckDB and sqlglot, which only questions need."""
    try:
        import duckdb
        import sqlglot
    except ImportError as error:
        raise NotFound("questions need DuckDB and sqlglot", hint="pip install 'evert[ask]'") from error
    return duckdb, sqlglot


def run(
    sql: str,
    sources: Mapping[str, Source],
    columns: Sequence[tuple[str, DataType]],
    *,
    deadline: Deadline,
    max_rows: int,
    threads: int,
) -> pa.Table:
    """The rows of a query over these sources, in the types that Spark would give them."""
    with _connected(threads) as con, _limited(con, deadline), _our_words(deadline):
        for name, source in sources.items():
            for label, rows in source.objects.items():
                con.register(label, rows)
            con.execute(f"CREATE VIEW {name} AS {source.sql}")
        deadline.check()
        done = con.execute(sql)
        reader = getattr(done, "to_arrow_reader", done.fetch_record_batch)(_BATCH)
        return shaped(_bounded(reader, max_rows), columns)


@contextmanager
def _connected(threads: int) -> Iterator[Any]:
    duckdb, _ = imported()
    con = duckdb.connect(":memory:", config={**_CLOSED, "memory_limit": MEMORY, "threads": str(threads)})
    try:
        con.execute("SET TimeZone = 'UTC'")
        for macro in MACROS:
            con.execute(macro)
        con.execute("SET lock_configuration = true")
        yield con
    finally:
        con.close()


@contextmanager
def _limited(con: Any, deadline: Deadline) -> Iterator[None]:
    timer = threading.Timer(max(0.0, deadline.left), con.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _bounded(reader: Any, max_rows: int) -> pa.Table:
    batches, count = [], 0
    for batch in reader:
        count += batch.num_rows
        if count > max_rows:
            raise too_many(max_rows)
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def too_many(max_rows: int) -> TooManyRows:
    return TooManyRows(
        f"the answer has more than {max_rows:,} rows",
        hint="add a LIMIT, or allow more with max_rows= (--max-rows on the command line)",
        max_rows=max_rows,
    )


def shaped(rows: pa.Table, columns: Sequence[tuple[str, DataType]]) -> pa.Table:
    """The rows under the user's names and in Evert's types."""
    arrays = [
        pa.nulls(rows.num_rows) if kind.arrow == pa.null() else rows.column(i).cast(kind.arrow)
        for i, (_, kind) in enumerate(columns)
    ]
    fields = [pa.field(name, kind.arrow) for name, kind in columns]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


@contextmanager
def _our_words(deadline: Deadline) -> Iterator[None]:
    """DuckDB's errors as ours: one sentence each."""
    duckdb, _ = imported()
    try:
        yield
    except duckdb.InterruptException:
        raise deadline.passed() from None
    except duckdb.OutOfMemoryException:
        raise BadQuery(
            f"the query needs more than {MEMORY} of memory", hint="ask for less at a time"
        ) from None
    except duckdb.Error as error:
        raise _told(error, deadline) from None


def _told(error: Exception, deadline: Deadline) -> EvertError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, EvertError):
            return cause
        cause = cause.__cause__ or cause.__context__
    text = str(error).strip()
    if "INTERRUPT" in text and deadline.left <= 0:
        return deadline.passed()
    first = re.sub(r"^[A-Z][\w ]*Error: ", "", text.split("\n")[0]).strip()
    if re.match(r"(STDDEV|VAR)\w* is out of range", first):
        first = f"{UNTESTED}a variance beyond DOUBLE"
    if first.startswith(UNTESTED):
        return NotTranslated(
            f"{first.removeprefix(UNTESTED)} has no tested equal in the embedded engine",
            hint="where a Spark session runs, Spark answers instead",
        )
    first = re.sub(r"\. (Use TRY|To add it|Either add|Use \"ANY|If necessary).*", "", first)
    return BadQuery(f"the query fails: {first}")

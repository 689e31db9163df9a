"""Questions that Spark answers, where it runs already: over the same relations at the same position."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from evert.ask import Answer
from evert.ask.duck import Deadline, too_many
from evert.ask.names import named
from evert.ask.relations import SYSTEM, Catalogued, Found, Visible, look
from evert.epoch import spark as on_spark
from evert.errors import BadQuery
from evert.plan.catalyst import Catalyst
from evert.plan.refuse import check, check_text, spark_words
from evert.schema.from_arrow import type_from_arrow
from evert.schema.types import Column
from evert.views import View
from evert.views import reader as views
from evert.views.definition import Definition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

    from evert.ask.relations import Look
    from evert.database import Database

_GROUP = "evert-ask"
_AGAIN = 0.2


def answer(
    db: Database,
    sql: str,
    tree: exp.Expression,
    at: int | None,
    deadline: Deadline,
    max_rows: int,
    visible: Visible | None = None,
) -> Answer | None:
    """The answer of a Spark session that runs in this process; None if none does."""
    running = Catalyst.running()
    if running is None:
        return None
    catalogued = Catalogued(db, visible)
    for name in named(tree):
        if catalogued.has(name):
            catalogued.find(name)
    seen = look(db, catalogued.found, at)
    _refuse(running, sql, catalogued)
    session = on_spark.beside(running)
    positions = {found.name: _register(db, session, found, seen) for found in catalogued.found}
    rows = _rows(session, sql, catalogued, deadline, max_rows)
    return Answer(seen.position, positions, "spark", "spark", rows)


def _refuse(session: SparkSession, sql: str, catalogued: Catalogued) -> None:
    """A query that is none, or that reads anything but topics and views, is refused before it can do anything."""
    planner = Catalyst.planning(on_spark.beside(session))
    ours = [planner.placeholder(found.name, _ddl(found)) for found in catalogued.found]
    check_text(sql)
    with spark_words(catalogued.names):
        plan = planner.analysed(planner.query(sql))
    check(planner, plan, ours)


def _ddl(found: Found) -> str:
    return ", ".join(Column(name, kind).ddl() for name, kind in found.columns.items())


def _register(db: Database, session: SparkSession, found: Found, seen: Look) -> int:
    """Make a relation known to the session; the position of its rows."""
    position = seen.position
    if isinstance(found.definition, Definition):
        rows, position = _view(db, found.definition, seen)
        frame = session.createDataFrame(rows, on_spark.struct_type(rows.schema))
    else:
        topic = found.definition
        frame = on_spark.read_topic(session, db, topic.name, upto=position)
        if topic.kind == "table":
            frame = on_spark.latest(frame, topic)
        shown = [*topic.schema.names, *(SYSTEM if topic.kind == "stream" else ())]
        frame = frame.select(*(on_spark.quoted(name) for name in shown))
    frame.createOrReplaceTempView(on_spark.quoted(found.name))
    return position


def _view(db: Database, view: Definition, seen: Look) -> tuple[pa.Table, int]:
    opened = seen.opened.get(view.name)
    if opened is None:
        then = View(db.reader, view.name).at(seen.position)
        return then.arrow(), then.position
    return views.repeated(opened.weighted(), opened.seen.view.schema), seen.position


def _rows(
    session: SparkSession, sql: str, catalogued: Catalogued, deadline: Deadline, max_rows: int
) -> pa.Table:
    with spark_words(catalogued.names):
        frame: DataFrame = Catalyst(session).query(sql).limit(max_rows + 1)
    deadline.check()
    try:
        with Catalyst.quietly(), _cancelled_after(session, deadline):
            rows = frame.toArrow()
    except Catalyst.failures() as error:
        if deadline.left <= 0:
            raise deadline.passed() from None
        raise BadQuery(f"the query fails: {_sentence(str(on_spark.failure(error)))}") from None
    if rows.num_rows > max_rows:
        raise too_many(max_rows)
    return _evert(rows)


@contextmanager
def _cancelled_after(session: SparkSession, deadline: Deadline) -> Iterator[None]:
    """Cancel the jobs of this thread when the time is over, those too that begin only then."""
    context, done = session.sparkContext, threading.Event()
    group = f"{_GROUP}-{threading.get_ident()}"
    context.setJobGroup(group, "a question", interruptOnCancel=True)

    def watch() -> None:
        pause = max(0.0, deadline.left)
        while not done.wait(pause):
            context.cancelJobGroup(group)
            pause = _AGAIN

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)


def _sentence(text: str) -> str:
    first = text.strip().split("\n")[0].split(" SQLSTATE")[0]
    return first.partition("] ")[2] or first


def _evert(rows: pa.Table) -> pa.Table:
    """The rows in the Arrow types that Evert has for Spark's."""
    fields = [pa.field(one.name, type_from_arrow(one.type, one.name).arrow) for one in rows.schema]
    arrays = [column.cast(one.type) for column, one in zip(rows.columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

"""The plain answer: a query run by Spark over everything its relations hold at a position.

Views that are not incremental are made this way, and every view is proved by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.epoch import inputs, ranges
from evert.epoch import spark as on_spark
from evert.errors import BadQuery, Expired
from evert.log import holds, watermarks
from evert.log.topic import WATERMARK
from evert.plan import now, ties
from evert.plan.catalyst import Catalyst
from evert.plan.expressions import name_of
from evert.plan.relations import run
from evert.plan.settling import final
from evert.views import bases, changes
from evert.views.definition import Definition, find
from evert.views.reader import repeated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.catalog import Transaction
    from evert.database import Database
    from evert.epoch.planning import Planning
    from evert.epoch.work import Work
    from evert.plan.graph import Leaf, Plan

FEWEST_PARTS, PART_ROWS = 2, 500_000
"""Spark's exchanges have so many parts, and one more for each so many events."""
_NOTHING: Mapping[int, int] = MappingProxyType({})


def result(db: Database, planning: Planning, view: Definition, plan: Plan, work: Work) -> DataFrame:
    """The query's whole result after an epoch, as a delta: numbered columns and the weight 1."""
    from pyspark.sql import functions as f

    frame = answer(db, planning, view, plan, work.upto, forgets=work.forgets)
    numbered = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    return numbered.select("*", f.lit(1).cast("bigint").alias("__w"))


def answer(
    db: Database,
    planning: Planning,
    view: Definition,
    plan: Plan,
    upto: int,
    *,
    from_log: bool = False,
    forgets: Mapping[int, int] = _NOTHING,
) -> DataFrame:
    """The query's result at a position.

    `from_log`: views that it reads are recomputed too, not taken as kept. `forgets`: the position, by topic, up
    to which events do not count from now on.
    """
    session = on_spark.beside(planning.catalyst.session)
    session.conf.set("spark.sql.shuffle.partitions", str(_partitions(db, plan, upto)))
    _register(db, planning, session, view, plan, upto, from_log, forgets)
    return _run(db, planning, session, view, plan, upto)


def _partitions(db: Database, plan: Plan, upto: int) -> int:
    """In how many parts Spark works: so many that a task can sort its rows within the memory that it gets."""
    topics = {leaf.number for leaf in plan.leaves if leaf.of_topic}
    with db.catalog.read() as tx:
        rows = ranges.events(tx, sorted(topics), 0, upto)
    return FEWEST_PARTS + rows // PART_ROWS


def _register(
    db: Database,
    planning: Planning,
    session: SparkSession,
    view: Definition,
    plan: Plan,
    upto: int,
    from_log: bool,
    forgets: Mapping[int, int],
) -> None:
    named = {
        leaf.id: leaf for leaf in (*plan.reads, *plan.leaves)
    }  # Spark may need nothing of what a query names
    for leaf in named.values():
        if leaf.of_topic:
            frame = _topic(db, session, view, leaf, upto, forgets)
        elif leaf.kind == "view":
            frame = _view(db, planning, session, leaf, upto, from_log)
        elif leaf.kind == "clock":
            frame = _clock(db, session, leaf, upto)
        else:
            continue
        frame.createOrReplaceTempView(on_spark.quoted(leaf.name))


def _view(
    db: Database, planning: Planning, session: SparkSession, leaf: Leaf, upto: int, from_log: bool
) -> DataFrame:
    """What a view shows at a position; estimates are taken as they are, since Spark would make others."""
    with db.catalog.read() as tx:
        below = find(tx, leaf.name)
    plan = planning.plan(below)
    if from_log and not plan.estimates:
        frame = answer(db, planning, below, plan, upto, from_log=True)
        return session.createDataFrame(frame.toArrow(), on_spark.struct_type(below.schema))
    rows = kept(db, leaf.name, upto)
    return session.createDataFrame(rows, on_spark.struct_type(rows.schema))


def _topic(
    db: Database, session: SparkSession, view: Definition, leaf: Leaf, upto: int, forgets: Mapping[int, int]
) -> DataFrame:
    """What a topic holds at a position, for a view: events that are gone come from bases."""
    topic = db.definition(leaf.topic)
    with db.catalog.read() as tx:
        hold = holds.of_holder(tx, topic.id, view.id)
        since = max(0 if hold is None else hold.since, forgets.get(topic.id, 0))
        found = bases.of_topic(tx, topic.id, since) if topic.kind == "stream" else []
        (replaced,) = tx.one("SELECT replaced FROM topics WHERE id = ?", topic.id) or (0,)
    if upto < replaced:
        raise Expired(
            f"the rows of {topic.name} at position {upto} are not all there: it was compacted",
            hint="refresh first",
            topic=topic.name,
            position=replaced,
        )
    after = max([since, *(base.upto for base in found)])
    frame = on_spark.read_topic(session, db, topic.name, after=after, upto=max(after, upto))
    if leaf.kind == "versions":
        return on_spark.versions(frame, topic, leaf.schema.names)
    if WATERMARK in leaf.schema.names:
        frame = on_spark.marked(frame, inputs.marks_of(db, leaf, after, max(after, upto)))
    if topic.kind == "table":
        frame = on_spark.latest(frame, topic)
    frame = frame.select(*(on_spark.quoted(name) for name in leaf.schema.names))
    for base in found:
        rows = repeated(bases.read(db.log.files, base, leaf.schema), leaf.schema)
        frame = frame.unionAll(session.createDataFrame(rows, on_spark.struct_type(rows.schema)))
    return frame


def _clock(db: Database, session: SparkSession, leaf: Leaf, upto: int) -> DataFrame:
    """The one row of a clock at a position."""
    with db.catalog.read() as tx:
        at = inputs.moment(tx, leaf, upto)
    rows = pa.table([pa.array([at], leaf.schema.types[0])], schema=leaf.schema)
    return session.createDataFrame(rows, on_spark.struct_type(rows.schema))


def _closed(db: Database, catalyst: Catalyst, view: Definition, plan: Plan, analysed: Any, upto: int) -> Any:
    """The plan over what came in time for windows that are closed at a position, or over what did not."""
    streams = {leaf.name: leaf for leaf in plan.reads if WATERMARK in leaf.schema.names}
    times = {name: str(db.definition(name).options.event_time) for name in streams}
    made, closing = final(catalyst, analysed, times, view.options.emit)
    if closing is None:
        return made
    # Spark would push a condition on a session's end below what merges sessions, where it means another one.
    made = catalyst.analysed(catalyst.stage(catalyst.frame(made)))
    end = closing.end(catalyst, catalyst.items(made.output()))
    for name in closing.streams:
        with db.catalog.read() as tx:
            mark = watermarks.watermark(tx, int(streams[name].id[1:]), upto)
        at = catalyst.value_of(f"SELECT timestamp_micros({'NULL' if mark is None else mark})")
        is_open = catalyst.not_before(end, at) if closing.sessions else catalyst.after(end, at)
        made = catalyst.filtered(made, catalyst.negation(is_open))
    return made


def kept(db: Database, name: str, position: int) -> pa.Table:
    """The rows of a view at a position, each as often as it counts."""

    def look(tx: Transaction) -> Any:
        view = find(tx, name)
        return view, changes.entries_at(tx, db.path, view.feed, position)

    view, entries = changes.look_again(db.catalog, look)
    return repeated(changes.consolidated(view.feed, entries, view.schema), view.schema)


def _planned_apart(catalyst: Catalyst, plan: Any) -> Any:
    """What as-of joins join is planned by itself: Spark 4.2 fails to plan them over fields of structs.

    Which of several rows is taken that are equally near stays open, as it is in Spark.
    """
    children = [_planned_apart(catalyst, child) for child in catalyst.items(plan.children())]
    if name_of(plan) == "AsOfJoin":
        children = [catalyst.analysed(catalyst.stage(catalyst.frame(child))) for child in children]
    return plan.withNewChildren(catalyst.sequence(children)) if children else plan


def _run(
    db: Database, planning: Planning, session: SparkSession, view: Definition, plan: Plan, upto: int
) -> DataFrame:
    query = planning.query(view)
    try:
        frame = run(query, session)
        catalyst = Catalyst(session)
        analysed = catalyst.analysed(frame)
        if view.options.emit != "changes":
            analysed = _closed(db, catalyst, view, plan, analysed, upto)
            frame = catalyst.frame(analysed)
        if now.asks_time(catalyst, analysed):
            analysed = now.with_clock(catalyst, analysed)
            frame = catalyst.frame(analysed)
        if catalyst.has_pattern(analysed, "AS_OF_JOIN"):
            return catalyst.frame(_planned_apart(catalyst, analysed))
        with catalyst.active(), suppress(ties.Open):
            if ties.matter(catalyst, plan, analysed):
                return catalyst.frame(ties.settled(catalyst, catalyst.optimise(analysed)))
        return frame
    except Catalyst.failures() as error:
        raise BadQuery(f"the view {view.name} failed: {Catalyst.reason(error)}", view=view.name) from error

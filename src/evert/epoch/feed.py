"""Gathering what flows into an epoch: events of topics, bases, changes of views, constants, whole results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evert.catalog import Transaction
from evert.epoch import inputs, ranges, recompute
from evert.epoch.flow import Flow, Part, query_leaf
from evert.epoch.planning import Planning
from evert.epoch.work import Work
from evert.errors import Expired
from evert.log import holds
from evert.plan.graph import Leaf
from evert.views import bases, changes
from evert.views.definition import NOWHERE, Definition, find

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.database import Database


@dataclass(frozen=True)
class Feed:
    """What flows in: deltas at hand, ranges of topics for Spark to read, results of queries."""

    deltas: Mapping[str, pa.Table]
    topics: Mapping[str, tuple[Leaf, int, int]]
    frames: Mapping[str, DataFrame]
    events: int

    @property
    def sources(self) -> set[str]:
        there = {name for name, rows in self.deltas.items() if rows.num_rows}
        return there | self.topics.keys() | self.frames.keys()

    def frames_of(self, spark: SparkSession, db: Database, flow: Flow) -> list[tuple[str, DataFrame]]:
        """Everything as DataFrames, by the source it is for."""
        found = [pair for pair in self.frames.items() if pair[0] in flow.leaves]
        for name, (leaf, after, upto) in self.topics.items():
            found.append((name, inputs.topic_frame(spark, db, leaf, after, upto)))
        for name, rows in self.deltas.items():
            if rows.num_rows and name in flow.leaves:
                found.append((name, inputs.frame_of(spark, rows)))
        return found


def gathered(db: Database, planning: Planning, work: Work, flow: Flow, parts: Sequence[Part]) -> Feed:
    """All that flows into an epoch; a large range of topics is left for Spark to read."""
    with db.catalog.read() as tx:
        ranges_ = {name: _range(tx, work, flow, name) for name, leaf in flow.leaves.items() if leaf.of_topic}
        counts = {name: ranges.events(tx, [flow.leaves[name].number], *r) for name, r in ranges_.items()}
    events = sum({flow.leaves[name].number: rows for name, rows in counts.items()}.values())
    large = events > inputs.SMALL
    deltas: dict[str, pa.Table] = {}
    topics: dict[str, tuple[Leaf, int, int]] = {}
    for name, leaf in flow.leaves.items():
        pieces = []
        if leaf.kind == "constant" and work.after == NOWHERE and leaf.rows is not None:
            pieces.append(leaf.rows)
        elif leaf.kind == "clock":
            pieces.append(_clock_delta(db, work, leaf))
        elif leaf.kind == "view":
            pieces.append(_view_delta(db, work, leaf))
        elif leaf.of_topic:
            pieces += _from_bases(db, work, flow, name)
            pieces += _taken_back(db, work, flow, name)
            if counts[name] and large:
                topics[name] = (leaf, *ranges_[name])
            elif counts[name]:
                pieces.append(inputs.topic_delta(db, leaf, *ranges_[name]))
        if pieces:
            deltas[name] = pa.concat_tables(pieces)
    frames = {}
    for part, view in zip(parts, work.views, strict=True):
        if part.plan.recomputes and (work.joins if work.building else work.after < work.upto):
            frames[query_leaf(part).id] = recompute.result(db, planning, view, part.plan, work)
    return Feed(deltas, topics, frames, events)


def counted_since(tx: Transaction, work: Work, view: Definition) -> dict[str, int]:
    """For the topics of which more than the new events matters now: after which position the view counts them."""
    found = {}
    for read in view.reads:
        if read.kind != "view" and (work.after == NOWHERE or read.id in work.forgets):
            hold = holds.of_holder(tx, read.id, view.id)
            leaf = f"t{read.id}v" if read.kind == "versions" else f"t{read.id}"
            found[leaf] = 0 if hold is None else hold.since
    return found


def _range(tx: Transaction, work: Work, flow: Flow, name: str) -> tuple[int, int]:
    """The range of a topic whose events are new to a source; what is in bases comes from there."""
    if work.after != NOWHERE:
        return work.after, work.upto
    since = flow.since.get(name, 0)
    after = max([since, *(base.upto for base in bases.of_topic(tx, flow.leaves[name].number, since))])
    return after, max(after, work.upto)


def _from_bases(db: Database, work: Work, flow: Flow, name: str) -> list[pa.Table]:
    """For views that begin: what is left of events that retention has removed."""
    leaf = flow.leaves[name]
    if work.after != NOWHERE or leaf.kind != "stream":
        return []
    with db.catalog.read() as tx:
        found = bases.of_topic(tx, leaf.number, flow.since.get(name, 0))
    schema = inputs.source_schema(leaf).append(pa.field("__w", pa.int64()))
    return [inputs.renamed(bases.read(db.log.files, base, leaf.schema), schema) for base in found]


def _taken_back(db: Database, work: Work, flow: Flow, name: str) -> list[pa.Table]:
    """Events that are forgotten, with negative weight."""
    leaf = flow.leaves[name]
    upto = work.forgets.get(leaf.number)
    since = flow.since.get(name, 0)
    if upto is None or upto <= since or work.after == NOWHERE:
        return []
    rows = inputs.topic_delta(db, leaf, since, upto)
    weights = pa.compute.negate(rows.column("__w"))
    return [rows.set_column(rows.num_columns - 1, "__w", weights)]


def _clock_delta(db: Database, work: Work, leaf: Leaf) -> pa.Table:
    """How a clock has moved on: its moment of before goes, that of now comes."""
    with db.catalog.read() as tx:
        before = None if work.after == NOWHERE else inputs.moment(tx, leaf, work.after)
        now = inputs.moment(tx, leaf, work.upto)
    moments = [] if before == now else [(before, -1), (now, 1)]
    told = [(at, weight) for at, weight in moments if at is not None]
    schema = inputs.source_schema(leaf).append(pa.field("__w", pa.int64()))
    columns = [[at for at, _ in told], [weight for _, weight in told]]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _view_delta(db: Database, work: Work, leaf: Leaf) -> pa.Table:
    """What a view outside the flow changed in the range; its whole content for views that join now."""
    weighted = inputs.source_schema(leaf).append(pa.field("__w", pa.int64()))
    for switch in work.switches:
        if switch.old.name == leaf.name:
            rows = switch.difference
            return weighted.empty_table() if rows is None else inputs.renamed(rows, weighted)
    if work.building and not work.joins:
        return weighted.empty_table()

    def look(tx: Transaction) -> tuple[Definition, list[changes.Entry]]:
        view = find(tx, leaf.name)
        if work.building:
            return view, changes.entries_at(tx, db.path, view.feed, work.upto)
        begin = changes.first(tx, view.feed)
        if begin is not None and begin > work.after:
            raise Expired(f"the changes of {view.name} after position {work.after} are no longer kept")
        return view, changes.deltas(tx, db.path, view.feed, work.after, work.upto)

    view, entries = changes.look_again(db.catalog, look)
    return inputs.renamed(changes.consolidated(view.feed, entries, view.schema), weighted)

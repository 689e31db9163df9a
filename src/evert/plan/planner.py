"""From a query to a plan: refused, kept incrementally, or recomputed with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from evert.delta.output import Output
from evert.errors import BadQuery, BadSchema
from evert.plan import now
from evert.plan.bounds import HORIZON, WATERMARK
from evert.plan.catalyst import Catalyst
from evert.plan.closing import Closing, Emit
from evert.plan.estimates import estimated
from evert.plan.explain import Drawing
from evert.plan.fingerprints import FORMAT, digest, plan_text
from evert.plan.graph import Leaf, Node, Plan
from evert.plan.incremental import Flow, Incremental
from evert.plan.nodes import Nodes, Port, leaf_digest
from evert.plan.now import CLOCK_SCHEMA, WATERMARKS
from evert.plan.reading import Reader
from evert.plan.refuse import check, check_text, spark_words
from evert.plan.relations import Relation, Relations, run
from evert.plan.settling import final
from evert.plan.tree import Read, Recompute, Shape, Timed
from evert.plan.types import kind_of, kinds_in, named_schema
from evert.schema.schema import check_names
from evert.schema.types import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SETTINGS = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.session.timeZone",
    "spark.sql.storeAssignmentPolicy",
)
"""Settings of a session that change what a query means."""


class Planner:
    """Plans queries over the relations registered with it.

    It works beside the session it is given, on placeholders without rows; the session itself is not touched.
    """

    def __init__(self, session: SparkSession) -> None:
        self.catalyst = Catalyst.planning(session)
        conf = self.catalyst.session.conf
        self._settings = {name: str(conf.get(name)) for name in _SETTINGS}
        self.relations = Relations(self.catalyst)

    def plan(
        self,
        query: str | Callable[[SparkSession], DataFrame],
        *,
        key: Sequence[str] | None = None,
        refresh: Literal["auto", "strict", "full"] = "auto",
        emit: Emit = "changes",
    ) -> Plan:
        """How the view of this query is kept; raises BadQuery, UnknownRelation or BadSchema if it cannot be.

        With `refresh="strict"` it is refused if a node of it would read all its input again for a change, and
        with `"full"` it is recomputed whatever it is. With `emit="close"` it shows windows once they are closed,
        with `"late"` what came too late for them.
        """
        # Expressions read settings when they are made, and PySpark leaves whatever session it used last active.
        with self.catalyst.active():
            plan = self._plan(query, key, emit, full=refresh == "full")
        if refresh == "strict" and (reason := plan.reads_all_again):
            raise BadQuery(
                f"the view is to be kept incrementally, and it would be recomputed: {reason}",
                hint="leave REFRESH POLICY INCREMENTAL STRICT out, or write the query in another way",
            )
        return plan

    def _plan(
        self,
        query: str | Callable[[SparkSession], DataFrame],
        key: Sequence[str] | None,
        emit: Emit,
        *,
        full: bool,
    ) -> Plan:
        if isinstance(query, str):
            check_text(query)
        analysed = self.relations.analysed(query, emit)
        closing = None
        if emit != "changes":
            with self.relations.showing_watermarks():
                analysed, closing = final(self.catalyst, analysed, self.relations.times, emit)
        if now.asks_time(self.catalyst, analysed):
            self.relations.register(now.CLOCK, "clock", now.CLOCK_SCHEMA, now.CLOCK_ID, (), append_only=False)
            analysed = now.with_clock(self.catalyst, analysed)
        found = check(self.catalyst, analysed, self.relations.placeholders)
        reads = tuple(self.relations.by_id[self.relations.placeholders[one]].leaf for one in found)
        columns = self._columns(analysed)
        estimates = estimated(self.catalyst, analysed)
        view = _View(query, analysed, reads, columns, _places(key, columns), emit, closing, estimates)
        if emit == "close":
            self._check_final(view)
        if full:
            return self._recomputed(view, "REFRESH POLICY FULL")
        try:
            return self._incremental(view)
        except Recompute as reason:
            return self._recomputed(view, str(reason))
        except Catalyst.failures() as error:
            return self._recomputed(view, f"a plan that Evert cannot read ({type(error).__name__})")

    def _columns(self, analysed: Any) -> pa.Schema:
        attributes = self.catalyst.items(analysed.output())
        if not attributes:
            raise BadQuery("a view needs at least one column", hint="select something")
        kinds = []
        for attribute in attributes:
            try:
                kinds.append(kind_of(attribute))
            except Recompute as reason:
                raise BadSchema(
                    f"the column {attribute.name()} cannot be kept: {reason}", hint="CAST it to another type"
                ) from None
        names = [attribute.name() for attribute in attributes]
        check_names(Column(name, kind) for name, kind in zip(names, kinds, strict=True))
        return named_schema(names, kinds)

    def _incremental(self, view: _View) -> Plan:
        catalyst = self.catalyst
        with spark_words([leaf.name for leaf in view.reads]):
            optimised = catalyst.optimise(view.analysed)
        if catalyst.refers_outside(optimised):
            raise Recompute("a subquery that Spark left where it was")
        shape = Reader(catalyst, self.relations.placeholders, optimised).read()
        if view.closing is not None:
            shape = self._closed(shape, view)
        nodes = Nodes(catalyst, self._settings)
        flow = Incremental(catalyst, nodes, self.relations.by_id).flow(shape)
        key = _derived(flow) if view.key is None else view.key
        declared = view.key is not None
        operator = Output(view.columns, key, declared, False, grows=flow.append_only)
        port = Port(flow.pipes, tuple(column.term for column in flow.columns))
        nodes.add(
            "output", operator, [port], "", [key, declared, flow.append_only], append_only=flow.append_only
        )
        return view.plan(nodes.read(), nodes.finished(), flow.drawing, key, forgetting=self._forgetting)

    def _check_final(self, view: _View) -> None:
        for leaf in view.reads:
            grows = leaf.kind == "stream" and self.relations.by_id[leaf.id].append_only
            if leaf.kind != "clock" and not grows:
                raise BadQuery(
                    f"EMIT ON WINDOW CLOSE is final, and rows of {leaf.name} may change later",
                    hint="join it with what is final, in a view that reads this one",
                )

    def _forgetting(self, clock: str) -> bool:
        """Whether what is before a clock is forgotten."""
        horizons = {f"{HORIZON}{one.leaf.number}" for one in self.relations.by_id.values() if one.forgets}
        return clock.startswith(WATERMARK) or clock in horizons

    def _closed(self, shape: Shape, view: _View) -> Shape:
        """The rows whose windows are closed by the watermarks of all their streams."""
        closing = view.closing
        assert closing is not None
        end = closing.end(self.catalyst, [column.term for column in shape.columns])
        streams = self.relations.timed
        for place, name in enumerate(closing.streams, 1):
            leaf = Leaf(f"w{streams[name].id[1:]}", "clock", name + WATERMARKS, CLOCK_SCHEMA)
            self.relations.by_id[leaf.id] = Relation(leaf, (), append_only=False)
            mark = self.catalyst.fresh_column("watermark", kinds_in(leaf.schema)[0])
            shape = Timed(
                shape.columns,
                shape,
                end,
                Read((mark,), leaf.id),
                mark.term,
                leaving=False,
                open=closing.sessions,
                shift=None,
                text=f"windows closed by the watermark of {name}",
                final=place == len(closing.streams),
            )
        return shape

    def _recomputed(self, view: _View, reason: str) -> Plan:
        if view.emit == "close":
            raise BadQuery(f"EMIT ON WINDOW CLOSE is not possible here: {reason}")
        if any(leaf.id == now.CLOCK_ID for leaf in view.reads):
            raise BadQuery(f"a view with now() cannot be recomputed, and it would be: {reason}")
        operator = Output(view.columns, view.key, view.key is not None, True)
        meaning = [
            view.query if isinstance(view.query, str) else plan_text(view.analysed),
            self.catalyst.constants(view.analysed),
            sorted(leaf_digest(leaf) for leaf in view.reads),
        ]
        fingerprint = digest([FORMAT, "recompute", meaning, view.key, self._settings])
        detail = f"recomputed: {reason}"
        node = Node("n0", operator, ((),), "output", detail, False, fingerprint, how="whole")
        drawing = Drawing(detail, tuple(Drawing(f"{leaf.kind} {leaf.name}") for leaf in view.reads))
        return view.plan(view.reads, (node,), drawing, view.key, reason)


@dataclass(frozen=True)
class _View:
    """What is known of a view before it is planned; `key` is where the columns of the declared key are."""

    query: str | Callable[[SparkSession], DataFrame]
    analysed: Any
    reads: tuple[Leaf, ...]
    columns: pa.Schema
    key: tuple[int, ...] | None
    emit: Emit
    closing: Closing | None = None
    estimates: tuple[str, ...] = ()

    def plan(
        self,
        leaves: tuple[Leaf, ...],
        nodes: tuple[Node, ...],
        drawing: Drawing,
        key: tuple[int, ...] | None,
        reason: str | None = None,
        forgetting: Callable[[str], bool] = lambda clock: False,
    ) -> Plan:
        names = None if key is None else tuple(self.columns.names[place] for place in key)
        headline = f"view of {', '.join(self.columns.names)}" + (f", key {', '.join(names)}" if names else "")
        output = nodes[-1]
        notes = {node.id: _notes(node, forgetting) for node in nodes}
        return Plan(
            self.reads,
            leaves,
            nodes,
            self.columns,
            names,
            reason,
            output.fingerprint,
            tuple(Drawing(headline, (drawing,), output.id).lines(notes)),
            lambda session: run(self.query, session),
            self.estimates,
        )


def _notes(node: Node, forgetting: Callable[[str], bool]) -> list[str]:
    """What a reader of the plan should know: how a node is kept, and whether it forgets."""
    notes: list[str] = [node.how]
    if any(all(forgetting(clock) for clock, _ in rule.before) for rule in node.forgets):
        notes.append("forgets")
    return notes


def _places(key: Sequence[str] | None, columns: pa.Schema) -> tuple[int, ...] | None:
    """Where the columns of a declared key are."""
    if key is None:
        return None
    folded = [name.lower() for name in columns.names]
    for name in key:
        if name.lower() not in folded:
            raise BadQuery(
                f"the key names {name!r}, which is no column of the view",
                hint="the columns are " + ", ".join(columns.names),
                column=name,
            )
    if not key:
        raise BadQuery(
            "the key has no columns", hint="leave key out, or name the columns that tell rows apart"
        )
    return tuple(folded.index(name.lower()) for name in key)


def _derived(flow: Flow) -> tuple[int, ...] | None:
    places = {column.id: place for place, column in reversed(list(enumerate(flow.columns)))}
    for key in filter(None, flow.keys):
        if all(column in places for column in key):
            return tuple(places[column] for column in key)
    return None

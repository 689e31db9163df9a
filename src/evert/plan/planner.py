"""From a query to a plan: refused, kept incrementally, or recomputed with a reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from evert.delta.output import Output
from evert.delta.versions import VALID_FROM, VALID_TO, VERSION, Versions
from evert.errors import BadQuery, BadSchema, UnknownRelation
from evert.plan.catalyst import Catalyst
from evert.plan.explain import Drawing
from evert.plan.fingerprints import FORMAT, digest, plan_text
from evert.plan.graph import VERSIONS, Leaf, LeafKind, Node, Plan
from evert.plan.incremental import Flow, Incremental, Relation
from evert.plan.nodes import Nodes, Port, leaf_digest
from evert.plan.reading import Reader
from evert.plan.refuse import check, check_text, spark_words, unknown
from evert.plan.tree import Recompute
from evert.plan.types import ddl, kind_of, kinds_in, named_schema
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
STAMP = pa.field("_ingested_at", pa.timestamp("us", "UTC"))
"""The column that says when a row came in; every topic has it, for queries that name it."""


class Planner:
    """Plans queries over the relations registered with it.

    It works beside the session it is given, on placeholders without rows; the session itself is not touched.
    """

    def __init__(self, session: SparkSession) -> None:
        self.catalyst = Catalyst.planning(session)
        conf = self.catalyst.session.conf
        self._settings = {name: str(conf.get(name)) for name in _SETTINGS}
        self._relations: dict[str, Relation] = {}
        self._placeholders: dict[int, str] = {}
        self._shown: dict[str, tuple[Any, ...]] = {}
        """What each name stands for, in lower case."""
        self._hidden: dict[str, Relation] = {}
        """Relations that only queries see which name them, by their names in lower case."""

    def register(
        self,
        name: str,
        kind: LeafKind,
        schema: pa.Schema,
        id: str,
        key: tuple[str, ...],
        append_only: bool,
        versions: Versions | None = None,
    ) -> None:
        """Let queries name a relation; a second one of the same name takes its place.

        With `versions`, queries may name those of a table's rows as well.
        """
        meaning = (id, kind, name, schema, key, append_only)
        if self._shown.get(name.lower()) != meaning:
            self._show(id, Relation(Leaf(id, kind, name, schema), key, append_only))
            self._shown[name.lower()] = meaning
        self._hidden.pop(name.lower() + VERSIONS, None)
        if versions is not None:
            leaf = Leaf(f"{id}v", "versions", name + VERSIONS, versions.taken)
            self._hidden[leaf.name.lower()] = Relation(leaf, key, append_only, versions)

    def _show(self, id: str, relation: Relation) -> None:
        schema = relation.columns
        self._shown.pop(relation.leaf.name.lower(), None)
        placeholder = self.catalyst.placeholder(relation.leaf.name, ddl(schema.names, kinds_in(schema)))
        self._relations[id] = relation
        self._placeholders[placeholder] = id

    def forget(self, name: str) -> None:
        """Queries can no longer name this relation."""
        gone = {id for id, relation in self._relations.items() if relation.leaf.name.lower() == name.lower()}
        self._relations = {id: one for id, one in self._relations.items() if id not in gone}
        self._placeholders = {one: id for one, id in self._placeholders.items() if id not in gone}
        self._shown.pop(name.lower(), None)
        self._hidden.pop(name.lower() + VERSIONS, None)
        self.catalyst.forget(name)

    def plan(
        self,
        query: str | Callable[[SparkSession], DataFrame],
        *,
        key: Sequence[str] | None = None,
        refresh: Literal["auto", "strict", "full"] = "auto",
    ) -> Plan:
        """How the view of this query is kept; raises BadQuery, UnknownRelation or BadSchema if it cannot be.

        With `refresh="strict"` it is refused if a node of it would read all its input again for a change, and
        with `"full"` it is recomputed whatever it is.
        """
        # Expressions read settings when they are made, and PySpark leaves whatever session it used last active.
        with self.catalyst.active():
            plan = self._plan(query, key, full=refresh == "full")
        if refresh == "strict" and (reason := plan.reads_all_again):
            raise BadQuery(
                f"the view is to be kept incrementally, and it would be recomputed: {reason}",
                hint="leave REFRESH POLICY INCREMENTAL STRICT out, or write the query in another way",
            )
        return plan

    def _plan(
        self, query: str | Callable[[SparkSession], DataFrame], key: Sequence[str] | None, *, full: bool
    ) -> Plan:
        if isinstance(query, str):
            check_text(query)
        analysed = self._analysed(query)
        found = check(self.catalyst, analysed, self._placeholders)
        reads = tuple(self._relations[self._placeholders[one]].leaf for one in found)
        columns = self._columns(analysed)
        view = _View(query, analysed, reads, columns, _places(key, columns))
        if full:
            return self._recomputed(view, "REFRESH POLICY FULL")
        try:
            return self._incremental(view)
        except Recompute as reason:
            return self._recomputed(view, str(reason))
        except Catalyst.failures() as error:
            return self._recomputed(view, f"a plan that Evert cannot read ({type(error).__name__})")

    def _analysed(self, query: str | Callable[[SparkSession], DataFrame]) -> Any:
        """The query's plan. A table's versions are shown only to queries that name them."""
        shown: list[Relation] = []
        try:
            while True:
                try:
                    return self._with_times(query)
                except UnknownRelation as error:
                    relation = self._hidden.get(str(error.details["name"]).lower())
                    if relation is None or relation in shown:
                        raise self._better(error) from None
                    self._show(relation.leaf.id, relation)
                    shown.append(relation)
        finally:
            for relation in shown:
                self.catalyst.forget(relation.leaf.name)

    def _better(self, error: UnknownRelation) -> Exception:
        """The error for a name that is not there; if it ends like that of versions, why there are none."""
        name = str(error.details["name"])
        if name.lower() in self._hidden:
            return BadQuery(f"a name with a dot is written in backquotes: `{name}`", name=name)
        whose = name[: -len(VERSIONS)] if name.lower().endswith(VERSIONS) else name
        known = {one.leaf.name.lower(): one.leaf for one in self._relations.values() if one.versions is None}
        leaf = known.get(whose.lower())
        if leaf is None:
            return unknown(whose, [one.name for one in known.values()], error.details)
        if leaf.kind == "table":
            names = f"{VERSION}, {VALID_FROM} and {VALID_TO}"
            return BadQuery(f"versions have columns {names}, and {leaf.name} has one of them", name=leaf.name)
        return BadQuery(
            f"{leaf.name} is a {leaf.kind}, and only tables have versions",
            hint="join it without FOR SYSTEM_TIME, or make it a table",
            name=leaf.name,
        )

    def _with_times(self, query: str | Callable[[SparkSession], DataFrame]) -> Any:
        """The query's plan. Topics show when a row came in only to queries that name that column."""
        names = [one.leaf.name for one in self._relations.values() if one.versions is None]
        try:
            with spark_words(names):
                return self.catalyst.analysed(run(query, self.catalyst.session))
        except BadQuery as error:
            named = not isinstance(query, str) or STAMP.name in query.lower()
            if not named or "UNRESOLVED" not in str(error.details.get("condition")):
                raise
        topics = [one for one in self._relations.values() if one.leaf.kind in ("stream", "table")]
        plain = {one.leaf.id: self._relations[one.leaf.id] for one in topics}
        for id, relation in plain.items():
            leaf = replace(relation.leaf, schema=relation.leaf.schema.append(STAMP))
            self._show(f"{id} with its times", replace(relation, leaf=leaf))
        try:
            with spark_words(names):
                return self.catalyst.analysed(run(query, self.catalyst.session))
        finally:
            for id, relation in plain.items():
                self._show(id, relation)

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
        shape = Reader(catalyst, self._placeholders, optimised).read()
        nodes = Nodes(catalyst, self._settings)
        flow = Incremental(catalyst, nodes, self._relations).flow(shape)
        key = _derived(flow) if view.key is None else view.key
        declared = view.key is not None
        operator = Output(view.columns, key, declared, False, grows=flow.append_only)
        port = Port(flow.pipes, tuple(column.term for column in flow.columns))
        nodes.add(
            "output", operator, [port], "", [key, declared, flow.append_only], append_only=flow.append_only
        )
        return view.plan(nodes.read(), tuple(nodes.nodes.values()), flow.drawing, key)

    def _recomputed(self, view: _View, reason: str) -> Plan:
        operator = Output(view.columns, view.key, view.key is not None, True)
        meaning = [
            view.query if isinstance(view.query, str) else plan_text(view.analysed),
            self.catalyst.constants(view.analysed),
            sorted(leaf_digest(leaf) for leaf in view.reads),
        ]
        fingerprint = digest([FORMAT, "recompute", meaning, view.key, self._settings])
        detail = f"recomputed: {reason}"
        node = Node("n0", operator, ((),), "output", detail, False, fingerprint)
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

    def plan(
        self,
        leaves: tuple[Leaf, ...],
        nodes: tuple[Node, ...],
        drawing: Drawing,
        key: tuple[int, ...] | None,
        reason: str | None = None,
    ) -> Plan:
        names = None if key is None else tuple(self.columns.names[place] for place in key)
        headline = f"view of {', '.join(self.columns.names)}" + (f", key {', '.join(names)}" if names else "")
        output = nodes[-1]
        return Plan(
            self.reads,
            leaves,
            nodes,
            self.columns,
            names,
            reason,
            output.fingerprint,
            tuple(Drawing(headline, (drawing,), output.id).lines({node.id: node.how for node in nodes})),
            lambda session: run(self.query, session),
        )


def run(query: str | Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
    """The plain DataFrame of a user's query, on a session that has the relations it names."""
    if isinstance(query, str):
        return Catalyst(session).query(query)
    with Catalyst(session).active():
        frame = query(session)
    if not isinstance(frame, type(session.range(0))):
        raise BadQuery("the view's function gave no DataFrame", hint="return spark.table(...)....")
    return frame


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

"""What queries may name: relations as placeholders, and columns and versions that only some queries see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.delta.versions import VALID_FROM, VALID_TO, VERSION, Versions
from evert.errors import BadQuery, UnknownRelation
from evert.plan.catalyst import Catalyst
from evert.plan.closing import MARK, Emit
from evert.plan.graph import VERSIONS, Leaf, LeafKind
from evert.plan.now import CLOCK_ID, CLOCK_SCHEMA, WATERMARKS, with_watermarks
from evert.plan.refuse import spark_words, unknown
from evert.plan.types import ddl, kinds_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAMP = pa.field("_ingested_at", pa.timestamp("us", "UTC"))
"""The column that says when a row came in; every topic has it, for queries that name it."""


@dataclass(frozen=True)
class Relation:
    """A leaf that queries may name, and what is known of its rows."""

    leaf: Leaf
    key: tuple[str, ...]
    append_only: bool
    event_time: str | None = None
    """The column with the time of a stream's events."""
    forgets: bool = False
    """Whether a stream has a horizon, before which nothing comes in any more."""
    versions: Versions | None = None
    """What makes versions of a table's changes, if that is what queries see."""

    @property
    def columns(self) -> pa.Schema:
        return self.leaf.schema if self.versions is None else self.versions.shown

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Columns that tell rows apart."""
        if self.versions is not None:
            return (VERSION,), (*self.key, VALID_FROM)
        return (self.key,) if self.key else ()


class Relations:
    """The relations of one planner, by their ids."""

    def __init__(self, catalyst: Catalyst) -> None:
        self.by_id: dict[str, Relation] = {}
        self.placeholders: dict[int, str] = {}
        """The relation that each placeholder stands for."""
        self._catalyst = catalyst
        self._shown: dict[str, tuple[Any, ...]] = {}
        """What each name stands for, in lower case."""
        self._current: dict[str, str] = {}
        """The relation that each name is shown as now."""
        self._hidden: dict[str, Relation] = {}
        """Relations that only queries see which name them, by their names in lower case."""

    @property
    def timed(self) -> Mapping[str, Leaf]:
        """The streams that have event time, by their names."""
        return {one.leaf.name: one.leaf for one in self.by_id.values() if one.event_time is not None}

    @property
    def times(self) -> Mapping[str, str]:
        """The columns of event time of the streams that have it, by their names."""
        return {one.leaf.name: one.event_time for one in self.by_id.values() if one.event_time is not None}

    def register(
        self,
        name: str,
        kind: LeafKind,
        schema: pa.Schema,
        id: str,
        key: tuple[str, ...],
        append_only: bool,
        *,
        event_time: str | None = None,
        forgets: bool = False,
        versions: Versions | None = None,
    ) -> None:
        """Let queries name a relation; a second one of the same name takes its place.

        With `versions`, queries may name those of a table's rows as well.
        """
        meaning = (id, kind, name, schema, key, append_only, event_time, forgets)
        if self._shown.get(name.lower()) != meaning:
            self._show(id, Relation(Leaf(id, kind, name, schema), key, append_only, event_time, forgets))
            self._shown[name.lower()] = meaning
        for end in (VERSIONS, WATERMARKS):
            self._hidden.pop(name.lower() + end, None)
        if event_time is not None:
            leaf = Leaf(f"w{id[1:]}", "clock", name + WATERMARKS, CLOCK_SCHEMA)
            self._hidden[leaf.name.lower()] = Relation(leaf, (), append_only=False)
        if versions is not None:
            leaf = Leaf(f"{id}v", "versions", name + VERSIONS, versions.taken)
            self._hidden[leaf.name.lower()] = Relation(leaf, key, append_only, versions=versions)

    def _show(self, id: str, relation: Relation) -> None:
        schema = relation.columns
        self._shown.pop(relation.leaf.name.lower(), None)
        placeholder = self._catalyst.placeholder(relation.leaf.name, ddl(schema.names, kinds_in(schema)))
        self.by_id[id] = relation
        self.placeholders[placeholder] = id
        self._current[relation.leaf.name.lower()] = id

    def forget(self, name: str) -> None:
        """Queries can no longer name this relation."""
        gone = {id for id, relation in self.by_id.items() if relation.leaf.name.lower() == name.lower()}
        self.by_id = {id: one for id, one in self.by_id.items() if id not in gone}
        self.placeholders = {one: id for one, id in self.placeholders.items() if id not in gone}
        self._shown.pop(name.lower(), None)
        self._current.pop(name.lower(), None)
        for end in (VERSIONS, WATERMARKS):
            self._hidden.pop(name.lower() + end, None)
        self._catalyst.forget(name)

    def analysed(self, query: str | Callable[[SparkSession], DataFrame], emit: Emit) -> Any:
        """The query's plan. Topics show when a row came in only to queries that name that column, and watermarks
        only to those that wait for them."""
        if emit == "changes":
            return self._with_versions(query)
        with self._showing(MARK, lambda relation: relation.event_time is not None):
            return self._with_versions(query)

    @contextmanager
    def _showing(self, field: pa.Field, chosen: Callable[[Relation], bool]) -> Iterator[None]:
        """Show relations with one more column."""
        shown = {id: self.by_id[id] for id in self._current.values() if chosen(self.by_id[id])}
        for id, relation in shown.items():
            leaf = replace(relation.leaf, schema=relation.leaf.schema.append(field))
            self._show(f"{id} with {field.name}", replace(relation, leaf=leaf))
        try:
            yield
        finally:
            for id, relation in shown.items():
                self._show(id, relation)

    @contextmanager
    def showing_watermarks(self) -> Iterator[None]:
        """Let terms name the watermarks of streams."""
        shown = [one for name, one in self._hidden.items() if name.endswith(WATERMARKS)]
        for relation in shown:
            self._show(relation.leaf.id, relation)
        try:
            yield
        finally:
            self._hide(shown)

    def _hide(self, shown: Iterable[Relation]) -> None:
        for relation in shown:
            self._current.pop(relation.leaf.name.lower(), None)
            self._catalyst.forget(relation.leaf.name)

    def _with_versions(self, query: str | Callable[[SparkSession], DataFrame]) -> Any:
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
            self._hide(shown)

    def _better(self, error: UnknownRelation) -> Exception:
        """The error for a name that is not there; if it ends like that of versions, why there are none."""
        name = str(error.details["name"])
        if name.lower() in self._hidden:
            return BadQuery(f"a name with a dot is written in backquotes: `{name}`", name=name)
        whose = name[: -len(VERSIONS)] if name.lower().endswith(VERSIONS) else name
        known = {
            one.leaf.name.lower(): one.leaf
            for one in self.by_id.values()
            if one.leaf.kind in ("stream", "table", "view")
        }
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
        names = [self.by_id[id].leaf.name for id in self._current.values() if id != CLOCK_ID]
        try:
            with spark_words(names):
                return self._catalyst.analysed(run(query, self._catalyst.session))
        except BadQuery as error:
            named = not isinstance(query, str) or STAMP.name in query.lower()
            if not named or "UNRESOLVED" not in str(error.details.get("condition")):
                raise
        with self._showing(STAMP, lambda one: one.leaf.kind in ("stream", "table")), spark_words(names):
            return self._catalyst.analysed(run(query, self._catalyst.session))


def run(query: str | Callable[[SparkSession], DataFrame], session: SparkSession) -> DataFrame:
    """The plain DataFrame of a user's query, on a session that has the relations it names."""
    if isinstance(query, str):
        return Catalyst(session).query(with_watermarks(query))
    with Catalyst(session).active():
        frame = query(session)
    if not isinstance(frame, type(session.range(0))):
        raise BadQuery("the view's function gave no DataFrame", hint="return spark.table(...)....")
    return frame

"""Planning the views of a database: from definitions in the catalog to plans of Catalyst."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.catalog import Transaction
from evert.delta.versions import VALID_FROM, VALID_TO, VERSION, Versions
from evert.epoch import spark as on_spark
from evert.errors import Absent, Conflict, Refused
from evert.log.names import folded
from evert.log.topic import Topic
from evert.plan.graph import Plan
from evert.plan.now import CLOCK_ID, WATERMARKS
from evert.version import __version__
from evert.views import definition as definitions
from evert.views import states
from evert.views.definition import DEFAULT_GROUP, Definition, Read
from evert.views.states import OUTPUT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.database import Database
    from evert.plan.catalyst import Catalyst
    from evert.plan.planner import Planner


class Planning:
    """The plans of one database's views, made once in this process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._plans: dict[tuple[int, tuple[Any, ...]], Plan] = {}
        self._versions: dict[int, tuple[int, str]] = {}
        self._planner: Planner | None = None
        self._alone = threading.RLock()
        self.functions: dict[str, Callable[[SparkSession], DataFrame]] = {}

    @property
    def planner(self) -> Planner:
        if self._planner is None:
            from evert.plan.planner import Planner

            session = on_spark.session(self._db.config.spark_master)
            self._try_spark(session)
            self._planner = Planner(session)
        return self._planner

    def _try_spark(self, session: SparkSession) -> None:
        """Does this Spark plan as Evert expects? Asked once for a database, a Spark and an Evert."""
        from evert.plan.selftest import TESTED, self_test

        if session.version in TESTED:
            return
        name = f"spark {session.version}"
        with self._db.catalog.read() as tx:
            if tx.one("SELECT 1 FROM engine WHERE name = ? AND value = ?", name, __version__):
                return
        self_test(session)
        sql = "INSERT INTO engine VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self._db.catalog.write(lambda tx: tx.run(sql, name, __version__))

    @property
    def catalyst(self) -> Catalyst:
        return self.planner.catalyst

    def plan(self, view: Definition) -> Plan:
        """The plan of a view as it was defined: of the columns that its topics had then."""
        with self._alone:
            known = self._plans.get(self._place(view))
            if known is None or known.fingerprint != view.fingerprint:  # a refused view had the same number
                known = self._plans[self._place(view)] = self._make(view)
            return known

    def first(self, view: Definition) -> Plan:
        """The plan of a view that is being defined."""
        self.look()
        with self._alone:
            return self._make(view)

    def keep(self, view: Definition, plan: Plan) -> None:
        """Remember the plan by which a view has been defined."""
        with self._alone:
            self._plans[self._place(view)] = plan

    def _place(self, view: Definition) -> tuple[int, tuple[Any, ...]]:
        """A view has another plan when what it reads has another schema."""
        versions = (r.id if r.kind == "view" else self._versions.get(r.id) for r in view.reads)
        return view.id, tuple(versions)

    def look(self) -> None:
        """See which versions the topics' schemas have now: another one may mean another plan."""
        with self._db.catalog.read() as tx:
            rows = tx.all("SELECT id, schema, options FROM topics")
            views = {number for (number,) in tx.all("SELECT id FROM views")}
        with self._alone:
            self._versions = {number: (schema, options) for number, schema, options in rows}
            for place in [place for place in self._plans if place[0] not in views]:
                del self._plans[place]

    def is_valid(self, view: Definition) -> bool:
        """Whether the state that a view has is of the plan that its query has now."""
        return self.plan(view).fingerprint == view.fingerprint

    def tried(self, query: str | Callable[[SparkSession], DataFrame]) -> Plan:
        """The plan of a query that is not a view."""
        with self._alone:
            self._register(None)
            return self.planner.plan(query)

    def query(self, view: Definition) -> str | Callable[[SparkSession], DataFrame]:
        """What is run: the SQL text, or the function."""
        if view.kind == "sql":
            return view.query
        found = self.functions.get(view.query)
        return found if found is not None else _imported(view)

    def reads(self, plan: Plan) -> tuple[Read, ...]:
        """The relations that a query names, at their present versions."""
        with self._db.catalog.read() as tx:
            found = []
            used = {leaf.id: leaf.used for leaf in plan.leaves}
            for leaf in plan.reads:
                if leaf.of_topic:
                    topic = self._db.log.registry.find(tx, leaf.topic)
                    columns = used.get(leaf.id, ())
                    kind = "versions" if leaf.kind == "versions" else topic.kind
                    found.append(Read(kind, topic.id, topic.name, topic.version, columns))
                elif leaf.kind == "clock" and leaf.id != CLOCK_ID:
                    topic = self._db.log.registry.find(tx, leaf.name.removesuffix(WATERMARKS))
                    found.append(Read(topic.kind, topic.id, topic.name, topic.version, ()))
                elif leaf.kind == "view":
                    below = definitions.find(tx, leaf.name)
                    found.append(Read("view", below.id, below.name))
            return tuple(dict.fromkeys(found))

    def _make(self, view: Definition) -> Plan:
        self._register(view)
        options = view.options
        return self.planner.plan(
            self.query(view), key=options.key, refresh=options.refresh, emit=options.emit
        )

    def _register(self, view: Definition | None) -> None:
        """Tell the planner what there is to read, as a view sees it."""
        planner = self.planner
        own = () if view is None else (view.id, view.replaces)
        with self._db.catalog.read() as tx:
            for topic, columns in self._topics(tx, () if view is None else view.reads):
                stream = topic.kind == "stream"
                planner.relations.register(
                    topic.name,
                    topic.kind,
                    columns,
                    f"t{topic.id}",
                    () if stream else topic.key,  # the key of a stream only keeps rows together
                    append_only=stream and topic.options.views == "keep",
                    event_time=topic.options.event_time if stream else None,
                    forgets=stream and topic.options.forget_after is not None,
                    versions=None if stream else _versions(topic, columns),
                )
            for other in definitions.all(tx):
                if not other.current:
                    continue
                if other.columns is not None and other.id not in own:
                    key = other.key or ()
                    id = f"v{folded(other.name)}"
                    planner.relations.register(other.name, "view", other.columns, id, key, append_only=False)
                else:
                    planner.relations.forget(other.name)

    def _topics(self, tx: Transaction, reads: Iterable[Read]) -> Iterable[tuple[Topic, pa.Schema]]:
        """All topics; those that are read already with the columns they had when that began."""
        bound = {read.id: read.schema for read in reads if read.kind != "view"}
        registry = self._db.log.registry
        for topic in registry.all(tx).values():
            then = registry.at_version(tx, topic, bound.get(topic.id, topic.version))
            yield topic, pa.schema([topic.schema.arrow.field(name) for name in then.schema.names])


def _versions(topic: Topic, columns: pa.Schema) -> Versions | None:
    """What makes versions of a table's rows; nothing does if its own columns have the names that those need."""
    if {name.lower() for name in columns.names} & {VERSION, VALID_FROM, VALID_TO}:
        return None
    time = topic.options.event_time
    key = tuple(columns.names.index(name) for name in topic.key)
    return Versions(columns, key, None if time is None else topic.schema.arrow.field(time), topic.partitions)


def _imported(view: Definition) -> Callable[..., Any]:
    module, _, name = view.query.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise Absent(
            f"the code of the view {view.name} ({view.query}) cannot be imported here",
            hint="run it from the program that defines it, or make its module importable",
            view=view.name,
        ) from error
    return getattr(found, "function", found)


def nodes_of(tx: Transaction, view: Definition, plan: Plan, tables: Mapping[str, str]) -> dict[str, int]:
    """The numbers of the states of a view's nodes, given at the first time.

    `tables` has the fingerprints of the states of tables, by those of their nodes.
    """
    if definitions.by_id(tx, view.id) is None:
        raise Conflict(f"the view {view.name} was dropped", view=view.name)
    known = states.of_view(tx, view.id)
    for node in plan.nodes:
        name = OUTPUT if node is plan.output else node.id
        if name not in known:
            states.add(tx, view.id, name, node.kind, tables.get(node.fingerprint, node.fingerprint))
    return states.of_view(tx, view.id)


def group_of(view: Definition, plan: Plan, upstream: Iterable[Definition]) -> str:
    """The group in which a view lives: its own if it recomputes, else that of what it reads."""
    above = {below.group for below in upstream} - {DEFAULT_GROUP}
    if plan.recomputes:
        group = view.options.group or (view.name if view.name != DEFAULT_GROUP else f"{view.name}_view")
        if len(above) > 1:
            raise _apart(view, above)
        if group == DEFAULT_GROUP or any(below.group == group for below in upstream):
            raise Refused(
                f"the view {view.name} is recomputed, so it needs a group of its own",
                hint=f"it is recomputed because of {plan.recomputes}; leave group= out",
                view=view.name,
            )
        return group
    group = view.options.group or next(iter(above), DEFAULT_GROUP)
    if above - {group}:
        raise _apart(view, above | {group})
    return group


def _apart(view: Definition, groups: set[str]) -> Refused:
    return Refused(
        f"the view {view.name} reads views of the groups {', '.join(sorted(groups))}, which are not at one"
        " position",
        hint="put the views it reads into one group with group=",
        view=view.name,
    )


def explained(plan: Plan) -> str:
    return json.dumps([str(line) for line in plan.explain])

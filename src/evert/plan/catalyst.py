"""Spark's planner, driven from Python: placeholders in, analysed and optimised plans out.

With `expressions`, here is all of this package that calls into the JVM; others walk the plans that it gives.
The rules are Spark's own, in its order; those left out would add state, belong to a physical plan, or are done
again when a piece runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.errors import Unsupported
from evert.plan import as_of
from evert.plan.expressions import CATALYST, Expressions, Package, name_of, unnamed
from evert.plan.nesting import Nesting
from evert.plan.tree import Column, Term
from evert.schema.types import Atom, DataType
from evert.trace.horizon import DAY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.plan.chains import Through

LEFT_OUT = frozenset(
    {
        "CheckCartesianProducts",
        "CostBasedJoinReorder",
        "DecimalAggregates",
        "ExtractPythonUDFs",
        "ExtractPythonUDTFs",
        "InferWindowGroupLimit",
        "InjectRuntimeFilter",
        "LimitPushDown",
        "LimitPushDownThroughWindow",
        "MarkSingleTaskExecution",
        "MergeScalarSubqueries",
        "MergeSubplans",
        "NormalizeFloatingNumbers",
        "OptimizeCsvJsonExprs",
        "OptimizeExpand",
        "OptimizeMetadataOnlyQuery",
        "PartitionPruning",
        "PushDownJoinThroughUnion",
        "ReplaceCTERefWithRepartition",
        "RewriteDistinctAggregates",
        "RewriteNonCorrelatedExists",
        "RowLevelOperationRuntimeGroupFiltering",
    }
)
"""Rules of Spark's optimizer that views are planned without."""

_PARTS = "evert.parts"
ROWLESS = "a placeholder of a view has no rows"
"""What Spark says when a query is run on placeholders."""

_PASSES = 4
_ROUNDS = 20
_PLANNING = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.debug.maxToStringFields": "100000",
}


class Catalyst(Expressions):
    """The planner of one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._java: Any = session._jsparkSession
        super().__init__(session._jvm, str(session.conf.get("spark.sql.session.timeZone")))
        self._plans: Any = Package(self._jvm.org.apache.spark.sql.catalyst.plans.logical)
        self._datasets = self._jvm.org.apache.spark.sql.classic.Dataset

    @cached_property
    def even_days(self) -> bool:
        """Whether all days of the session's time zone have 24 hours."""
        times = self.module(f"{CATALYST}.util.DateTimeUtils")
        zone = times.getZoneId(str(self.session.conf.get("spark.sql.session.timeZone")))
        return bool(zone.getRules().isFixedOffset())

    @cached_property
    def is_ansi(self) -> bool:
        """Whether arithmetic that overflows fails, and does not wrap around."""
        return self.session.conf.get("spark.sql.ansi.enabled") == "true"

    @classmethod
    def planning(cls, session: SparkSession) -> Catalyst:
        """A planner beside the session, with its settings and functions, whose tables are placeholders."""
        if not hasattr(session, "_jsparkSession"):
            raise Unsupported(
                "views need a classic Spark session, and this one is of Spark Connect",
                hint="start it without remote()",
            )
        beside = type(session)(session.sparkContext, session._jsparkSession.cloneSession())
        for name, value in _PLANNING.items():
            beside.conf.set(name, value)
        return cls(beside)

    def placeholder(self, name: str, ddl: str) -> int:
        """A relation of this name to plan with; what is given is how `relation` finds it in plans."""
        schema = self._jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)
        rdd = self._rowless.coalesce(1).rdd()
        frame = self._java.internalCreateDataFrame(rdd, schema, False)
        frame.createOrReplaceTempView("`" + name.replace("`", "``") + "`")
        return int(rdd.id())

    @cached_property
    def _rowless(self) -> Any:
        """Rows that cannot be had: a function that counts or pivots while it is planned must not see nothing."""
        frame = self.session.range(1).selectExpr(f"raise_error('{ROWLESS}') as x")
        return frame._jdf.queryExecution().toRdd().toJavaRDD()

    def forget(self, name: str) -> None:
        """The placeholder of this name is gone, if there was one."""
        self.session.catalog.dropTempView(name)

    @staticmethod
    def relation(plan: Any) -> int | None:
        """The placeholder that a leaf of a plan is, if it is one."""
        return int(plan.rdd().id()) if plan.getClass().getSimpleName() == "LogicalRDD" else None

    def query(self, text: str) -> DataFrame:
        """The frame of one query; other statements are refused by the parser, so nothing is executed here."""
        with self.quietly(), self.active():
            return self.frame(as_of.parsed(self, self._parser.parseQuery, text))

    @property
    def _parser(self) -> Any:
        return self._java.sessionState().sqlParser()

    def term(self, text: str) -> Term:
        """An expression as the parser reads it; nothing in it is resolved."""
        return self._parser.parseExpression(text)

    def later(self, time: Term, by: int) -> Term:
        """A TIMESTAMP so many microseconds after a time."""
        is_moment = time.dataType().typeName() == "timestamp"
        if is_moment and not by:
            return time
        if is_moment and (abs(by) < DAY or self.even_days):
            length = self.term(f"INTERVAL '{by / 1e6:.6f}' SECOND")
            return self._of.TimestampAddInterval(time, length, self._zone)
        number, moment = self.java_type(Atom("BIGINT")), self.java_type(Atom("TIMESTAMP"))
        micros = self._of.PreciseTimestampConversion(time, time.dataType(), number)
        moved = self._of.Add(micros, self.cast(self.literal(by), number))
        return self._of.PreciseTimestampConversion(moved, number, moment)

    def unresolved(self, name: str) -> Any:
        """A relation by its name, which is looked up when the plan is analysed."""
        return self._parser.parseQuery("TABLE `" + name.replace("`", "``") + "`")

    def named(self, plan: Any, name: str) -> Any:
        return self.module(f"{CATALYST}.plans.logical.SubqueryAlias").apply(name, plan)

    def filtered(self, plan: Any, condition: Term) -> Any:
        return self._plans.Filter(condition, plan)

    def joined(self, join: Any, right: Any, condition: Term) -> Any:
        """The join with another right side and condition."""
        return join.copy(join.left(), right, join.joinType(), self.option(condition), join.hint())

    def join_of(self, join: Any, left: Any, right: Any, kind: str) -> Any:
        """A join of another kind, by the same condition."""
        return join.copy(left, right, self.module(f"{CATALYST}.plans.{kind}"), join.condition(), join.hint())

    def union(self, plans: Sequence[Any]) -> Any:
        return self._plans.Union(self.sequence(plans), False, False)

    def projected(self, plan: Any, named: Sequence[Term]) -> Any:
        return self._plans.Project(self.sequence(named), plan)

    def rebuilt(self, node: Any, change: Callable[[Any], Any]) -> Any:
        """An operator or expression with all plans in it changed: children, subqueries, the queries of a WITH."""
        old = [node.productElement(place) for place in range(node.productArity())]
        new = [self._changed(part, change) for part in old]
        if all(after is before for after, before in zip(new, old, strict=True)):
            return node
        array = self.session._sc._gateway.new_array(self._jvm.java.lang.Object, len(new))
        for place, part in enumerate(new):
            array[place] = part
        return node.makeCopy(array)

    def _changed(self, part: Any, change: Callable[[Any], Any]) -> Any:
        """A parameter of an operator with the plans in it changed; the same if there are none."""
        kinds = self._kinds
        if not hasattr(part, "_target_id"):  # a number or a text
            return part
        if kinds["plan"].isInstance(part):
            return change(part)
        if kinds["node"].isInstance(part):
            return self.rebuilt(part, change) if self.has_subqueries(part) else part
        if kinds["sequence"].isInstance(part):
            return self._all_changed(part, self.items(part), self.sequence, change)
        if kinds["some"].isInstance(part):
            return self._all_changed(part, [part.get()], lambda one: self.option(one[0]), change)
        name = name_of(part)
        if name.startswith("Tuple"):
            items = [part.productElement(place) for place in range(part.productArity())]
            return self._all_changed(part, items, lambda new: getattr(self._jvm.scala, name)(*new), change)
        return part

    def _all_changed(
        self, whole: Any, old: list[Any], made: Callable[[list[Any]], Any], change: Callable[[Any], Any]
    ) -> Any:
        new = [self._changed(part, change) for part in old]
        return whole if all(a is b for a, b in zip(new, old, strict=True)) else made(new)

    @cached_property
    def _kinds(self) -> dict[str, Any]:
        names = {
            "plan": f"{CATALYST}.plans.logical.LogicalPlan",
            "node": f"{CATALYST}.trees.TreeNode",
            "sequence": "scala.collection.Seq",
            "some": "scala.Some",
        }
        return {kind: self.java_class(name) for kind, name in names.items()}

    def without(self, name: str, plan: Any) -> Any:
        """The plan without its columns of this name."""
        kept = [column for column in self.items(plan.output()) if column.name() != name]
        return self.projected(plan, kept)

    def value_of(self, query: str) -> Term:
        """A scalar subquery."""
        return unnamed(self.analysed(self.query(f"SELECT ({query})")).projectList().apply(0))

    def frame(self, plan: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self._datasets.ofRows(self._java, plan), self.session)

    @staticmethod
    def analysed(frame: DataFrame) -> Any:
        return frame._jdf.queryExecution().analyzed()

    def constant_rows(self, plan: Any, schema: pa.Schema, most: int) -> tuple[int, pa.Table | None]:
        """How many rows a constant has, and, unless there are too many, these rows with their weights."""
        sizes = {"LocalRelation": lambda: plan.data().length(), "Range": lambda: plan.numElements()}
        count = int(sizes.get(plan.getClass().getSimpleName(), lambda: 1)())
        if count > most:
            return count, None
        frame = self.frame(plan)
        columns = zip(schema.names, self.items(plan.output()), strict=True)
        weighted = [*columns, ("__w", self._literals.apply(1))]
        rows = self.project(frame, weighted).toArrow()
        return count, rows.cast(schema.append(pa.field("__w", pa.int64())))

    def merging(
        self, kinds: Sequence[DataType], keys: int, calls: Sequence[str]
    ) -> tuple[Any, tuple[Column, ...], tuple[Column, ...]]:
        """The operator that merges, by the first so many columns of these types, the others by calls of `{}`; what
        it takes, and what it gives.

        It takes one more INT and groups by it too: without a group there would be a row even of nothing.
        """
        names = [f"c{place}" for place in range(len(kinds))]
        columns = [f"{name} {kind.ddl()}" for name, kind in zip(names, kinds, strict=True)]
        made = [f"{call.format(name)} AS {name}" for call, name in zip(calls, names[keys:], strict=True)]
        self.placeholder(_PARTS, ", ".join([*columns, "k INT"]))
        try:
            chosen, by = ", ".join([*names[:keys], *made]), ", ".join([*names[:keys], "k"])
            text = f"SELECT {chosen} FROM `{_PARTS}` GROUP BY {by}"
            operator = self.optimise(self.analysed(self.query(text)))
        finally:
            self.forget(_PARTS)
        takes, gives = (
            tuple(self.column(one) for one in self.items(one.output()))
            for one in (operator.child(), operator)
        )
        return operator, takes, gives

    def over_nothing(self, plan: Any, schema: pa.Schema) -> pa.Table:
        """The row that an aggregate of all rows gives if there are none."""
        empty = self._plans.LocalRelation(plan.child().output(), self._nil, False, self._none)
        rows = self.frame(plan.withNewChildren(self.sequence([empty]))).toArrow()
        return rows.rename_columns(schema.names).cast(schema)

    def classes(self, plan: Any) -> list[dict[str, Any]]:
        """Every operator and expression of a plan, subqueries included, with its plain parameters."""
        return list(_nested(json.loads(plan.toJSON())))

    def has_pattern(self, plan: Any, name: str) -> bool:
        """Whether there is such a part anywhere in a plan, by Spark's name for its pattern."""
        pattern = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.withName(name)
        return bool(plan.containsPattern(pattern))

    def leaves(self, plan: Any) -> list[Any]:
        """The leaves of a plan and of the subqueries in it."""
        plans = [plan, *self.items(plan.subqueriesAll())]
        return [leaf for one in plans for leaf in self.items(one.collectLeaves())]

    def constants(self, plan: Any) -> list[str]:
        """The rows that a query brings along, as text: a plan does not print them."""
        leaves = [leaf for leaf in self.leaves(plan) if leaf.getClass().getSimpleName() == "LocalRelation"]
        return [leaf.data().toString() for leaf in leaves]

    def optimise(self, plan: Any) -> Any:
        """The plan after all rules; passes repeat since one may inline a subquery that the next optimises."""
        # IN stays a list: a set has no order, so no fingerprint; Spark makes the set when the chain runs.
        with self.active(), self.setting("spark.sql.optimizer.inSetConversionThreshold", "1000000"):
            for _ in range(_PASSES):
                start = plan
                for rounds, rules in self._batches:
                    plan = _fixed_point(plan, rules, rounds)
                if plan.canonicalized().fastEquals(start.canonicalized()):
                    break
        return plan

    def optimised_subquery(self, query: Term) -> Term:
        """A subquery whose plan is optimised for itself; what it is asked for and refers to stays."""
        return query.withNewPlan(self.optimise(self._plans.Subquery.fromExpression(query)).child())

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """With another value of a setting of the session."""
        before = self.session.conf.get(name)
        self.session.conf.set(name, value)
        try:
            yield
        finally:
            self.session.conf.set(name, str(before))

    @cached_property
    def _batches(self) -> list[tuple[int, list[Any]]]:
        """Spark's rules, in the place of one of them our own."""
        batches = []
        for batch in self.items(self._java.sessionState().optimizer().defaultBatches()):
            rules = []
            for rule in self.items(batch.rules()):
                name = rule.ruleName().replace("$", ".").split(".")[-1]
                if name == "OptimizeSubqueries":
                    rules.append(Nesting(self))
                elif name not in LEFT_OUT:
                    rules.append(rule)
            if rules:
                batches.append((min(batch.strategy().maxIterations(), _ROUNDS), rules))
        return batches

    def project(self, frame: DataFrame, columns: Sequence[tuple[str, Term]]) -> DataFrame:
        """The frame with these columns only; terms refer to the frame's attributes."""
        from pyspark.sql import DataFrame

        named = self.sequence(self.alias(term, name) for name, term in columns)
        plan = self._plans.Project(named, self.analysed(frame))
        session = frame.sparkSession
        return DataFrame(self._datasets.ofRows(session._jsparkSession, plan), session)

    def attribute(self, frame: DataFrame, name: str) -> Term:
        """The attribute of this name in the frame's plan."""
        for attribute in self.items(self.analysed(frame).output()):
            if attribute.name() == name:
                return attribute
        raise KeyError(name)

    def structs(self, plan: Any, attribute: Term, term: Term, *, many: bool) -> tuple[Any, Term]:
        """A plan of the structs that the term, or each element of it, is where the attribute is not NULL."""
        there = self._plans.Filter(self.is_not_null(attribute), plan)
        named = self.alias(self._of.Explode(term) if many else term, "row")
        made = self.analysed(self.frame(self._plans.Project(self.sequence([named]), there)))
        (row,) = self.items(made.output())
        return self._plans.Filter(self.is_not_null(row), made), row

    def operated(self, plan: Any, row: Term, through: Through) -> tuple[Any, Term]:
        """The plan's structs laid out as the columns that operators take, the operators, and structs again."""
        weight = self.alias(self.field(row, len(through.takes)), "__w")
        columns = [self.alias(self.field(row, i), c.name, c, whole=True) for i, c in enumerate(through.takes)]
        plan = self._plans.Project(self.sequence([*columns, *([weight] if through.weighted else [])]), plan)
        for operator in through.operators:
            if through.weighted and operator.getClass().getSimpleName() == "Project":
                chosen = [*self.items(operator.projectList()), weight.toAttribute()]
                plan = self._plans.Project(self.sequence(chosen), plan)
            else:
                plan = operator.withNewChildren(self.sequence([plan]))
        once = self.cast(self.literal(1), weight.dataType())
        terms = [*(c.term for c in through.gives), weight.toAttribute() if through.weighted else once]
        names = [*(f"c{i}" for i in range(len(through.gives))), "__w"]
        packed = self.alias(self.struct(names, terms), "row")
        return self._plans.Project(self.sequence([packed]), plan), packed.toAttribute()

    def computing(self, columns: Sequence[Column], made: Sequence[tuple[Column, Term]]) -> Any:
        """An operator that gives these columns of what it is put on, and computes others."""
        terms = [*(c.term for c in columns), *(self.alias(term, c.name, c) for c, term in made)]
        return self._plans.Project(self.sequence(terms), self._plans.OneRowRelation())

    def stage(self, frame: DataFrame) -> DataFrame:
        """The frame with its physical plan fixed, so that nothing of what reads it is pushed down into it."""
        query = frame._jdf.queryExecution()
        stages = self._jvm.org.apache.spark.sql.execution.adaptive
        return self.frame(stages.LogicalQueryStage(query.optimizedPlan(), query.sparkPlan()))

    def ordered_by_all(self, plan: Any) -> Any:
        """The plan ordered by all columns that have an order, after what it is ordered by already."""
        first, child = [], plan
        if plan.getClass().getSimpleName() == "Sort":
            first, child = self.items(plan.order()), plan.child()
        able = [one for one in self.items(child.output()) if self._has_order(one)]
        ascending = self.module(f"{CATALYST}.expressions.Ascending")
        order = [
            self._of.SortOrder(one, ascending, ascending.defaultNullOrdering(), self._nil) for one in able
        ]
        return self._plans.Sort(self.sequence([*first, *order]), True, child, self._none)

    def in_order(self, plan: Any) -> Any:
        """The plan's rows in one partition, ordered by all columns, whatever reads them."""
        return self.analysed(self.stage(self.frame(self.ordered_by_all(plan)).coalesce(1)))

    def _has_order(self, attribute: Any) -> bool:
        """Asked for a list of expressions: a STRUCT's type is a list too, and Py4J might take it for one."""
        return bool(self._of.RowOrdering.isOrderable(self.sequence([attribute])))

    def sharing(self) -> Callable[[Any], Any]:
        """What makes equal exchanges of a physical plan one, so that what branches read is computed once.

        Spark does so when it plans, but a copy of such a plan would still refer to the exchanges of the plan
        that it is a copy of, and to what they gave then.
        """
        rule = self.module("org.apache.spark.sql.execution.reuse.ReuseExchangeAndSubquery")
        return lambda plan: rule.apply(plan)

    def guarded(self, attribute: Term, term: Term) -> Term:
        """The term where the attribute is not NULL, else NULL without evaluating it."""
        return self.when(self.is_not_null(attribute), term)

    @staticmethod
    def running() -> SparkSession | None:
        """The Spark that this process has, if it has one that goes on."""
        from pyspark.sql import SparkSession

        there = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if there is None or not hasattr(there, "_jsparkSession"):
            return None
        return None if there.sparkContext._jsc.sc().isStopped() else there

    @staticmethod
    def physical(frame: DataFrame) -> Any:
        """The physical plan of a DataFrame."""
        return frame._jdf.queryExecution().executedPlan()

    @classmethod
    def executed(cls, plan: Any, prepared: Callable[[Any], Any], *, column: int) -> list[str]:
        """Run a copy of a physical plan; one column of its rows, whose bytes are those of a text."""
        with cls.quietly():
            rows = prepared(plan.clone()).executeCollect()
        return [rows[i].getUTF8String(column).toString() for i in range(len(rows))]

    @staticmethod
    def job_errors() -> tuple[type[Exception], ...]:
        """What a job that fails raises."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        return Py4JJavaError, PySparkException

    @staticmethod
    def reason(error: Any) -> str:
        """What a job's error says at its core, without the stages and stack traces around it."""
        failure = getattr(error, "java_exception", None)
        if failure is None:
            return str(error)
        while failure.getCause() is not None:
            failure = failure.getCause()
        return str(failure.getMessage() or failure.toString())

    @staticmethod
    def query_errors() -> tuple[type[Exception], ...]:
        """What Spark raises for a query that it cannot read."""
        from pyspark.errors import AnalysisException, ParseException

        return AnalysisException, ParseException

    @staticmethod
    def failures() -> tuple[type[Exception], ...]:
        """What may be raised while a plan is optimised and rewritten."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        return Py4JError, PySparkException

    @contextmanager
    def active(self) -> Iterator[None]:
        """Parser and rules read the settings of the thread's active session: let it be this one."""
        sessions = self._jvm.org.apache.spark.sql.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._java)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    @staticmethod
    @contextmanager
    def quietly() -> Iterator[None]:
        """PySpark logs an error of a query beside raising it; it is told once."""
        from pyspark.logger import PySparkLogger

        logger = PySparkLogger.getLogger("SQLQueryContextLogger")
        before = logger.disabled
        logger.disabled = True
        try:
            yield
        finally:
            logger.disabled = before


def _nested(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _nested(one)
    elif isinstance(value, dict):
        if "class" in value:
            yield {**value, "class": value["class"].rpartition(".")[2].rstrip("$")}
        for one in value.values():
            yield from _nested(one)


def _fixed_point(plan: Any, rules: list[Any], rounds: int) -> Any:
    for _ in range(rounds):
        before = plan
        for rule in rules:
            plan = rule.apply(plan)
        if rounds == 1 or plan.fastEquals(before):
            break
    return plan

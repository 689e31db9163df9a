"""Spark's planner, driven from Python: placeholders in, analysed and optimised plans out.

Here is all of this package that calls into the JVM; `reading` walks the plans that it gives. The rule objects are
Spark's own, in Spark's order; those left out would add state, belong to a physical plan, or are done again when a
piece runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.errors import Unsupported
from evert.plan.tree import Column, Term
from evert.schema.types import DataType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEFT_OUT = frozenset(
    {
        "CheckCartesianProducts",
        "CostBasedJoinReorder",
        "DecimalAggregates",
        "ExtractGroupingPythonUDFFromAggregate",
        "ExtractPythonUDFFromAggregate",
        "ExtractPythonUDFFromJoinCondition",
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
        "OptimizeSubqueries",
        "PartitionPruning",
        "PushDownJoinThroughUnion",
        "ReplaceCTERefWithRepartition",
        "RewriteDistinctAggregates",
        "RewriteNonCorrelatedExists",
        "RowLevelOperationRuntimeGroupFiltering",
    }
)
"""Rules of Spark's optimizer that views are planned without."""

ROWLESS = "a placeholder of a view has no rows"
"""What Spark says when a query is run on placeholders."""

_PASSES = 4
_ROUNDS = 20
_PLANNING = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.debug.maxToStringFields": "100000",
}


_CATALYST = "org.apache.spark.sql.catalyst"


class Expressions:
    """Builds resolved expressions in the JVM of one session."""

    def __init__(self, jvm: Any, time_zone: str) -> None:
        self._jvm = jvm
        self._zone = jvm.scala.Option.apply(time_zone)
        self._none = jvm.scala.Option.empty()
        self._nil = self.sequence([])
        self._of = jvm.org.apache.spark.sql.catalyst.expressions
        self._names = self.module(f"{_CATALYST}.expressions.NamedExpression")
        self._literals = self.module(f"{_CATALYST}.expressions.Literal")
        self._modes = self.module(f"{_CATALYST}.expressions.EvalMode")
        self._collapse = self.module(f"{_CATALYST}.optimizer.CollapseProject")
        self._types: dict[str, Any] = {}

    def module(self, name: str) -> Any:
        """A Scala object; not all of them have static forwarders that py4j could call."""
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        field = self._jvm.java.lang.Class.forName(name + "$", True, loader).getField("MODULE$")
        return field.get(None)

    def sequence(self, items: Iterable[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(list(items))

    @staticmethod
    def items(sequence: Any) -> list[Any]:
        return [sequence.apply(i) for i in range(sequence.length())]

    def java_type(self, kind: DataType) -> Any:
        """The Spark type, nullable wherever the text of a type cannot say otherwise."""
        ddl = kind.ddl()
        if ddl not in self._types:
            struct = self._jvm.org.apache.spark.sql.types.StructType.fromDDL(f"x {ddl}")
            self._types[ddl] = struct.apply(0).dataType()
        return self._types[ddl]

    def column(self, attribute: Any) -> Column:
        return Column(attribute.exprId().id(), attribute.name(), attribute)

    def fresh_column(self, name: str, kind: DataType) -> Column:
        """A new attribute that nothing defines yet."""
        return self.column(self.alias(self.null(self.java_type(kind)), name).toAttribute())

    def alias(self, term: Term, name: str, column: Column | None = None) -> Any:
        """The term under a name: that of a fresh attribute, or of the column it is to define."""
        identity = self._names.newExprId() if column is None else column.term.exprId()
        return self._of.Alias(term, name, identity, self._nil, self._none, self._nil)

    def null(self, java_type: Any) -> Term:
        return self._of.Literal(None, java_type)

    def literal(self, value: str | bool | int) -> Term:
        """A STRING, BOOLEAN or INT literal."""
        return self._literals.apply(value)

    def field(self, struct: Term, index: int) -> Term:
        return self._of.GetStructField(struct, index, self._none)

    def struct(self, names: Sequence[str], terms: Sequence[Term]) -> Term:
        parts = [part for name, term in zip(names, terms, strict=True) for part in (self.literal(name), term)]
        return self._of.CreateNamedStruct(self.sequence(parts))

    def when(self, condition: Term, then: Term, otherwise: Term | None = None) -> Term:
        """`if(condition, then, otherwise)`, NULL otherwise if nothing is given."""
        return self._of.If(condition, then, self.null(then.dataType()) if otherwise is None else otherwise)

    def both(self, terms: Sequence[Term]) -> Term:
        result = terms[0]
        for term in terms[1:]:
            result = self._of.And(result, term)
        return result

    def is_not_null(self, term: Term) -> Term:
        return self._of.IsNotNull(term)

    def cast(self, term: Term, java_type: Any, mode: Any = None) -> Term:
        """The term in another type; without a mode, one that cannot fail."""
        return self._of.Cast(term, java_type, self._zone, self._modes.LEGACY() if mode is None else mode)

    @staticmethod
    def evaluation_mode(function: Any) -> Any:
        """What a sum or average does on overflow: raise, wrap or give NULL."""
        has_context = function.getClass().getSimpleName() == "Sum"
        return (function.evalContext() if has_context else function).evalMode()

    def fit(self, term: Term, kind: DataType) -> Term:
        """The term in exactly this type, and nullable."""
        wanted = self.java_type(kind)
        if not term.dataType().equals(wanted):
            term = self.cast(term, wanted)
        return term if term.nullable() else self._of.KnownNullable(term)

    def same(self, term: Term, column: Column) -> Term:
        """The term in the type of the column, however nullable its parts are."""
        wanted = column.term.dataType()
        return term if term.dataType().sameType(wanted) else self.cast(term, wanted)

    def scope(self, columns: Sequence[Column], terms: Sequence[Term]) -> Any:
        """What columns mean, for `substitute`."""
        pairs = zip(columns, terms, strict=True)
        return self._collapse.getAliasMap(
            self.sequence(self.alias(term, column.name, column) for column, term in pairs)
        )

    def substitute(self, term: Term, scope: Any) -> Term:
        """The term with every column replaced by what it means in the scope."""
        return self._collapse.replaceAlias(term, scope)

    def may_inline(self, consumers: Sequence[Term], columns: Sequence[Column], terms: Sequence[Term]) -> bool:
        """Whether writing the columns' terms in place of the columns costs nothing, as Spark judges it."""
        pairs = zip(columns, terms, strict=True)
        producers = self.sequence(self.alias(term, column.name, column) for column, term in pairs)
        return bool(self._collapse.canCollapseExpressions(self.sequence(consumers), producers, False))

    def array(self, terms: Sequence[Term]) -> Term:
        return self._of.CreateArray(self.sequence(terms), False)

    def first(self, array: Term) -> Term:
        return self._of.GetArrayItem(array, self.literal(0), False)

    def has_elements(self, array: Term) -> Term:
        return self._of.GreaterThan(self._of.Size(array, False), self.literal(0))

    def or_empty(self, array: Term) -> Term:
        return self._of.Coalesce(self.sequence([array, self._literals.default(array.dataType())]))

    def flatten(self, array: Term) -> Term:
        return self._of.Flatten(array)

    def transform(self, array: Term, body: Callable[[Term], Term]) -> Term:
        return self._of.ArrayTransform(array, self._lambda(array, body))

    def without_nulls(self, array: Term) -> Term:
        return self._of.ArrayFilter(array, self._lambda(array, self.is_not_null))

    def numbered(self, array: Term, *, flat: bool) -> Term:
        """`array<struct<pos, col>>` as `posexplode` numbers elements; entries of a map are laid flat."""
        element = self._variable("x", array.dataType().elementType())
        index = self._variable("i", self.literal(0).dataType())
        values = [self.field(element, 0), self.field(element, 1)] if flat else [element]
        body = self.struct(["pos", "col", "value"][: 1 + len(values)], [index, *values])
        return self._of.ArrayTransform(
            array, self._of.LambdaFunction(body, self.sequence([element, index]), False)
        )

    def entries(self, term: Term) -> Term:
        """`array<struct<key, value>>` of a map."""
        return self._of.MapEntries(term)

    def repeat(self, term: Term, count: Term) -> Term:
        return self._of.ArrayRepeat(term, self.cast(count, self.literal(0).dataType()))

    def split_aggregate(self, plan: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Grouping and result expressions, both named, and the aggregate calls that results refer to."""
        planning = self._jvm.org.apache.spark.sql.catalyst.planning
        parts = planning.PhysicalAggregation.unapply(plan).get()
        return self.items(parts._1()), self.items(parts._2()), self.items(parts._3())

    @staticmethod
    def attribute_id(term: Term) -> int | None:
        """The column that the term is, if it is nothing but one."""
        return int(term.exprId().id()) if term.getClass().getSimpleName() == "AttributeReference" else None

    def _lambda(self, array: Term, body: Callable[[Term], Term]) -> Any:
        variable = self._variable("x", array.dataType().elementType())
        return self._of.LambdaFunction(body(variable), self.sequence([variable]), False)

    def _variable(self, name: str, java_type: Any) -> Term:
        cell = self._jvm.java.util.concurrent.atomic.AtomicReference()
        return self._of.NamedLambdaVariable(name, java_type, True, self._names.newExprId(), cell)


class Catalyst(Expressions):
    """The planner of one session."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._java: Any = session._jsparkSession
        super().__init__(session._jvm, str(session.conf.get("spark.sql.session.timeZone")))
        self._plans = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._datasets = self._jvm.org.apache.spark.sql.classic.Dataset

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
            return self.frame(self._java.sessionState().sqlParser().parseQuery(text))

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

    def classes(self, plan: Any) -> list[dict[str, Any]]:
        """Every operator and expression of a plan, subqueries included, with its plain parameters."""
        return list(_nested(json.loads(plan.toJSON())))

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
        with self.active(), self._with_lists():
            for _ in range(_PASSES):
                start = plan
                for rounds, rules in self._batches:
                    plan = _fixed_point(plan, rules, rounds)
                if plan.canonicalized().fastEquals(start.canonicalized()):
                    break
        return plan

    @contextmanager
    def _with_lists(self) -> Iterator[None]:
        """IN stays a list: a set has no order, so no fingerprint; Spark makes the set when the chain runs."""
        name = "spark.sql.optimizer.inSetConversionThreshold"
        before = self.session.conf.get(name)
        self.session.conf.set(name, "1000000")
        try:
            yield
        finally:
            self.session.conf.set(name, str(before))

    @cached_property
    def _batches(self) -> list[tuple[int, list[Any]]]:
        batches = []
        for batch in self.items(self._java.sessionState().optimizer().defaultBatches()):
            rules = [
                rule
                for rule in self.items(batch.rules())
                if rule.ruleName().replace("$", ".").split(".")[-1] not in LEFT_OUT
            ]
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

    def guarded(self, attribute: Term, term: Term) -> Term:
        """The term where the attribute is not NULL, else NULL without evaluating it."""
        return self.when(self.is_not_null(attribute), term)

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

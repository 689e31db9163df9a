"""Catalyst's expressions, built from Python: resolved ones, of attributes and other expressions.

Every call goes into the JVM, and costs about a tenth of a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from evert.plan.tree import Column, Term
from evert.schema.types import DataType

CATALYST = "org.apache.spark.sql.catalyst"
SUBQUERIES = frozenset({"Exists", "LateralSubquery", "ListQuery", "ScalarSubquery"})


def name_of(thing: Any) -> str:
    """The name of the class of a plan's operator, an expression, or a Scala object."""
    return str(thing.getClass().getSimpleName()).rstrip("$")


def unnamed(term: Any) -> Term:
    """What an alias names; any other term is itself."""
    return term.child() if name_of(term) == "Alias" else term


def conjuncts(term: Term) -> Iterator[Term]:
    """The conditions that must all hold for one to hold."""
    if name_of(term) == "And":
        yield from conjuncts(term.left())
        yield from conjuncts(term.right())
    else:
        yield term


def mentions(term: Any, name: str) -> bool:
    """Whether an expression of this class is in a term or a plan."""
    return f"catalyst.expressions.{name}" in term.toJSON()


class Package:
    """The classes of a Java package, each looked up once: every look is a call into the JVM."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._package, name)
        setattr(self, name, found)
        return found


class Expressions:
    """Builds resolved expressions in the JVM of one session."""

    def __init__(self, jvm: Any, time_zone: str) -> None:
        self._jvm = jvm
        self._option = jvm.scala.Option
        self._to_sequence = jvm.PythonUtils.toSeq
        self._zone = self._option.apply(time_zone)
        self._none = self._option.empty()
        self._nil = self.sequence([])
        self._of: Any = Package(jvm.org.apache.spark.sql.catalyst.expressions)
        self._names = self.module(f"{CATALYST}.expressions.NamedExpression")
        self._literals = self.module(f"{CATALYST}.expressions.Literal")
        self._modes = self.module(f"{CATALYST}.expressions.EvalMode")
        self._attributes = self.module(f"{CATALYST}.expressions.AttributeSet")
        self._collapse = self.module(f"{CATALYST}.optimizer.CollapseProject")
        patterns = self.module(f"{CATALYST}.trees.TreePattern")
        self._subquery, self._reference_outside = patterns.PLAN_EXPRESSION(), patterns.OUTER_REFERENCE()
        self._of_now = patterns.CURRENT_LIKE()
        self._replaceable = self.java_class(f"{CATALYST}.expressions.RuntimeReplaceable")
        self._types: dict[str, Any] = {}

    def module(self, name: str) -> Any:
        """A Scala object; not all of them have static forwarders that py4j could call."""
        return self.java_class(name + "$").getField("MODULE$").get(None)

    def java_class(self, name: str) -> Any:
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self._jvm.java.lang.Class.forName(name, True, loader)

    def is_replaceable(self, term: Term) -> bool:
        """Whether a term is only another way to write one."""
        return bool(self._replaceable.isInstance(term))

    def option(self, value: Any) -> Any:
        return self._option.apply(value)

    def sequence(self, items: Iterable[Any]) -> Any:
        return self._to_sequence(list(items))

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

    def alias(self, term: Term, name: str, column: Column | None = None, *, whole: bool = False) -> Any:
        """The term under a name: that of a fresh attribute, or of the column it is to define.

        `whole` keeps what Spark has noted about that column, such as that it is a session's window.
        """
        identity = self._names.newExprId() if column is None else column.term.exprId()
        about = self._option.apply(column.term.metadata()) if whole and column is not None else self._none
        return self._of.Alias(term, name, identity, self._nil, about, self._nil)

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

    def after(self, one: Term, two: Term) -> Term:
        return self._of.GreaterThan(one, two)

    def not_before(self, one: Term, two: Term) -> Term:
        return self._of.GreaterThanOrEqual(one, two)

    def within(self, moment: Term, begin: Term, end: Term) -> Term:
        """Whether a time is not before the begin, and before the end if there is one."""
        ended = self._of.Or(self._of.IsNull(end), self._of.LessThan(moment, end))
        return self._of.And(self._of.LessThanOrEqual(begin, moment), ended)

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

    def aggregate_also_by(self, plan: Any, columns: Sequence[Term]) -> Any:
        """An aggregate that groups by these columns too, and gives them behind its own."""
        parts = plan.groupingExpressions(), plan.aggregateExpressions()
        both = [self.sequence([*self.items(part), *columns]) for part in parts]
        return plan.copy(*both, plan.child(), plan.hint())

    def aggregate_of(self, plan: Any, keys: Sequence[Term], named: Sequence[Any]) -> Any:
        """An aggregate by these keys that gives other columns, over what another one aggregates."""
        return plan.copy(self.sequence(keys), self.sequence(named), plan.child(), plan.hint())

    def foreign(self, terms: Sequence[Term]) -> bool:
        """Whether one of the terms calls a function in Python."""
        return any(mentions(term, "PythonUDF") for term in terms)

    def scalar_subqueries(self, terms: Sequence[Term]) -> list[Term]:
        """The scalar subqueries in these terms, each once."""
        return self._outermost(terms, "ScalarSubquery", lambda query: True)

    def python_calls(self, terms: Sequence[Term], given: Any) -> list[Term]:
        """The calls of functions in Python in these terms that need no other attributes, each once."""
        return self._outermost(terms, "PythonUDF", lambda call: call.references().subsetOf(given))

    def _outermost(self, terms: Sequence[Term], name: str, taken: Callable[[Term], bool]) -> list[Term]:
        found: list[Term] = []
        waiting = [term for term in terms if mentions(term, name)]
        while waiting:
            term = waiting.pop(0)
            if name_of(term) != name or not taken(term):
                waiting += self.items(term.children())
            elif not any(term.semanticEquals(other) for other in found):
                found.append(term)
        return found

    def attributes(self, columns: Sequence[Column]) -> Any:
        """The set of these columns."""
        return self._attributes.apply(self.sequence(column.term for column in columns))

    def has_subqueries(self, plan: Any) -> bool:
        """Whether there are subqueries in the terms of a plan or a term."""
        return bool(plan.containsPattern(self._subquery))

    def asks_now(self, plan: Any) -> bool:
        """Whether a plan or a term has something of the moment or the session in it."""
        return bool(plan.containsPattern(self._of_now))

    def refers_outside(self, plan: Any) -> bool:
        """Whether a term of a plan still refers to a query around it."""
        return bool(plan.containsPattern(self._reference_outside))

    def subqueries(self, terms: Sequence[Term]) -> list[Term]:
        """The subqueries of any kind in these terms, but not those in them."""
        found: list[Term] = []
        waiting = [term for term in terms if self.has_subqueries(term)]
        while waiting:
            term = waiting.pop(0)
            if name_of(term) in SUBQUERIES:
                found.append(term)
            else:
                waiting += [part for part in self.items(term.children()) if self.has_subqueries(part)]
        return found

    @staticmethod
    def is_correlated(query: Term) -> bool:
        return bool(query.outerAttrs().nonEmpty())

    def replaced(self, term: Term, values: Sequence[tuple[Term, Term]]) -> Term:
        """The term with the second of each pair in place of the first."""
        for old, new in values:
            if term.semanticEquals(old):
                return new
        parts = self.items(term.children())
        return term.withNewChildren(self.sequence(self.replaced(part, values) for part in parts))

    def only_row(self, count: Term, value: Term) -> Term:
        """The value, which is that of one row; an error if there are more."""
        several = self._of.GreaterThan(count, self.cast(self.literal(1), count.dataType()))
        error = self._of.RaiseError(
            self.literal("more than one row returned by a subquery used as an expression")
        )
        return self._of.If(several, self.cast(error, value.dataType()), value)

    def not_in(self, value: Term, found: Term, rows: Term, present: Term) -> Term:
        """Whether a value is surely none of so many rows, of which `present` are not NULL."""
        zero = self.cast(self.literal(0), rows.dataType())
        absent = self.both([self.is_not_null(value), self._of.Not(found)])
        known = self.both([self._of.EqualTo(rows, present), absent])
        return self._of.Or(self._of.EqualTo(rows, zero), known)

    def negation(self, term: Term) -> Term:
        return self._of.Not(term)

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

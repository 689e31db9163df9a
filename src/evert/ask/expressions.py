"""Expressions of Spark SQL, as sqlglot reads them, as terms of DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from evert.ask import calls, literals
from evert.ask.casts import cast
from evert.ask.decimals import arithmetic
from evert.ask.predicates import COMPARISONS, Predicates
from evert.ask.scope import Scope
from evert.ask.shapes import only
from evert.ask.terms import Term, fail, made
from evert.ask.types import INT, VOID, in_duckdb, is_integer
from evert.ask.windows import call, over
from evert.errors import BadQuery, NotTranslated
from evert.schema.types import Array

if TYPE_CHECKING:
    from evert.ask.translate import Translation

_ARITHMETIC = {
    exp.Add: ("add", "+"),
    exp.Sub: ("sub", "-"),
    exp.Mul: ("mul", "*"),
    exp.Div: ("div", "/"),
    exp.IntDiv: ("intdiv", "div"),
    exp.Mod: ("mod", "%"),
}
_PARTS: dict[type, tuple[str, ...]] = {
    exp.Between: ("low", "high"),
    exp.Case: ("ifs", "default"),
    exp.Cast: ("to", "safe"),
    exp.Column: ("table", "db", "catalog"),
    exp.Div: ("typed", "safe"),
    exp.DPipe: ("safe",),
    exp.Exists: (),
    exp.If: ("true", "false"),
    exp.In: ("query",),
    exp.Is: ("negate",),
    exp.Like: ("negate",),
    exp.Literal: ("is_string",),
    exp.Subquery: ("with", "order", "limit", "offset"),
    exp.Substring: ("start", "length"),
    exp.TryCast: ("to", "safe"),
    exp.Window: ("partition_by", "order", "spec", "alias", "over"),
}
"""What a node may hold beside its operands."""


class Expressions(Predicates):
    """Translates the expressions of one SELECT."""

    def __init__(self, queries: Translation, scope: Scope, tables: Mapping[str, Any] | None = None) -> None:
        self.queries = queries
        self.scope = scope
        self.tables = tables or {}
        self.windows: dict[str, exp.Window] = {}
        self.group: tuple[str, ...] | None = None
        """What a grouping function may name, where the SELECT has GROUP BY."""

    def __call__(self, node: exp.Expression) -> Term:
        only(node, "this", "expression", "expressions", *_PARTS.get(type(node), ()))
        if type(node) in COMPARISONS:
            return self.comparison(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        found = _WAYS.get(type(node))
        if found is None:
            raise calls.untranslated(literals.shown(node))
        return found(self, node)

    def all(self, nodes: Sequence[exp.Expression]) -> list[Term]:
        return [self(node) for node in nodes]

    def column(self, node: exp.Expression) -> Term:
        return self.scope.find(parts_of(node))

    def _literal(self, node: exp.Expression) -> Term:
        return literals.literal(node)

    def _paren(self, node: exp.Expression) -> Term:
        return self(node.this)

    def _negative(self, node: exp.Expression) -> Term:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literals.literal(node.this, negative=True)
        return calls.operator("neg", self(node.this), shown="-")

    def _arithmetic(self, node: exp.Expression) -> Term:
        name, sign = _ARITHMETIC[type(node)]
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return literals.moved(self, node, sign)
        one, two = self(node.this), self(node.expression)
        return arithmetic(name, sign, one, two)

    def _case(self, node: exp.Expression) -> Term:
        subject = None if node.this is None else self(node.this)
        branches = node.args["ifs"]
        if subject is None:
            whens = [self.condition(one.this, "the condition of WHEN") for one in branches]
        else:
            whens = [self.compare("=", subject, self(one.this)) for one in branches]
        default = node.args.get("default")
        thens = [self(one.args["true"]) for one in branches]
        last = Term("NULL", VOID, literal=None) if default is None else self(default)
        return self._choice(whens, [*thens, last], "CASE")

    def _if(self, node: exp.Expression) -> Term:
        default = node.args.get("false")
        last = Term("NULL", VOID, literal=None) if default is None else self(default)
        when = self.condition(node.this, "the condition of IF")
        return self._choice([when], [self(node.args["true"]), last], "IF")

    def _choice(self, whens: list[Term], values: list[Term], what: str) -> Term:
        alike = calls.unified(values)
        if alike is None or (alike[0].type != VOID and in_duckdb(alike[0].type) is None):
            kinds = " and ".join(dict.fromkeys(value.type.ddl() for value in values))
            raise NotTranslated(f"the values of {what} are {kinds}", hint="CAST them to one type")
        pairs = " ".join(f"WHEN {w.sql} THEN {v.sql}" for w, v in zip(whens, alike, strict=False))
        return made(f"(CASE {pairs} ELSE {alike[-1].sql} END)", alike[0].type, *whens, *alike)

    def _cast(self, node: exp.Expression) -> Term:
        if node.args.get("safe"):
            raise calls.untranslated("try_cast()")
        to = literals.type_of(node.args["to"])
        written = literals.written(node, to)
        if written is not None:
            return written
        term = self(node.this)
        found = cast(term, to)
        if found is None:
            raise NotTranslated(
                f"a cast of {term.type.ddl()} to {to.ddl()} has no tested equal in the embedded engine",
                hint="where a Spark session runs, Spark answers instead",
                function="cast",
            )
        return found

    def _bracket(self, node: exp.Expression) -> Term:
        term, indexes = self(node.this), node.expressions
        if not isinstance(term.type, Array) or len(indexes) != 1:
            raise calls.untranslated(f"[] of {term.type.ddl()}")
        index = cast(self(indexes[0]), INT) if not isinstance(indexes[0], exp.Slice) else None
        if index is None or not is_integer(index.type):
            raise calls.untranslated(literals.shown(node))
        outside = fail("the index of an array is out of bounds")
        sql = (
            f"(CASE WHEN {index.sql} < 0 OR {index.sql} >= len({term.sql}) THEN {outside}"
            f" ELSE list_extract({term.sql}, {index.sql} + 1) END)"
        )
        return made(sql, term.type.element, term, index, raises=True)

    def _substring(self, node: exp.Expression) -> Term:
        places = [node.args[part] for part in ("this", "start", "length") if node.args.get(part) is not None]
        return calls.scalar("substring", self.all(places))

    def _trim(self, node: exp.Expression) -> Term:
        if node.args.get("expression") is not None:
            raise calls.untranslated("this form of TRIM")
        return calls.scalar("trim", [self(node.this)])

    def _extract(self, node: exp.Expression) -> Term:
        field = str(node.this.name).lower()
        if field not in ("year", "quarter", "month", "day", "hour", "minute"):
            raise calls.untranslated(f"EXTRACT({field.upper()} …)")
        return calls.scalar(field, [self(node.expression)])

    def _concat(self, node: exp.Expression) -> Term:
        """Texts that stand side by side are one text."""
        pieces = [literals.string(one, "a text beside a text") for one in node.expressions]
        return literals.literal(exp.Literal.string("".join(pieces)))

    def _pipe(self, node: exp.Expression) -> Term:
        if isinstance(node.expression, exp.Add | exp.Sub) or isinstance(node.this, exp.Add | exp.Sub):
            raise BadQuery("beside + and - it is not clear what || belongs to", hint="write parentheses")
        return calls.operator("concat", self(node.this), self(node.expression), shown="||")

    def _subquery(self, node: exp.Expression) -> Term:
        return self.queries.scalar(self, node)

    def _exists(self, node: exp.Expression) -> Term:
        return self.queries.exists(self, node.this)


def parts_of(node: exp.Expression) -> list[str]:
    """The parts of a name with dots."""
    if isinstance(node, exp.Dot):
        return [*parts_of(node.this), node.expression.name]
    if not isinstance(node, exp.Column):
        raise calls.untranslated(literals.shown(node))
    return [part.name for part in node.parts]


Way = Callable[[Expressions, Any], Term]
_WAYS: dict[type, Way] = {
    exp.Column: Expressions.column,
    exp.Dot: Expressions.column,
    exp.Literal: Expressions._literal,
    exp.RawString: Expressions._literal,
    exp.Boolean: Expressions._literal,
    exp.Null: Expressions._literal,
    exp.HexString: Expressions._literal,
    exp.Paren: Expressions._paren,
    exp.Neg: Expressions._negative,
    exp.And: Expressions._and,
    exp.Or: Expressions._or,
    exp.Not: Expressions._not,
    exp.Is: Expressions._is,
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.Like: Expressions._like,
    exp.Escape: Expressions._like,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.Bracket: Expressions._bracket,
    exp.Substring: Expressions._substring,
    exp.Trim: Expressions._trim,
    exp.Extract: Expressions._extract,
    exp.Concat: Expressions._concat,
    exp.DPipe: Expressions._pipe,
    exp.Subquery: Expressions._subquery,
    exp.Exists: Expressions._exists,
    exp.Anonymous: call,
    exp.Filter: over,
    exp.Window: over,
}

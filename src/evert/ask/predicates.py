"""Conditions: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from evert.ask import calls, literals
from evert.ask.casts import cast
from evert.ask.terms import Term, made, text
from evert.ask.types import BOOLEAN, STRING, VOID, comparable, compared
from evert.errors import BadQuery, NotTranslated
from evert.schema.types import DataType

if TYPE_CHECKING:
    from evert.ask.translate import Translation

COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_PREDICATES = (*COMPARISONS, exp.Is, exp.In, exp.Between, exp.Like, exp.Not, exp.And, exp.Or)


class Predicates(ABC):
    """The part of `Expressions` that translates conditions."""

    queries: Translation

    @abstractmethod
    def __call__(self, node: exp.Expression) -> Term:
        """The translation of any expression."""

    def condition(self, node: exp.Expression, what: str) -> Term:
        return calls.boolean(self(node), what)

    def comparison(self, node: exp.Expression) -> Term:
        """Spark and sqlglot differ in what `a = b < c` means, so it is refused."""
        if isinstance(node.this, _PREDICATES) or isinstance(node.expression, _PREDICATES):
            shown = literals.shown(node)
            raise BadQuery(f"in {shown} it is not clear what belongs together", hint="write parentheses")
        return self.compare(COMPARISONS[type(node)], self(node.this), self(node.expression))

    def compare(self, sign: str, one: Term, two: Term) -> Term:
        one, two = self.alike([one, two])
        return made(f"({one.sql} {sign} {two.sql})", BOOLEAN, one, two)

    def alike(self, terms: Sequence[Term]) -> list[Term]:
        """The terms in the type in which they are compared."""
        if len(terms) == 2:
            terms = literals.narrowed(*terms)
        kind: DataType | None = terms[0].type
        for term in terms[1:]:
            kind = None if kind is None else compared(kind, term.type)
        kind = BOOLEAN if kind == VOID else kind
        found = [None if kind is None else cast(term, kind) for term in terms]
        if kind is None or not comparable(kind) or any(term is None for term in found):
            kinds = " and ".join(dict.fromkeys(term.type.ddl() for term in terms))
            raise NotTranslated(f"{kinds} cannot be compared here", hint="CAST them to one type")
        return [term for term in found if term is not None]

    def _and(self, node: exp.Expression) -> Term:
        """What follows a condition that is false is not evaluated, in Spark; DuckDB has to be told."""
        one, two = self._sides(node)
        if two.raises:
            sql = f"(CASE WHEN NOT {one.sql} THEN false ELSE {one.sql} AND {two.sql} END)"
            return made(sql, BOOLEAN, one, two)
        return made(f"({one.sql} AND {two.sql})", BOOLEAN, one, two)

    def _or(self, node: exp.Expression) -> Term:
        one, two = self._sides(node)
        if two.raises:
            sql = f"(CASE WHEN {one.sql} THEN true ELSE {one.sql} OR {two.sql} END)"
            return made(sql, BOOLEAN, one, two)
        return made(f"({one.sql} OR {two.sql})", BOOLEAN, one, two)

    def _sides(self, node: exp.Expression) -> tuple[Term, Term]:
        what = f"each side of {type(node).__name__.upper()}"
        return self.condition(node.this, what), self.condition(node.expression, what)

    def _not(self, node: exp.Expression) -> Term:
        term = self.condition(node.this, "what NOT denies")
        return made(f"(NOT {term.sql})", BOOLEAN, term)

    def _is(self, node: exp.Expression) -> Term:
        term = self(node.this)
        negated = bool(node.args.get("negate"))
        if isinstance(node.expression, exp.Null):
            return made(f"({term.sql} IS {'NOT ' if negated else ''}NULL)", BOOLEAN, term)
        if isinstance(node.expression, exp.Boolean):
            value = "true" if node.expression.this else "false"
            term = calls.boolean(term, "what IS asks about")
            sign = "IS DISTINCT FROM" if negated else "IS NOT DISTINCT FROM"
            return made(f"({term.sql} {sign} {value})", BOOLEAN, term)
        raise calls.untranslated(literals.shown(node))

    def _between(self, node: exp.Expression) -> Term:
        term = self(node.this)
        low = self.compare(">=", term, self(node.args["low"]))
        high = self.compare("<=", term, self(node.args["high"]))
        return made(f"({low.sql} AND {high.sql})", BOOLEAN, low, high)

    def _in(self, node: exp.Expression) -> Term:
        query = node.args.get("query")
        if query is not None:
            return self.queries.is_in(self, self(node.this), query)
        if not node.expressions:
            raise calls.untranslated("this form of IN")
        term, *values = self.alike([self(node.this), *(self(value) for value in node.expressions)])
        listed = ", ".join(value.sql for value in values)
        return made(f"({term.sql} IN ({listed}))", BOOLEAN, term, *values)

    def _like(self, node: exp.Expression) -> Term:
        escape, like = "\\", node
        if isinstance(node, exp.Escape):
            escape, like = literals.string(node.expression, "the escape of LIKE"), node.this
        if not isinstance(like, exp.Like) or len(escape) != 1:
            raise calls.untranslated(literals.shown(node))
        term = self(like.this)
        if term.type not in (STRING, VOID):
            raise NotTranslated(f"LIKE of {term.type.ddl()} has no tested equal", hint="CAST it to STRING")
        pattern = literals.string(like.expression, "the pattern of LIKE")
        literals.check_pattern(pattern, escape)
        word = "NOT LIKE" if like.args.get("negate") else "LIKE"
        return made(f"({term.sql} {word} {text(pattern)} ESCAPE {text(escape)})", BOOLEAN, term)

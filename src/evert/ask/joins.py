"""FROM clauses: which relations there are, how they are joined, and what their names mean afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from evert.ask import calls
from evert.ask.casts import cast
from evert.ask.expressions import Expressions
from evert.ask.scope import Column, Relation, Scope
from evert.ask.shapes import Around, argument, only
from evert.ask.terms import Term
from evert.ask.types import common, comparable
from evert.errors import BadQuery, NotTranslated
from evert.log.names import folded

if TYPE_CHECKING:
    from evert.ask.translate import Translation

_KINDS = {
    ("", ""): "INNER",
    ("", "INNER"): "INNER",
    ("", "CROSS"): "CROSS",
    ("LEFT", ""): "LEFT",
    ("LEFT", "OUTER"): "LEFT",
    ("RIGHT", ""): "RIGHT",
    ("RIGHT", "OUTER"): "RIGHT",
    ("FULL", ""): "FULL",
    ("FULL", "OUTER"): "FULL",
    ("", "SEMI"): "SEMI",
    ("LEFT", "SEMI"): "SEMI",
    ("", "ANTI"): "ANTI",
    ("LEFT", "ANTI"): "ANTI",
}


def joined(queries: Translation, node: exp.Expression, around: Around) -> tuple[str, Scope]:
    """The FROM clause of a SELECT, and the scope that it opens."""
    scope = Scope(outer=around.scope)
    first = argument(node, "from")
    if first is None:
        return "", scope
    sql, relation = queries.relation(first.this, around)
    scope.relations.append(relation)
    for join in node.args.get("joins") or []:
        sql += _join(queries, join, scope, around)
    return f" FROM {sql}", scope


def _join(queries: Translation, join: exp.Expression, scope: Scope, around: Around) -> str:
    only(join, "this", "side", "kind", "on", "using", "method")
    given = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    kind = _KINDS.get(given)
    method = str(join.args.get("method") or "").upper()
    if kind is None or method not in ("", "NATURAL"):
        raise calls.untranslated(f"{method} {' '.join(given)} JOIN".strip())
    sql, right = queries.relation(join.this, around)
    on, using = join.args.get("on"), [one.name for one in join.args.get("using") or []]
    if method == "NATURAL":
        mine = {folded(column.name) for column in right.columns}
        using = [column.name for column in scope.visible() if folded(column.name) in mine]
    if using:
        condition = _using(scope, right, using, kind)
    elif on is not None:
        inner = Scope([*scope.relations, right], scope.merged, scope.hidden, scope.outer)
        term = Expressions(queries, inner, around.tables).condition(on, "the condition of JOIN")
        if term.aggregates or term.windows:
            raise BadQuery("the condition of JOIN holds an aggregate or window function")
        condition = term.sql
    elif kind not in ("INNER", "CROSS"):
        raise BadQuery(f"a {kind} JOIN needs a condition", hint="write ON … or USING (…)")
    else:
        condition = ""
    if kind not in ("SEMI", "ANTI"):
        scope.relations.append(right)
    word = {"FULL": "FULL OUTER", "CROSS": "INNER" if condition else "CROSS"}.get(kind, kind)
    if not condition:
        return f" CROSS JOIN {sql}"
    return f" {word} JOIN {sql} ON {condition}"


def _using(scope: Scope, right: Relation, names: list[str], kind: str) -> str:
    """Equal columns of both sides are one column afterwards, and stand before all others."""
    conditions: list[str] = []
    merged: list[Column] = []
    for name in names:
        one = _single([c for c in scope.visible() if folded(c.name) == folded(name)], name, "left")
        two = _single([c for c in right.columns if folded(c.name) == folded(name)], name, "right")
        wanted = common(one.type, two.type)
        sides = [None if wanted is None else cast(c.term(), wanted) for c in (one, two)]
        if wanted is None or not comparable(wanted) or sides[0] is None or sides[1] is None:
            raise NotTranslated(
                f"the column {name} of USING is {one.type.ddl()} and {two.type.ddl()}", hint="use ON"
            )
        conditions.append(f"{sides[0].sql} = {sides[1].sql}")
        merged.append(_merged(name, one, two, sides[0], sides[1], kind))
        scope.merged = [column for column in scope.merged if column is not one]
        scope.hidden |= {one.sql, two.sql}
    scope.merged = [*merged, *scope.merged]
    return "(" + " AND ".join(conditions) + ")"


def _merged(name: str, one: Column, two: Column, left: Term, right: Term, kind: str) -> Column:
    if kind == "FULL":
        return Column(name, f"coalesce({left.sql}, {right.sql})", left.type)
    source = two if kind == "RIGHT" else one
    return Column(name, source.sql, source.type, source.use)


def _single(found: list[Column], name: str, side: str) -> Column:
    if len(found) != 1:
        what = "is not there" if not found else "is ambiguous"
        raise BadQuery(f"the column {name!r} of USING {what} on the {side} side of the join", column=name)
    return found[0]

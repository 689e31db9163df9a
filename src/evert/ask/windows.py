"""Function calls, aggregates with FILTER, and windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from evert.ask import calls
from evert.ask.literals import shown
from evert.ask.terms import Term, made
from evert.ask.types import BIGINT, BOOLEAN, INT, TINYINT, VOID, comparable
from evert.errors import BadQuery, NotTranslated

if TYPE_CHECKING:
    from evert.ask.expressions import Expressions

_DISTINCT = {"count", "sum", "min", "max"}
_ONE = Term("1", INT)


def call(translate: Expressions, node: exp.Expression) -> Term:
    """A call by name."""
    return _call(translate, node, "", windowed=False)


def over(translate: Expressions, node: exp.Expression) -> Term:
    """A call with FILTER, with OVER, or with both."""
    text = ""
    windowed = isinstance(node, exp.Window)
    inner = node.this if windowed else node
    if windowed:
        text = _window(translate, node, inner)
    if isinstance(inner, exp.Filter):
        where = translate.condition(inner.expression.this, "the condition of FILTER")
        text, inner = f" FILTER (WHERE {where.sql}){text}", inner.this
        if not (isinstance(inner, exp.Anonymous) and calls.is_aggregate(_name(inner))):
            raise BadQuery(f"FILTER goes with an aggregate function, not with {shown(inner)}")
    if not isinstance(inner, exp.Anonymous):
        raise calls.untranslated(shown(inner))
    return _call(translate, inner, text, windowed=windowed)


def _name(node: exp.Expression) -> str:
    return str(node.name).lower()


def _call(translate: Expressions, node: exp.Expression, text: str, *, windowed: bool) -> Term:
    name, given = _name(node), node.expressions
    if name in ("grouping", "grouping_id"):
        return _grouping(translate, name, given)
    if windowed and calls.is_window(name):
        found = calls.window(name, translate.all(given), text)
        return replace(found, windows=True)
    if not calls.is_aggregate(name):
        if windowed or calls.is_window(name):
            raise (calls.untranslated(f"{name}() OVER") if windowed else calls.untranslated(f"{name}()"))
        return _scalar(translate, name, given)
    distinct = len(given) == 1 and isinstance(given[0], exp.Distinct)
    if distinct and (name not in _DISTINCT or windowed):
        raise calls.untranslated(f"{name}(DISTINCT …){' OVER' if windowed else ''}")
    terms = _arguments(translate, name, given[0].expressions if distinct else given, distinct)
    if any(term.aggregates and not windowed for term in terms) or any(term.windows for term in terms):
        raise BadQuery(f"{name}() stands around another aggregate or window function", hint="use a subquery")
    found = calls.aggregate(name, terms, text)
    nested = any(term.aggregates for term in terms)
    return replace(found, windows=True, aggregates=nested) if windowed else replace(found, aggregates=True)


def _arguments(
    translate: Expressions, name: str, given: Sequence[exp.Expression], distinct: bool
) -> list[Term]:
    if name == "count" and len(given) == 1 and isinstance(given[0], exp.Star):
        return [_ONE]
    terms = translate.all(given)
    if name == "count" and terms:
        terms = [_counted(terms, distinct)]
    elif distinct:
        if not comparable(terms[0].type) or terms[0].type.ddl() in ("FLOAT", "DOUBLE"):
            raise calls.untranslated(f"{name}(DISTINCT …) of {terms[0].type.ddl()}")
        terms = [replace(terms[0], sql=f"DISTINCT {terms[0].sql}"), *terms[1:]]
    return terms


def _counted(terms: list[Term], distinct: bool) -> Term:
    """What is counted: rows in which none is NULL."""
    if distinct and not all(comparable(term.type) for term in terms):
        raise calls.untranslated("count(DISTINCT …) of arrays and structs")
    sql = terms[0].sql
    if len(terms) > 1:
        there = " AND ".join(f"{term.sql} IS NOT NULL" for term in terms)
        row = f"row({', '.join(term.sql for term in terms)})"
        sql = f"CASE WHEN {there} THEN {row if distinct else 1} END"
    return replace(made(f"DISTINCT {sql}" if distinct else sql, INT, *terms))


def _scalar(translate: Expressions, name: str, given: Sequence[exp.Expression]) -> Term:
    if any(isinstance(one, exp.Distinct | exp.Star) for one in given):
        raise calls.untranslated(f"{name}()")
    terms = translate.all(given)
    if name == "nullif" and len(terms) == 2:
        same = translate.compare("=", *terms)
        if terms[0].type == VOID:
            return terms[0]
        return made(f"(CASE WHEN {same.sql} THEN NULL ELSE {terms[0].sql} END)", terms[0].type, same, *terms)
    return calls.scalar(name, terms)


def _grouping(translate: Expressions, name: str, given: Sequence[exp.Expression]) -> Term:
    group = translate.group
    if not group:
        raise BadQuery(f"{name}() needs a GROUP BY")
    terms = [term.sql for term in translate.all(given)] or list(group)
    if (terms != list(group)) if name == "grouping_id" else (len(terms) != 1 or terms[0] not in group):
        raise BadQuery(f"{name}() takes what the query groups by")
    kind = TINYINT if name == "grouping" else BIGINT
    return Term(f"CAST(GROUPING({', '.join(terms)}) AS {kind.name})", kind, aggregates=True)


def _window(translate: Expressions, node: exp.Expression, inner: exp.Expression) -> str:
    alias = node.args.get("alias")
    if alias is not None:
        named = translate.windows.get(alias.name.lower())
        if named is None:
            raise BadQuery(f"there is no window {alias.name!r}", hint="define it: WINDOW name AS (…)")
        if any(node.args.get(part) for part in ("partition_by", "order", "spec")):
            raise calls.untranslated("a window that extends another")
        node = named
    name = _name(inner) if isinstance(inner, exp.Anonymous) else ""
    order, spec = node.args.get("order"), node.args.get("spec")
    ranks = calls.is_window(name) and name not in ("first_value", "last_value", "first", "last", "nth_value")
    if ranks and order is None:
        raise BadQuery(f"{name}() needs an order", hint="write OVER (ORDER BY …)")
    if ranks and spec is not None:
        raise calls.untranslated(f"a frame of {name}()")
    parts: list[str] = []
    by = translate.all(node.args.get("partition_by") or [])
    if by:
        parts.append("PARTITION BY " + ", ".join(checked(term, "PARTITION BY").sql for term in by))
    if order is not None:
        parts.append("ORDER BY " + ", ".join(ordered(translate, one) for one in order.expressions))
    if spec is not None:
        parts.append(_frame(spec))
    return f" OVER ({' '.join(parts)})"


def _frame(spec: exp.Expression) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if kind not in ("ROWS", "RANGE") or spec.args.get("exclude"):
        raise calls.untranslated(f"a frame of {kind}")
    start = _bound(spec, "start", kind)
    end = _bound(spec, "end", kind) if spec.args.get("end") is not None else "CURRENT ROW"
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(spec: exp.Expression, side: str, kind: str) -> str:
    value, direction = spec.args.get(side), str(spec.args.get(f"{side}_side") or "").upper()
    if isinstance(value, str):
        word = value.upper()
        return word if word == "CURRENT ROW" else f"{word} {direction}"
    if kind == "ROWS" and isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit():
        return f"{int(value.name)} {direction}"
    raise calls.untranslated(f"a frame of {kind} with {shown(value) if value is not None else 'nothing'}")


def ordered(translate: Expressions, node: exp.Expression) -> str:
    """One term of an ORDER BY, with where NULL goes: sqlglot knows Spark's rule."""
    if node.args.get("with_fill"):
        raise calls.untranslated("WITH FILL")
    term = checked(translate(node.this), "ORDER BY")
    return f"{term.sql} {direction(node)}"


def direction(node: exp.Expression) -> str:
    where = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{'DESC' if node.args.get('desc') else 'ASC'} NULLS {where}"


def checked(term: Term, what: str) -> Term:
    """The term, if both engines compare its values alike."""
    if not comparable(term.type):
        raise NotTranslated(f"{what} {term.type.ddl()} has no tested equal in the embedded engine", hint=None)
    return replace(term, sql=f"CAST(NULL AS {BOOLEAN.name})") if term.type == VOID else term

"""One SELECT: its columns, groups, order and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from evert.ask import calls, literals
from evert.ask.expressions import Expressions, parts_of
from evert.ask.scope import Scope
from evert.ask.shapes import Around, Query, argument, only
from evert.ask.terms import Term, name
from evert.ask.types import VOID
from evert.ask.windows import checked, direction
from evert.errors import BadQuery, NotTranslated
from evert.log.names import folded

if TYPE_CHECKING:
    from evert.ask.translate import Translation

_PARTS = (
    "expressions",
    "from",
    "joins",
    "where",
    "group",
    "having",
    "windows",
    "distinct",
    "order",
    "limit",
    "offset",
)


@dataclass(frozen=True)
class Item:
    """A column of the output."""

    name: str
    term: Term


def select(queries: Translation, node: exp.Expression, around: Around) -> Query:
    only(node, *_PARTS, "with")
    source, scope = queries.source(node, around)
    translate = Expressions(queries, scope, around.tables)
    translate.windows = {one.name.lower(): one for one in node.args.get("windows") or []}
    where = _where(translate, node)
    group = node.args.get("group")
    translate.group = _group_terms(translate, node, group) if group is not None else None
    items = _items(translate, node)
    grouping, empty_too = _group(translate, group, items) if group is not None else ("", True)
    having = _having(translate, node, items)
    if not empty_too:
        having = f"{having} AND count(*) > 0" if having else " HAVING count(*) > 0"
    distinct = _distinct(node, items)
    order = _order(translate, node, items)
    query = Query("", tuple(item.name for item in items), tuple(item.term.type for item in items))
    listed = ", ".join(
        f"{item.term.sql} AS {name(inner)}" for item, inner in zip(items, query.inner, strict=True)
    )
    sql = f"SELECT {distinct}{listed}{source}{where}{grouping}{having}{order}{limits(node)}"
    return Query(sql, query.names, query.types)


def _where(translate: Expressions, node: exp.Expression) -> str:
    where = node.args.get("where")
    if where is None:
        return ""
    term = translate.condition(where.this, "the condition of WHERE")
    if term.aggregates or term.windows:
        raise BadQuery("WHERE holds an aggregate or window function", hint="use HAVING, or a subquery")
    return f" WHERE {term.sql}"


def _items(translate: Expressions, node: exp.Expression) -> list[Item]:
    """The columns of the output. A column may be named by those after it."""
    items: list[Item] = []
    for one in node.expressions:
        if isinstance(one, exp.Star) or (isinstance(one, exp.Column) and isinstance(one.this, exp.Star)):
            items += _star(translate.scope, one)
            continue
        alias = isinstance(one, exp.Alias)
        if alias:
            only(one, "this", "alias")
        if alias and not isinstance(one.args["alias"], exp.Identifier):
            raise calls.untranslated(literals.shown(one))
        term = translate(one.this if alias else one)
        items.append(Item(one.alias if alias else _default_name(one), term))
        if alias:
            translate.scope.aliases.setdefault(folded(one.alias), term)
    if not items:
        raise BadQuery("the query selects nothing")
    return items


def _star(scope: Scope, node: exp.Expression) -> list[Item]:
    star = node if isinstance(node, exp.Star) else node.this
    only(star)
    if isinstance(node, exp.Star):
        columns = scope.visible()
    else:
        qualifier = ".".join(part.name for part in node.parts[:-1])
        found = scope.columns_of(qualifier)
        if found is None:
            raise BadQuery(f"there is no relation {qualifier!r} in FROM", hint="its name there is its alias")
        columns = found
    if not columns:
        raise BadQuery("* has no columns to stand for", hint="name a topic or a view in FROM")
    return [Item(column.name, column.term()) for column in columns]


def _default_name(node: exp.Expression) -> str:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column | exp.Dot):
        return parts_of(node)[-1]
    return literals.shown(node)


def _group_terms(translate: Expressions, node: exp.Expression, group: exp.Expression) -> tuple[str, ...]:
    """What the query groups by, for `grouping`; found before the columns are, which may ask for it."""
    found: list[str] = []
    for key in _keys(group):
        if isinstance(key, exp.Column):
            if translate.scope.has_column(key.name) or key.table:
                found.append(translate(key).sql)
        elif not isinstance(key, exp.Literal):
            found.append(translate(key).sql)
    return tuple(dict.fromkeys(found))


def _keys(group: exp.Expression) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for one in [*group.expressions, *_sets(group)]:
        if isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            found += _keys(one)
        else:
            found.append(one.this if isinstance(one, exp.Paren) else one)
    return found


def _sets(group: exp.Expression) -> list[exp.Expression]:
    return [one for part in ("rollup", "cube", "grouping_sets") for one in group.args.get(part) or []]


def _group(translate: Expressions, group: exp.Expression, items: list[Item]) -> tuple[str, bool]:
    """GROUP BY, and whether a grand total over nothing is a row: in Spark it is not, beside other groups."""
    only(group, "expressions", "rollup", "cube", "grouping_sets")
    sets = _sets(group)
    if any(isinstance(one, exp.Rollup | exp.Cube) and not one.expressions for one in sets):
        word = "ROLLUP" if group.args.get("rollup") else "CUBE"
        keys = ", ".join(_grouped(translate, one, items) for one in group.expressions)
        return f" GROUP BY {word} ({keys})", False
    everything = [*group.expressions, *sets]
    parts = [_grouped(translate, one, items) for one in everything]
    sets_ = any(isinstance(one, exp.Rollup | exp.Cube | exp.GroupingSets) for one in everything)
    plain = not sets_ or not _keys(group)
    return f" GROUP BY {', '.join(parts)}", plain


def _grouped(translate: Expressions, node: exp.Expression, items: list[Item]) -> str:
    words = {exp.Rollup: "ROLLUP ", exp.Cube: "CUBE ", exp.GroupingSets: "GROUPING SETS ", exp.Tuple: ""}
    if type(node) in words:
        inner = ", ".join(_grouped(translate, one, items) for one in node.expressions)
        return f"{words[type(node)]}({inner})"
    if isinstance(node, exp.Paren):
        return f"({_grouped(translate, node.this, items)})"
    term = _ordinal(node, items, "GROUP BY") or translate(node)
    if term.aggregates or term.windows:
        raise BadQuery(f"GROUP BY {literals.shown(node)} is an aggregate or window function")
    return checked(term, "GROUP BY").sql


def _ordinal(node: exp.Expression, items: list[Item], what: str) -> Term | None:
    """A number in GROUP BY or ORDER BY means a column of the output."""
    if not isinstance(node, exp.Literal) or node.is_string or not node.name.isdigit():
        return None
    if not 1 <= int(node.name) <= len(items):
        raise BadQuery(f"{what} {node.name}: there are {len(items)} columns")
    return items[int(node.name) - 1].term


def _having(translate: Expressions, node: exp.Expression, items: list[Item]) -> str:
    having = node.args.get("having")
    if having is None:
        return ""
    if node.args.get("group") is None and not any(item.term.aggregates for item in items):
        raise NotTranslated("HAVING without GROUP BY has no tested equal", hint="use WHERE")
    for column in having.find_all(exp.Column):
        alias = translate.scope.aliases.get(folded(column.name))
        if alias is not None and not column.table and translate.scope.has_column(column.name):
            mine = translate(column).sql
            if mine != alias.sql and mine not in (translate.group or ()):
                raise BadQuery(
                    f"{column.name} in HAVING is a column and an alias", hint="name the alias differently"
                )
    term = translate.condition(having.this, "the condition of HAVING")
    return f" HAVING {term.sql}"


def _distinct(node: exp.Expression, items: list[Item]) -> str:
    distinct = node.args.get("distinct")
    if distinct is None:
        return ""
    only(distinct)
    for item in items:
        if item.term.type != VOID:
            checked(item.term, "SELECT DISTINCT of")
    return "DISTINCT "


def _order(translate: Expressions, node: exp.Expression, items: list[Item]) -> str:
    order = node.args.get("order")
    if order is None:
        return ""
    scope = translate.scope
    scope.first = {folded(item.name): item.term for item in items}
    places = {item.term.sql: i + 1 for i, item in reversed(list(enumerate(items)))}
    parts = []
    for one in order.expressions:
        term = _ordinal(one.this, items, "ORDER BY") or translate(one.this)
        where = places.get(term.sql)
        sql = checked(term, "ORDER BY").sql
        if where is None and node.args.get("distinct") is not None:
            raise BadQuery(f"ORDER BY {literals.shown(one.this)} is no column of the SELECT DISTINCT")
        parts.append(f"{sql if where is None else where} {direction(one)}")
    scope.first = {}
    return f" ORDER BY {', '.join(parts)}"


def limits(node: exp.Expression) -> str:
    """LIMIT and OFFSET, which must be numbers that are written out."""
    found = ""
    for part in ("limit", "offset"):
        clause = argument(node, part)
        if clause is None:
            continue
        value = clause.expression
        if isinstance(value, exp.Column) and value.name.upper() == "ALL":
            continue
        if not isinstance(clause, exp.Limit | exp.Offset) or not (
            isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
        ):
            raise calls.untranslated(
                f"{literals.shown(clause).strip()}, which is no number that is written out,"
            )
        found += f" {part.upper()} {int(value.name)}"
    return found

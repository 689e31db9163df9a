"""Queries of Spark SQL as queries of DuckDB.

Every relation, column and table expression gets a name of our own making, so nothing in the text that DuckDB sees
depends on how DuckDB finds names. What the translation does not know, it refuses.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from evert.ask import calls, literals, terms
from evert.ask.casts import cast
from evert.ask.expressions import Expressions
from evert.ask.joins import joined
from evert.ask.relations import Catalogued, Found
from evert.ask.scope import Column, Relation, Scope
from evert.ask.select import limits, select
from evert.ask.shapes import Around, Query, argument, only, relation_of
from evert.ask.terms import Term, name
from evert.ask.types import BOOLEAN, common, comparable
from evert.ask.windows import ordered
from evert.errors import BadQuery, NotTranslated
from evert.log.names import folded
from evert.schema.types import DataType

_SET = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


class Translation:
    """Translates one query, and notes what it reads."""

    def __init__(self, catalogued: Catalogued) -> None:
        self._catalogued = catalogued
        self._count = 0

    @property
    def reads(self) -> list[Found]:
        return self._catalogued.found

    def fresh(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def query(self, node: exp.Expression, around: Around) -> Query:
        node, beginning, around = self._with(node, around)
        if isinstance(node, exp.Select):
            made = select(self, node, around)
        elif type(node) in _SET:
            made = self._set(node, around)
        elif isinstance(node, exp.Subquery):
            only(node, "this", "order", "limit", "offset", "with")
            made = self._cut(node, self.query(node.this, around), around)
        elif isinstance(node, exp.Values):
            only(node, "expressions")
            made = self._values(node, around)
        else:
            raise BadQuery(f"{literals.shown(node)} is not a query", hint="ask a SELECT")
        return Query(beginning + made.sql, made.names, made.types)

    def _with(self, node: exp.Expression, around: Around) -> tuple[exp.Expression, str, Around]:
        clause = argument(node, "with")
        if clause is None:
            return node, "", around
        if clause.args.get("recursive"):
            raise calls.untranslated("WITH RECURSIVE")
        tables, parts = dict(around.tables), []
        for one in clause.expressions:
            only(one, "this", "alias")
            made = self._renamed(self.query(one.this, Around(around.scope, tables)), one.args["alias"])
            mine = self.fresh("w")
            parts.append(f"{mine} AS ({made.sql})")
            tables[folded(one.alias)] = (mine, made)
        return node, f"WITH {', '.join(parts)} ", Around(around.scope, tables)

    def _renamed(self, query: Query, alias: exp.Expression | None) -> Query:
        """The query under the names of `AS t(a, b)`."""
        wanted = [one.name for one in (alias.args.get("columns") or [])] if alias is not None else []
        if not wanted:
            return query
        if len(wanted) != len(query.names):
            raise BadQuery(f"{len(wanted)} names are given to {len(query.names)} columns")
        made = Query("", tuple(wanted), query.types)
        pairs = zip(query.inner, made.inner, strict=True)
        listed = ", ".join(f"q.{name(old)} AS {name(new)}" for old, new in pairs)
        return Query(f"SELECT {listed} FROM ({query.sql}) AS q", made.names, made.types)

    def relation(self, node: exp.Expression, around: Around) -> tuple[str, Relation]:
        """One item of a FROM clause: its SQL and its columns."""
        if isinstance(node, exp.Table):
            only(node, "this", "db", "catalog", "alias")
            return self._table(node, around)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query | exp.Values):
            only(node, "this", "alias", "with", "order", "limit", "offset")
            bare = node.copy()
            bare.set("alias", None)
            query = self.query(bare, around)
        elif isinstance(node, exp.Values):
            only(node, "expressions", "alias")
            query = self._values(node, around)
        else:
            raise calls.untranslated(f"{literals.shown(node)} in FROM")
        alias = node.args.get("alias")
        query = self._renamed(query, alias)
        mine = self.fresh("r")
        names = [alias.name] if alias is not None and alias.name else []
        return f"({query.sql}) AS {mine}", relation_of(mine, names, query)

    def _table(self, node: exp.Expression, around: Around) -> tuple[str, Relation]:
        if not isinstance(node.this, exp.Identifier):
            raise calls.untranslated(f"{literals.shown(node)} in FROM")
        parts = [part.name for part in node.parts]
        alias = node.args.get("alias")
        names = [alias.name] if alias is not None and alias.name else [".".join(parts), parts[-1]]
        mine = self.fresh("r")
        if len(parts) == 1 and folded(parts[0]) in around.tables:
            there, query = around.tables[folded(parts[0])]
            if alias is None or not alias.args.get("columns"):
                return f"{there} AS {mine}", relation_of(mine, names, query)
            query = self._renamed(Query(f"SELECT * FROM {there}", query.names, query.types), alias)
            return f"({query.sql}) AS {mine}", relation_of(mine, names, query)
        found = self._catalogued.find(".".join(parts))
        given = [one.name for one in (alias.args.get("columns") or [])] if alias is not None else []
        if given and len(given) != len(found.columns):
            raise BadQuery(
                f"{len(given)} names are given to the {len(found.columns)} columns of {found.name}"
            )
        columns = tuple(
            Column(given[i] if given else column, f"{mine}.{name(column)}", kind, found.user(column))
            for i, (column, kind) in enumerate(found.columns.items())
        )
        return f"{found.sql} AS {mine}", Relation(tuple(map(folded, names)), columns)

    def source(self, node: exp.Expression, around: Around) -> tuple[str, Scope]:
        """The FROM clause of a SELECT, and what its names mean."""
        return joined(self, node, around)

    def _values(self, node: exp.Expression, around: Around) -> Query:
        translate = Expressions(self, Scope(outer=around.scope), around.tables)
        rows = [translate.all(_cells(row)) for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise BadQuery("the rows of VALUES have different lengths")
        columns = [calls.unified(column) for column in zip(*rows, strict=True)]
        if any(column is None for column in columns):
            raise NotTranslated(
                "a column of VALUES has values of several types", hint="CAST them to one type"
            )
        found = [column for column in columns if column is not None]
        names = tuple(f"col{i + 1}" for i in range(len(found)))
        lines = [
            "(" + ", ".join(column[i].sql for column in found) + ")" for i in range(len(node.expressions))
        ]
        listed = ", ".join(map(name, names))
        sql = f"SELECT * FROM (VALUES {', '.join(lines)}) AS v({listed})"
        return Query(sql, names, tuple(column[0].type for column in found))

    def _set(self, node: exp.Expression, around: Around) -> Query:
        only(node, "this", "expression", "distinct", "order", "limit", "offset", "with")
        if isinstance(node, exp.Intersect) and isinstance(node.this, exp.Union | exp.Except):
            raise BadQuery("what is before INTERSECT is not one query", hint="write parentheses")
        sides = [self.query(side, around) for side in (node.this, node.expression)]
        word, distinct = _SET[type(node)], bool(node.args.get("distinct"))
        if len(sides[0].names) != len(sides[1].names):
            raise BadQuery(
                f"the sides of {word} have {len(sides[0].names)} and {len(sides[1].names)} columns"
            )
        types = [common(one, two) for one, two in zip(sides[0].types, sides[1].types, strict=True)]
        for i, kind in enumerate(types):
            if kind is None or (not comparable(kind) and (distinct or word != "UNION")):
                kinds = " and ".join(side.types[i].ddl() for side in sides)
                raise NotTranslated(f"column {i + 1} of {word} is of the types {kinds}", hint="CAST them")
        known = [kind for kind in types if kind is not None]
        parts = [f"({_as(side, sides[0].inner, known)})" for side in sides]
        query = Query(f" {word}{'' if distinct else ' ALL'} ".join(parts), sides[0].names, tuple(known))
        return self._cut(node, query, around)

    def _cut(self, node: exp.Expression, query: Query, around: Around) -> Query:
        """ORDER BY, LIMIT and OFFSET around a whole query."""
        order = node.args.get("order")
        if order is None and node.args.get("limit") is None and node.args.get("offset") is None:
            return query
        mine = self.fresh("r")
        relation = relation_of(mine, [], query)
        translate = Expressions(self, Scope([relation], outer=around.scope), around.tables)
        listed = ", ".join(f"{column.sql} AS {name(inner)}" for column, inner in _pairs(relation, query))
        sql = f"SELECT {listed} FROM ({query.sql}) AS {mine}"
        if order is not None:
            sql += " ORDER BY " + ", ".join(self._sort(translate, one, relation) for one in order.expressions)
        return Query(sql + limits(node), query.names, query.types)

    def _sort(self, translate: Expressions, node: exp.Expression, relation: Relation) -> str:
        key = node.this
        if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
            if not 1 <= int(key.name) <= len(relation.columns):
                raise BadQuery(f"ORDER BY {key.name}: there are {len(relation.columns)} columns")
            node = node.copy()
            node.set("this", exp.column(relation.columns[int(key.name) - 1].name, quoted=True))
        return ordered(translate, node)

    def scalar(self, translate: Any, node: exp.Expression) -> Term:
        """A query in the place of a value."""
        query = self.query(node, Around(translate.scope, translate.tables))
        if len(query.names) != 1:
            raise BadQuery(f"a query in the place of a value has one column, and this has {len(query.names)}")
        return Term(f"({query.sql})", query.types[0], raises=True)

    def exists(self, translate: Any, node: exp.Expression) -> Term:
        query = self.query(node, Around(translate.scope, translate.tables))
        return Term(f"EXISTS ({query.sql})", BOOLEAN)

    def is_in(self, translate: Any, term: Term, node: exp.Expression) -> Term:
        query = self.query(node, Around(translate.scope, translate.tables))
        if len(query.names) != 1:
            raise BadQuery(f"the query of IN has one column, and this has {len(query.names)}")
        inner = Term(f"q.{name(query.inner[0])}", query.types[0])
        one, two = translate.alike([term, inner])
        return terms.made(f"({one.sql} IN (SELECT {two.sql} FROM ({query.sql}) AS q))", BOOLEAN, one, two)


def _pairs(relation: Relation, query: Query) -> list[tuple[Column, str]]:
    return list(zip(relation.columns, query.inner, strict=True))


def _cells(row: exp.Expression) -> list[exp.Expression]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row]


def _as(query: Query, names: list[str], types: list[DataType]) -> str:
    """The query with its columns in other types."""
    listed = []
    for inner, kind, wanted, new in zip(query.inner, query.types, types, names, strict=True):
        term = cast(Term(f"q.{name(inner)}", kind), wanted)
        if term is None:
            raise NotTranslated(f"{kind.ddl()} cannot become {wanted.ddl()} here", hint="CAST it")
        listed.append(f"{term.sql} AS {name(new)}")
    return f"SELECT {', '.join(listed)} FROM ({query.sql}) AS q"

"""Names in a query: which column a name means, as Spark finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from evert.ask.terms import Term, untouched
from evert.ask.types import in_duckdb, is_floating
from evert.errors import BadQuery, NotTranslated
from evert.log.names import folded
from evert.schema.types import DataType, Struct

_NOTHING: Callable[[], None] = lambda: None  # noqa: E731


@dataclass(frozen=True)
class Column:
    """A column of a relation; `use` tells the relation that it is needed."""

    name: str
    sql: str
    type: DataType
    use: Callable[[], None] = field(default=_NOTHING, compare=False)

    def term(self) -> Term:
        self.use()
        if in_duckdb(self.type) is None:
            raise NotTranslated(
                f"the column {self.name} has the type {self.type.ddl()}, which only Spark can read",
                hint="leave the column out, or ask in a process where Spark runs",
                column=self.name,
            )
        return Term(self.sql, self.type)


@dataclass(frozen=True)
class Relation:
    """What stands in a FROM clause, under its names."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]

    def called(self, name: str) -> bool:
        return folded(name) in self.names


@dataclass
class Scope:
    """The relations of one SELECT, the columns that USING has merged, and the scope around it."""

    relations: list[Relation] = field(default_factory=list)
    merged: list[Column] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    outer: Scope | None = None
    aliases: dict[str, Term] = field(default_factory=dict)
    first: dict[str, Term] = field(default_factory=dict)
    """Names that come before those of columns: the output, in ORDER BY."""

    def visible(self) -> list[Column]:
        """What `*` stands for."""
        mine = [column for one in self.relations for column in one.columns if column.sql not in self.hidden]
        return [*self.merged, *mine]

    def columns_of(self, name: str) -> list[Column] | None:
        """What `name.*` stands for."""
        found = [one for one in self.relations if one.called(name)]
        return list(found[0].columns) if found else None

    def find(self, parts: Sequence[str]) -> Term:
        """The column of a name, else an alias of the same SELECT, else a column of the query around it."""
        scope: Scope | None = self
        while scope is not None:
            term = scope._find(parts)
            if term is not None:
                return term
            scope = scope.outer
        raise self._unknown(parts)

    def has_column(self, name: str) -> bool:
        return bool(self._candidates([name]))

    def _find(self, parts: Sequence[str]) -> Term | None:
        if len(parts) == 1 and folded(parts[0]) in self.first:
            return self.first[folded(parts[0])]
        found = self._candidates(parts)
        if len(found) > 1:
            raise BadQuery(
                f"the column {'.'.join(parts)} is ambiguous: {len(found)} relations have it",
                hint="write the relation's name before it",
                column=".".join(parts),
            )
        if found:
            column, fields = found[0]
            return _inner(column.term(), fields)
        alias = self.aliases.get(folded(parts[0]))
        return None if alias is None else _inner(alias, parts[1:])

    def _candidates(self, parts: Sequence[str]) -> list[tuple[Column, Sequence[str]]]:
        for split in range(len(parts) - 1, -1, -1):
            qualifier, name, fields = ".".join(parts[:split]), folded(parts[split]), parts[split + 1 :]
            columns = self.visible() if not split else self._qualified(qualifier)
            found = [(column, fields) for column in columns if folded(column.name) == name]
            if found and (not fields or isinstance(found[0][0].type, Struct)):
                return found
        return []

    def _qualified(self, name: str) -> Iterator[Column]:
        for one in self.relations:
            if one.called(name):
                yield from one.columns

    def _unknown(self, parts: Sequence[str]) -> BadQuery:
        name = ".".join(parts)
        known = list(dict.fromkeys([column.name for column in self.visible()] + list(self.aliases)))
        close = get_close_matches(parts[-1].lower(), [one.lower() for one in known], n=3)
        near = [one for one in known if one.lower() in close]
        listed = "the columns are " + ", ".join(known[:30]) if known else "the query reads nothing"
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else listed
        return BadQuery(f"there is no column {name!r}", hint=hint, column=name)


def _inner(term: Term, fields: Sequence[str]) -> Term:
    """A field of a STRUCT, and so on inwards."""
    for name in fields:
        if not isinstance(term.type, Struct):
            raise BadQuery(f"{name!r} cannot be a field of a {term.type.ddl()}", column=name)
        places = [i for i, one in enumerate(term.type.fields) if folded(one.name) == folded(name)]
        if len(places) != 1:
            known = ", ".join(one.name for one in term.type.fields)
            raise BadQuery(f"there is no field {name!r}", hint=f"the fields are {known}", column=name)
        kind = term.type.fields[places[0]].type
        sql = f"struct_extract_at({term.sql}, {places[0] + 1})"
        term = replace(term, sql=untouched(sql) if is_floating(kind) else sql, type=kind)
    return term


def unique(names: Sequence[str]) -> list[str]:
    """Names that DuckDB can tell apart, as like the given ones as can be.

    >>> unique(["a", "A", "b"])
    ['a', 'A_2', 'b']
    """
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        number, made = 1, name or "_"
        while made.lower() in taken:
            number += 1
            made = f"{name}_{number}"
        taken.add(made.lower())
        found.append(made)
    return found

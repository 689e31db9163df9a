"""A query of DuckDB with the columns that it has, and how the trees of sqlglot are taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from evert.ask import calls, literals
from evert.ask.scope import Column, Relation, Scope, unique
from evert.ask.terms import name
from evert.log.names import folded
from evert.schema.types import DataType


@dataclass(frozen=True)
class Query:
    """A query of DuckDB; its columns have unique names there, and these names and types for the user."""

    sql: str
    names: tuple[str, ...]
    types: tuple[DataType, ...]

    @property
    def inner(self) -> list[str]:
        return unique(self.names)


@dataclass(frozen=True)
class Around:
    """What a query can see of the queries around it."""

    scope: Scope | None = None
    tables: Mapping[str, tuple[str, Query]] = field(default_factory=dict)
    """The names of WITH, each with DuckDB's name for it."""


def argument(node: exp.Expression, part: str) -> Any:
    """A part of a node; sqlglot writes some of their names with an underscore, and older versions do not."""
    return node.args.get(part) or node.args.get(f"{part}_")


def only(node: exp.Expression, *parts: str) -> None:
    """Refuse what a node has beside these parts: nothing of a query is passed over."""
    for part, value in node.args.items():
        if value and part.rstrip("_") not in parts and part != "hint":
            raise calls.untranslated(f"{part.strip('_').replace('_', ' ').upper()} in {literals.shown(node)}")


def relation_of(mine: str, names: Sequence[str], query: Query) -> Relation:
    columns = tuple(
        Column(shown, f"{mine}.{name(inner)}", kind)
        for shown, inner, kind in zip(query.names, query.inner, query.types, strict=True)
    )
    return Relation(tuple(map(folded, names)), columns)

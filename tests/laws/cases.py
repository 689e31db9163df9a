"""Cases of the law of views as plain data: topics, views, and steps. Their `repr` is Python that runs again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.laws.choices import Dice
from tests.laws.values import KEY_KINDS, KINDS, Column, column, value
from tests.laws.views_grammar import Grammar, Relation

Row = dict[str, Any]


@dataclass(frozen=True)
class Topic:
    """A stream or a table; the key of a stream only keeps rows together."""

    name: str
    kind: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    partitions: int = 1

    @property
    def ddl(self) -> str:
        return ", ".join(one.ddl for one in self.columns)


@dataclass(frozen=True)
class View:
    """A view to be defined; `replace` if there is one of its name already."""

    name: str
    query: str
    replace: bool = False


@dataclass(frozen=True)
class Write:
    """Rows for a stream, rows that replace those of their keys, or keys that go."""

    kind: str
    topic: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Commit:
    """Writes in one transaction."""

    writes: tuple[Write, ...]


@dataclass(frozen=True)
class Refresh:
    """Bring the views to the head; then everything is compared."""


@dataclass(frozen=True)
class Case:
    """What happens to a database, from its first topic to its last refresh."""

    topics: tuple[Topic, ...]
    steps: tuple[View | Commit | Refresh, ...]


RISKY = (
    View("risky", "SELECT c1, 10 DIV c0 AS share FROM t1"),
    View("risked", "SELECT c1, count(*) AS n, sum(share) AS share FROM risky GROUP BY c1"),
)
"""A view that stops when its data make Spark fail and goes on when they are mended, and one that stops with it."""


def make_case(seed: int, *, views: int = 10, epochs: int = 3) -> Case:
    """A random case: views first, some in the middle, one of them replaced, and changes between refreshes."""
    dice = Dice(seed)
    topics = (
        _topic(dice, "e1", "stream"),
        _topic(dice, "e2", "stream"),
        _topic(dice, "t1", "table"),
        _topic(dice, "t2", "table"),
    )
    grammar = Grammar(dice, [_relation(topic) for topic in topics])
    defined: list[View] = []

    def define() -> View:
        made = grammar.view(recomputed=dice.chance(12))
        view = View(f"v{len(defined)}", made.sql)
        group = view.name if made.recomputed else grammar.group
        grammar.relations.append(Relation(view.name, made.columns, made.rows, False, group))
        defined.append(view)
        return view

    steps: list[View | Commit | Refresh] = []
    early = dice.number(0, 1)
    steps += [_commit(dice, topics) for _ in range(early)]
    later = dice.number(1, max(1, views // 4))
    steps += [define() for _ in range(views - later)]
    if dice.chance(40):
        steps += RISKY
    for epoch in range(epochs):
        steps += [_commit(dice, topics) for _ in range(dice.number(1, 3))]
        if epoch == 1:
            steps += [define() for _ in range(later)]
            steps.append(_replaced(grammar, defined))
        steps.append(Refresh())
    return Case(topics, tuple(steps))


def _replaced(grammar: Grammar, defined: list[View]) -> View:
    """The same columns and other rows for a view that others may read, or a new query for one that none reads."""
    dice = grammar.dice
    free = [v for v in defined if not any(f" {v.name} " in f"{other.query} " for other in defined)]
    if dice.chance(40):
        topics = [relation for relation in grammar.relations if not relation.name.startswith("v")]
        return View(dice.pick(free).name, Grammar(dice, topics).view(recomputed=False).sql, replace=True)
    old = dice.pick(defined)
    first = next(r for r in grammar.relations if r.name == old.name).columns[0][0]
    more = dice.pick([f"WHERE {first} IS NOT NULL", f"WHERE {first} IS NULL", f"UNION ALL ({old.query})"])
    return View(old.name, f"SELECT * FROM ({old.query}) {more}", replace=True)


def _topic(dice: Dice, name: str, kind: str) -> Topic:
    count = dice.number(1, 2) if kind == "table" else dice.number(0, 1)
    keys = [column(dice, f"k{i}", dice.pick(KEY_KINDS), False) for i in range(count)]
    always = [column(dice, f"c{i}", one) for i, one in enumerate(("int", "str"))]
    kinds = [dice.pick(list(KINDS)) for _ in range(dice.number(2, 5))]
    more = [column(dice, f"c{i + 2}", one, not dice.chance(10)) for i, one in enumerate(kinds)]
    columns = (*keys, *always, *more)
    return Topic(name, kind, columns, tuple(one.name for one in keys), dice.number(1, 2) if keys else 1)


def _relation(topic: Topic) -> Relation:
    columns = tuple((one.name, one.kind) for one in topic.columns)
    return Relation(topic.name, columns, 15, append_only=topic.kind == "stream")


def _commit(dice: Dice, topics: tuple[Topic, ...]) -> Commit:
    writes = []
    for topic in dice.some(topics, 1, 4):
        if topic.kind == "stream":
            rows = tuple(_row(dice, topic) for _ in range(dice.number(2, 7)))
            if dice.chance(30):
                rows = (*rows, rows[0])
            writes.append(Write("append", topic.name, rows))
            continue
        for _ in range(dice.number(1, 3)):
            rows = tuple(_row(dice, topic) for _ in range(dice.number(1, 3)))
            if dice.chance(35):
                keys = tuple({name: row[name] for name in topic.key} for row in rows)
                writes.append(Write("delete", topic.name, keys))
            else:
                writes.append(Write("upsert", topic.name, rows))
    return Commit(tuple(writes))


def _row(dice: Dice, topic: Topic) -> Row:
    return {one.name: value(dice, one) for one in topic.columns}

"""Reads and writes the `.sql` files in `cases/`: for each kind of node, what goes in and what comes out.

A file has topics and views, written as statements. Below a view stands its plan as `EXPLAIN` draws it. Then come
epochs, each with a sentence: the changes that go in (`>`), and the changes of the views that come out (`<`).

    CREATE STREAM orders (id INT, amount INT);
    CREATE MATERIALIZED VIEW large AS
    SELECT id FROM orders WHERE amount > 10;
    -- view of id [n0, incremental]
    --   filter (orders.amount > 10)
    --     stream orders

    -- epoch: only what passes the filter comes out
    -- > orders +1 [1, 20]
    -- > orders +1 [2, 5]
    -- < large +1 [1]

A row is JSON, the columns in their order; `-1` deletes from a table by its key. A view that has no line in an epoch
does not change. `python -m tests.delta.case_files` writes plans and outcomes anew; read what it changed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evert
from evert.plan.statements import CreateTopic, CreateView, parse

FOLDER = Path(__file__).parent / "cases"
_CHANGE = re.compile(r"-- ([<>]) (\w+) ([+-]\d+) (\[.*\])$")

Delta = dict[str, Counter]
"""By view, how often each row, as JSON, came or went."""


@dataclass
class CaseView:
    """A view of a file and its plan."""

    name: str
    statement: str
    plan: list[str]


@dataclass
class CaseEpoch:
    """A sentence, changes of topics in their order, and changes of views."""

    text: str
    given: list[tuple[str, int, list[Any]]] = field(default_factory=list)
    expected: Delta = field(default_factory=dict)


@dataclass
class CaseFile:
    """All of one file."""

    path: Path
    title: str
    topics: list[str] = field(default_factory=list)
    views: list[CaseView] = field(default_factory=list)
    epochs: list[CaseEpoch] = field(default_factory=list)

    def __str__(self) -> str:
        views = ["\n".join([view.statement, *(f"-- {line}" for line in view.plan)]) for view in self.views]
        epochs = ["\n".join([f"-- epoch: {epoch.text}", *_changes(epoch)]) for epoch in self.epochs]
        return "\n\n".join([f"-- {self.title}\n" + "\n".join(self.topics), *views, *epochs]) + "\n"


def _changes(epoch: CaseEpoch) -> list[str]:
    given = [f"-- > {name} {weight:+d} {_json(row)}" for name, weight, row in epoch.given]
    expected = [
        f"-- < {view} {weight:+d} {row}"
        for view, rows in epoch.expected.items()
        for row, weight in sorted(rows.items(), key=lambda pair: (pair[0], pair[1]))
    ]
    return given + expected


def read(path: Path) -> CaseFile:
    """A file's cases."""
    title, *lines = path.read_text().splitlines()
    case = CaseFile(path, title.removeprefix("-- "))
    statement: list[str] = []
    for line in lines:
        change = _CHANGE.match(line)
        if line.startswith("-- epoch: "):
            case.epochs.append(CaseEpoch(line.removeprefix("-- epoch: ")))
        elif change:
            _add(case.epochs[-1], *change.groups())
        elif line.startswith("-- "):
            case.views[-1].plan.append(line.removeprefix("-- "))
        elif line:
            statement.append(line)
            if line.endswith(";"):
                _finish(case, "\n".join(statement))
                statement = []
    return case


def _finish(case: CaseFile, text: str) -> None:
    (parsed,) = parse(text)
    if isinstance(parsed, CreateTopic):
        case.topics.append(text)
    elif isinstance(parsed, CreateView):
        case.views.append(CaseView(parsed.name, text, []))


def _add(epoch: CaseEpoch, way: str, name: str, weight: str, row: str) -> None:
    if way == ">":
        epoch.given.append((name, int(weight), json.loads(row)))
    else:
        epoch.expected.setdefault(name, Counter())[row] += int(weight)


def read_all() -> list[CaseFile]:
    return [read(path) for path in sorted(FOLDER.glob("*.sql"))]


def executed(cases: Sequence[CaseFile], folder: Path) -> list[CaseFile]:
    """The same files as the engine would write them: all of them in one database, epoch by epoch together."""
    with evert.open(folder, background=False) as db:
        for case in cases:
            db.sql("\n".join(case.topics))
        views = {case.path: [_defined(db, view) for view in case.views] for case in cases}
        epochs: dict[Path, list[CaseEpoch]] = {case.path: [] for case in cases}
        for number in range(max(len(case.epochs) for case in cases)):
            running = [case for case in cases if number < len(case.epochs)]
            before = {view.name: view.position for view in db.views.values()}
            for case in running:
                _write(db, case.epochs[number])
            db.refresh()
            for case in running:
                found = {view.name: _outcome(db, view.name, before[view.name]) for view in case.views}
                changed = {name: rows for name, rows in found.items() if rows}
                given = case.epochs[number]
                epochs[case.path].append(CaseEpoch(given.text, given.given, changed))
    return [CaseFile(c.path, c.title, c.topics, views[c.path], epochs[c.path]) for c in cases]


def _defined(db: evert.Database, view: CaseView) -> CaseView:
    db.sql(view.statement)
    return CaseView(view.name, view.statement, list(db.explain(view.name).lines))


def _write(db: evert.Database, epoch: CaseEpoch) -> None:
    with db.transaction() as tx:
        for name, weight, row in epoch.given:
            topic = db.definition(name)
            if weight < 0:
                tx.delete(name, [tuple(row)])
                continue
            add = tx.append if topic.kind == "stream" else tx.upsert
            add(name, [dict(zip(topic.schema.names, row, strict=True))] * weight)


def _outcome(db: evert.Database, name: str, after: int) -> Counter:
    """What a view's feed says that changed; every row must be in it once."""
    rows: Counter = Counter()
    feed = db.view(name).changes(after=after) if after >= 0 else db.view(name).changes()
    for change in feed:
        for row in change.rows.to_pylist():
            weight = row.pop("_weight")
            shown = _json(list(row.values()))
            assert weight, f"{name}: {shown} has the weight 0"
            assert shown not in rows, f"{name}: {shown} is told twice"
            rows[shown] = weight
    return rows


def _json(row: list[Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


def main() -> None:
    """Write plans and outcomes anew."""
    import tempfile

    for case in executed(read_all(), Path(tempfile.mkdtemp()) / "db"):
        case.path.write_text(str(case))


if __name__ == "__main__":
    main()

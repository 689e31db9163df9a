"""The queries of Nexmark as views: after several epochs each has the rows that plain Spark SQL gives."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests.oracle import Oracle, assert_same

import evert
from evert.testing import ManualClock, nexmark

pytestmark = pytest.mark.timeout(900)

EPOCHS = (1500, 1, 999)
"""How many events come in each epoch, fifty of them a second."""


@dataclass
class Kept:
    """A database with all views, and what was written to it."""

    db: evert.Database
    tables: dict[str, pa.Table]


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory):
    clock = ManualClock()
    with evert.open(tmp_path_factory.mktemp("nexmark") / "db", clock=clock, background=False) as db:
        for name, schema in nexmark.SCHEMAS.items():
            db.stream(name, schema)
        side = db.table("side_input", "key BIGINT, value BIGINT", key="key")
        side.upsert(nexmark.side_input(1_100))
        for query in nexmark.QUERIES.values():
            db.view(query.name, query.sql)
        first = 0
        for count in EPOCHS:
            made = nexmark.events(first, count, nexmark.Config(rate=50)).tables()
            for name, rows in made.items():
                db.topic(name).append(rows)
            clock.advance("7 seconds")
            side.upsert({"key": 1000 + first // 50, "value": -first})
            side.delete(1050 + first // 50)
            db.refresh()
            first += count
        made = nexmark.events(0, first, nexmark.Config(rate=50)).tables()
        changed = {1000 + sum(EPOCHS[:n]) // 50: -sum(EPOCHS[:n]) for n in range(len(EPOCHS))}
        gone = {key + 50 for key in changed}
        rows = [
            {"key": row["key"], "value": changed.get(row["key"], row["value"])}
            for row in nexmark.side_input(1_100).to_pylist()
            if row["key"] not in gone
        ]
        yield Kept(db, made | {"side_input": pa.Table.from_pylist(rows)})


@pytest.mark.parametrize("name", nexmark.QUERIES)
def test_a_view_is_what_spark_makes_of_the_same_events(spark, kept, name):
    tables = dict(kept.tables)
    if name == "q12":
        written = list(kept.db.topic("bid").read())
        tables["bid"] = pa.Table.from_batches(written).select([*tables["bid"].column_names, "_ingested_at"])
    query = nexmark.QUERIES[name]
    expected = Oracle(spark, {table: tables[table] for table in query.reads}).answer(query.sql)
    assert expected.num_rows
    assert_same(kept.db.views[name].arrow(), expected)
    (proof,) = kept.db.prove(name)
    assert proof.holds


@pytest.mark.parametrize("name", nexmark.QUERIES)
def test_a_view_is_not_recomputed(kept, name):
    assert kept.db.explain(name).recomputes is None

"""A condition chooses the same rows wherever it is evaluated: by a scan of Parquet, of Arrow, or in DuckDB."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from tests.ask import edges
from tests.views.engine import open_database

KINDS = [kind for kind in edges.VALUES if "ARRAY" not in kind and kind != "BINARY"]
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    """A stream of all kinds: some rows are in a segment of many commits, some in one of one, some in none."""
    schema = ", ".join(f"c{n} {kind}" for n, kind in enumerate(KINDS))
    rows = [
        dict(zip([f"c{n}" for n in range(len(KINDS))], row, strict=True))
        for row in itertools.zip_longest(*([*edges.VALUES[kind], None] for kind in KINDS))
    ]
    with open_database(tmp_path_factory.mktemp("ask") / "db", direct_rows=len(rows) - 1) as made:
        stream = made.stream("e", schema)
        for row in rows:
            stream.append(row)
        made.maintain()
        stream.append(pa.Table.from_pylist(rows, made.definition("e").schema.arrow))
        for row in rows:
            stream.append(row)
        yield made


@pytest.mark.parametrize("kind", KINDS)
def test_a_condition_chooses_the_rows_for_which_it_is_true(db, kind):
    column = f"c{KINDS.index(kind)}"
    given = db.ask(f"SELECT DISTINCT {column} AS x FROM e").arrow().column("x")
    written = [literal(value, kind) for value in given if value.is_valid][:5]
    for value, sign in itertools.product(written, SIGNS):
        condition = f"{column} {sign} {value}"
        everywhere = db.ask(f"SELECT _offset, {condition} AS x FROM e").rows()
        wanted = sorted(row["_offset"] for row in everywhere if row["x"])
        chosen = db.ask(f"SELECT _offset FROM e WHERE {condition} ORDER BY _offset").rows()
        assert [row["_offset"] for row in chosen] == wanted, condition
        joined = f"SELECT _offset FROM e JOIN (SELECT {value} AS v) q ON {column} {sign} v ORDER BY _offset"
        assert [row["_offset"] for row in db.ask(joined).rows()] == wanted, joined


def literal(value: pa.Scalar, kind: str) -> str:
    if kind in ("FLOAT", "DOUBLE"):
        return f"CAST('{value.as_py()!r}' AS {kind})"
    if kind == "STRING":
        return "'" + value.as_py().replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind.startswith("TIMESTAMP"):
        text = value.cast(pa.timestamp("us")).cast(pa.string()).as_py()
        return f"CAST('{text}' AS {kind})"
    return f"CAST('{value.cast(pa.string()).as_py()}' AS {kind})"

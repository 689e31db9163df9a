"""The tables and queries of TPC-H and TPC-DS, as DuckDB's extensions make them; all comes from PyPI.

The texts of the queries are asked for at run time, and edited where Spark's SQL differs from DuckDB's or where a
parameter finds nothing in a database as small as those of the tests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import pyarrow as pa

Suite = Literal["tpch", "tpcds"]
Edits = Mapping[str, Sequence[tuple[str, str]]]

TPCH_KEYS = {
    "customer": "c_custkey",
    "lineitem": "l_orderkey l_linenumber",
    "nation": "n_nationkey",
    "orders": "o_orderkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey ps_suppkey",
    "region": "r_regionkey",
    "supplier": "s_suppkey",
}
_CALLS = {"tpch": "CALL dbgen(sf = {})", "tpcds": "CALL dsdgen(sf = {})"}


@dataclass(frozen=True)
class Data:
    """The tables by name and the queries by name: q1, q2, ..."""

    tables: dict[str, pa.Table]
    queries: dict[str, str]


def missing(suite: Suite) -> str | None:
    """Why a suite cannot be made here, or None."""
    try:
        _connect(suite)
    except Exception as error:
        return f"{suite} needs duckdb and its extension from PyPI: {str(error).splitlines()[0]}"
    return None


@cache
def _connect(suite: Suite) -> Any:
    import duckdb
    from duckdb_extensions import import_extension

    import_extension(suite)
    connection = duckdb.connect()
    connection.execute(f"LOAD {suite}")
    return connection


def make(suite: Suite, scale: float, edits: Edits) -> Data:
    """All tables of a suite at a scale factor, and its queries in Spark SQL with some texts replaced."""
    source = _connect(suite).cursor()
    if not source.execute("SHOW TABLES").fetchall():
        source.execute(_CALLS[suite].format(scale))
    names = [name for (name,) in source.execute("SHOW TABLES").fetchall()]
    tables = {name: source.execute(f"FROM {name}").to_arrow_table() for name in names}
    queries = {f"q{number}": text for number, text in source.execute(f"FROM {suite}_queries()").fetchall()}
    return Data(tables, {name: _edited(name, text, edits.get(name, ())) for name, text in queries.items()})


def _edited(name: str, text: str, edits: Sequence[tuple[str, str]]) -> str:
    text = re.sub(r"--.*", "", text).replace('"', "`")
    text = re.sub(r"\s+", " ", text).strip().removesuffix(";")
    for old, new in edits:
        assert old in text, f"{name} has no {old}"
        text = text.replace(old, new)
    return text

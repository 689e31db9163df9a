"""TPC-DS in small: all 24 tables, with the rows of dimensions that facts speak of."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from tests.tpc import source
from tests.tpc.source import Data

SCALE = 0.01
"""The smallest that the generator takes."""

FACTS = {
    "catalog_returns": "cr_item_sk cr_order_number",
    "catalog_sales": "cs_item_sk cs_order_number",
    "inventory": "inv_date_sk inv_item_sk inv_warehouse_sk",
    "store_returns": "sr_item_sk sr_ticket_number",
    "store_sales": "ss_item_sk ss_ticket_number",
    "web_returns": "wr_item_sk wr_order_number",
    "web_sales": "ws_item_sk ws_order_number",
}
LARGE = {
    "catalog_page": "catalog_page_sk",
    "customer_demographics": "cdemo_sk",
    "household_demographics": "hdemo_sk",
    "time_dim": "time_sk",
}
"""Dimensions of which only a few rows are used, and how columns that refer to them end."""

_FIRST = ("LIMIT 100", "LIMIT 100000")
"""More than there are: which of equal rows are the first hundred is nobody's to say."""


def make() -> Data:
    """The tables and the 99 queries."""
    whole = source.make("tpcds", SCALE, {})
    used = {name: pa.array(sorted(_used(whole, ending))) for name, ending in LARGE.items()}
    tables = dict(whole.tables)
    for name, keys in used.items():
        tables[name] = tables[name].filter(pc.is_in(tables[name].column(0), keys))
    years = tables["date_dim"].column("d_year")
    kept = pc.and_(pc.greater_equal(years, 1998), pc.less_equal(years, 2003))
    tables["date_dim"] = tables["date_dim"].filter(kept)
    queries = {name: text.replace(*_FIRST) for name, text in whole.queries.items()}
    return Data(tables, queries)


def keys(data: Data) -> dict[str, str]:
    """The key of each table: that of a dimension is its first column."""
    return {name: FACTS.get(name, table.column_names[0]) for name, table in data.tables.items()}


def _used(data: Data, ending: str) -> set[int]:
    found = {value for column in _columns(data, ending) for value in pc.unique(column).to_pylist()}
    return found - {None}


def _columns(data: Data, ending: str) -> Iterator[pa.ChunkedArray]:
    for name in (*FACTS, "customer"):
        for column in data.tables[name].column_names:
            if column.endswith(ending):
                yield data.tables[name].column(column)

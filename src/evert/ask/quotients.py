"""Exact division of decimals, which DuckDB does not have: as whole numbers of 38 digits."""

from __future__ import annotations

from evert.ask.types import in_duckdb
from evert.schema.types import Decimal

MACROS = (
    "CREATE MACRO unscaled(d) AS CAST(replace(CAST(d AS VARCHAR), '.', '') AS HUGEINT)",
    "CREATE MACRO halved(n, d) AS CASE WHEN (n < 0) = (d < 0) THEN 1 ELSE -1 END"
    " * ((2 * abs(n) + abs(d)) // (2 * abs(d)))",
    "CREATE MACRO pointed(u, unit, s) AS CASE WHEN u < 0 THEN '-' ELSE '' END || CAST(abs(u) // unit AS VARCHAR)"
    " || CASE WHEN s > 0 THEN '.' || lpad(CAST(abs(u) % unit AS VARCHAR), s, '0') ELSE '' END",
)


def quotient(one: str, two: str, shift: int, kind: Decimal) -> str:
    """Two decimals divided as whole numbers, rounded half away from zero."""
    ten = f"CAST('{10**shift}' AS HUGEINT)"
    whole = f"halved(unscaled({one}) * {ten}, unscaled({two}))"
    unit = f"CAST('{10**kind.scale}' AS HUGEINT)"
    return f"pointed({whole}, {unit}, {kind.scale})::{in_duckdb(kind)}"

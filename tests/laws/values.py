"""Columns of every type and the few values that are drawn for them, so that rows meet and repeat.

A kind says what a query may do with a column. `int`, `dec` and `dbl` have values that can be added and multiplied
without overflow and without rounding. Their wild sisters have the ends of their types' ranges. `noisy` numbers are
results whose last digits depend on the order of addition: they are shown and added, never compared or cast.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.laws.choices import Dice

inf, nan = float("inf"), float("nan")
UTC = dt.UTC

INTS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
DECIMALS = {"DECIMAL(10,2)": 2, "DECIMAL(5,0)": 0, "DECIMAL(18,6)": 6}
WILD_DECIMALS = {
    "DECIMAL(38,0)": [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(7)],
    "DECIMAL(38,18)": [Decimal("1E-18"), Decimal("-1E-18"), Decimal("9" * 20), Decimal("0.5")],
    "DECIMAL(20,10)": [Decimal("1E-10"), Decimal("-9999999999.5"), Decimal("2.5")],
}
MOMENTS = [
    dt.datetime(1970, 1, 1),
    dt.datetime(2026, 3, 29, 1, 30),
    dt.datetime(2026, 3, 29, 1, 30, 0, 1),
    dt.datetime(1901, 12, 13, 20, 45, 52, 999999),
]
WORDS = ["", "a", "A", "b", "ab", "é", "𝄞", " a", "a ", "x%_", "0", "12"]

KINDS = {
    "bool": ["BOOLEAN"],
    "int": list(INTS),
    "wint": list(INTS),
    "dbl": ["DOUBLE", "FLOAT"],
    "wdbl": ["DOUBLE", "FLOAT"],
    "dec": list(DECIMALS),
    "wdec": list(WILD_DECIMALS),
    "str": ["STRING", "STRING", "VARCHAR(4)"],
    "bin": ["BINARY"],
    "date": ["DATE"],
    "ts": ["TIMESTAMP"],
    "ntz": ["TIMESTAMP_NTZ"],
    "time": ["TIME(6)"],
    "span": ["INTERVAL DAY TO SECOND"],
    "ints": ["ARRAY<INT>"],
    "strs": ["ARRAY<STRING>"],
    "structs": ["ARRAY<STRUCT<p: INT, q: STRING>>"],
    "map": ["MAP<STRING, INT>"],
    "struct": ["STRUCT<p: INT, q: STRING, r: DOUBLE>"],
}
KEY_KINDS = ["int", "int", "str", "wint", "date", "dec", "wdec", "bool", "ts", "bin", "dbl"]
"""What the keys of tables are made of."""

COMPARABLE = [
    "bool",
    "int",
    "wint",
    "dbl",
    "wdbl",
    "dec",
    "wdec",
    "str",
    "bin",
    "date",
    "ts",
    "ntz",
    "time",
    "span",
]
FLOATING = ["dbl", "wdbl", "noisy"]


@dataclass(frozen=True)
class Column:
    """A column of a topic."""

    name: str
    kind: str
    type: str
    nullable: bool = True

    @property
    def ddl(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


def column(dice: Dice, name: str, kind: str, nullable: bool = True) -> Column:
    return Column(name, kind, dice.pick(KINDS[kind]), nullable)


def value(dice: Dice, of: Column) -> Any:
    """A value in the form in which rows are appended and Arrow gives them back; often NULL."""
    if of.nullable and dice.chance(20):
        return None
    return _value(dice, of.kind, of.type)


def _value(dice: Dice, kind: str, type: str) -> Any:
    match kind:
        case "bool":
            return dice.chance(50)
        case "int":
            return dice.number(-3, 6)
        case "wint":
            half = 2 ** (INTS[type] - 1)
            return dice.pick([0, 1, half - 1, -half, -1, 2])
        case "dbl":
            return dice.pick([0.0, 1.5, -0.0, -2.25, nan, 3.0, inf, -inf])
        case "wdbl":
            most = 3.4028234663852886e38 if type == "FLOAT" else 1.7976931348623157e308
            least = 1.401298464324817e-45 if type == "FLOAT" else 5e-324
            return dice.pick([0.0, -0.0, most, -most, least, -least, nan, inf])
        case "dec":
            return Decimal(dice.number(-3, 6)).scaleb(-DECIMALS[type])
        case "wdec":
            return dice.pick(WILD_DECIMALS[type])
        case "str":
            return dice.pick(WORDS)
        case "bin":
            return dice.pick([b"", b"\x00", b"\xff\xfe", b"a", b"ab"])
        case "date":
            return dice.pick([dt.date(1970, 1, 1), dt.date(2026, 2, 28), dt.date(1899, 12, 31)])
        case "ts":
            return dice.pick(MOMENTS).replace(tzinfo=UTC)
        case "ntz":
            return dice.pick(MOMENTS)
        case "time":
            return dice.pick([dt.time(0), dt.time(23, 59, 59, 999999), dt.time(1, 30)])
        case "span":
            return dt.timedelta(seconds=dice.number(-3, 6), microseconds=dice.number(0, 1))
        case "ints":
            return [_maybe(dice, "int", "INT") for _ in range(dice.number(0, 3))]
        case "strs":
            return [_maybe(dice, "str", "STRING") for _ in range(dice.number(0, 3))]
        case "structs":
            return [None if dice.chance(10) else _pair(dice) for _ in range(dice.number(0, 3))]
        case "map":
            keys = dice.some(["a", "b", "c"], 0, 3)
            return [(key, _maybe(dice, "int", "INT")) for key in keys]
        case "struct":
            return _pair(dice) | {"r": _maybe(dice, "dbl", "DOUBLE")}
    raise ValueError(kind)


def _maybe(dice: Dice, kind: str, type: str) -> Any:
    return None if dice.chance(20) else _value(dice, kind, type)


def _pair(dice: Dice) -> dict[str, Any]:
    return {"p": _maybe(dice, "int", "INT"), "q": _maybe(dice, "str", "STRING")}

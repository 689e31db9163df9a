"""Values at the edges of the types, and expressions over them for every line of the tables."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from evert.ask.functions import Function
from evert.schema.schema import Schema

inf, nan = float("inf"), float("nan")
UTC = dt.UTC

WORDS = [
    "", "a", "A", "ab", " a ", "é", "ÀÉ", "𝄞x", "e\u0301", "a,b,,c", "ß", "Σ", "12", " 7 ", "1.5", "-0", "nan",
    "true", "2020-02-29", "it's", "\t9\n", "x%_", "1e3", "2020-1-5", "0x1", "+3", ".5", "yes", "inf", "1d",
]  # fmt: skip
DAYS = [
    dt.date(1, 1, 1),
    dt.date(1899, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2020, 2, 29),
    dt.date(2021, 1, 3),
]
MOMENTS = [
    dt.datetime(1, 1, 1),
    dt.datetime(1901, 12, 13, 20, 45, 52, 999999),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2020, 2, 29, 12, 34, 56, 700000),
    dt.datetime(9999, 12, 31, 23, 59, 59),
]
VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False],
    "TINYINT": [-128, -1, 0, 3, 127],
    "SMALLINT": [-(2**15), 0, 2**15 - 1],
    "INT": [-(2**31), -1, 0, 7, 2**31 - 1],
    "BIGINT": [-(2**63), -7, -1, 0, 2, 2**63 - 1],
    "FLOAT": [nan, inf, -0.0, 1.5, -2.5, 3.4028234663852886e38],
    "DOUBLE": [nan, inf, -inf, -0.0, 0.285, 1.5, -2.5, 2.675, 1e308, 5e-324, 4.35, 123456789.123455],
    "DECIMAL(10,2)": [Decimal(x) for x in ("-99999999.99", "-0.01", "0", "0.05", "1.50", "2.5", "3")],
    "DECIMAL(20,5)": [Decimal(x) for x in ("-999999999999999.99999", "0.00001", "0", "12.34565")],
    "DECIMAL(5,0)": [Decimal(x) for x in ("-99999", "0", "7")],
    "STRING": WORDS,
    "DATE": [*DAYS, dt.date(9999, 12, 31)],
    "TIMESTAMP": [one.replace(tzinfo=UTC) for one in MOMENTS],
    "TIMESTAMP_NTZ": MOMENTS,
    "BINARY": [b"", b"\x00", b"\xff\xfe", b"a"],
    "ARRAY<INT>": [[], [1, 2], [None, 3]],
}
FEW: dict[str, list[Any]] = VALUES | {
    "STRING": ["", "a", "ab", "é𝄞", "a,b,,c", "aXbX", "X"],
    "DOUBLE": [nan, inf, -0.0, 0.0, 1.5, -2.5, 1e308],
    "INT": [-5, -1, 0, 1, 2, 3],
    "DATE": [dt.date(1899, 12, 31), dt.date(1970, 1, 1), dt.date(2020, 2, 29), dt.date(2021, 1, 31)],
    "TIMESTAMP": VALUES["TIMESTAMP"][2:5],
}
TYPES = {
    "str": ["STRING"],
    "bool": ["BOOLEAN"],
    "int": ["TINYINT", "INT", "BIGINT"],
    "i32": ["INT"],
    "big": ["BIGINT", "INT"],
    "dec": ["DECIMAL(10,2)", "DECIMAL(20,5)", "DECIMAL(5,0)"],
    "flt": ["FLOAT", "DOUBLE"],
    "f64": ["DOUBLE"],
    "dbl": ["DOUBLE", "BIGINT", "DECIMAL(10,2)"],
    "date": ["DATE", "TIMESTAMP"],
    "ts": ["TIMESTAMP", "DATE", "TIMESTAMP_NTZ"],
    "any": ["INT", "DOUBLE", "STRING", "DATE", "TIMESTAMP", "BOOLEAN", "DECIMAL(10,2)", "BINARY"],
    "same": ["INT", "BIGINT", "DOUBLE", "STRING", "DECIMAL(10,2)", "DATE", "TIMESTAMP"],
    "arr": ["ARRAY<INT>"],
}
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "div", "mod": "%", "concat": "||"}
MIXED = {("same", "same"): [("INT", "DOUBLE"), ("INT", "DECIMAL(10,2)"), ("DATE", "TIMESTAMP")]}
PAIRS = {
    "int+": [("TINYINT", "TINYINT"), ("INT", "INT"), ("BIGINT", "INT"), ("BIGINT", "BIGINT")],
    "flt+": [("FLOAT", "FLOAT"), ("DOUBLE", "DOUBLE"), ("FLOAT", "INT"), ("DOUBLE", "DECIMAL(10,2)")],
}


def table(types: list[str], *, few: bool = False) -> pa.Table:
    """Every combination of edges of the types in the columns a0, a1, …, and NULL among them; numbered in i."""
    pool = FEW if few or len(types) > 1 else VALUES
    rows = list(itertools.product(*([*pool[kind], None] for kind in types)))
    schema = arrow(types)
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
    return pa.table([pa.array(range(len(rows)), pa.int64()), *arrays], names=["i", *schema.names])


def arrow(types: list[str]) -> pa.Schema:
    return Schema.parse(", ".join(f"a{i} {kind}" for i, kind in enumerate(types))).arrow


def cases(function: Function) -> Iterator[tuple[list[str], str]]:
    """Types of columns, and the function's call over them."""
    takes = list(function.takes)
    if len(takes) == 1 and takes[0].endswith("+"):
        for pair in PAIRS[takes[0]]:
            yield list(pair), f"a0 {SIGNS[function.name]} a1"
        return
    if takes and takes[-1].endswith("*"):
        takes = [*takes[:-1], takes[-1][:-1], takes[-1][:-1]]
    choices = [TYPES[kind] for kind in dict.fromkeys(takes) if kind in TYPES]
    names = [kind for kind in dict.fromkeys(takes) if kind in TYPES]
    for chosen in itertools.product(*choices):
        kinds = dict(zip(names, chosen, strict=True))
        types = [kinds[kind] for kind in takes if kind in TYPES]
        for call in _calls(function, takes):
            yield types, call
    for types in MIXED.get(tuple(takes), ()):
        yield list(types), next(_calls(function, takes))


def _calls(function: Function, takes: list[str]) -> Iterator[str]:
    columns = iter(range(len(takes)))
    options: list[list[str]] = []
    for kind in takes:
        if kind.startswith("'"):
            options.append([f"'{word}'" for word in re.findall(r"'([^']*)'", kind)])
        elif kind in ("digits", "count"):
            options.append(["0", "1", "2"] if kind == "digits" else ["2"])
        else:
            options.append([f"a{next(columns)}"])
    for written in itertools.product(*options):
        if function.name == "neg":
            yield f"-{written[0]}"
        elif function.name in SIGNS and len(written) == 2 and not function.sql.startswith("({||}"):
            yield f"{written[0]} {SIGNS[function.name]} {written[1]}"
        else:
            yield f"{function.name}({', '.join(written)})"

"""Lines that Arrow reads are read as the decoder reads them, which is the reference."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evert.errors import BadRow
from evert.schema.arrow_json import read
from evert.schema.decode import json_lines
from evert.schema.schema import Schema

TYPES = ("BOOLEAN", "TINYINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(38,10)", "STRING", "DATE")
TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")
MOMENTS = st.datetimes().map(lambda at: at.isoformat())
ZONES = st.sampled_from(["", "Z", "+02:00", "-11:30", "+0200", "+02", " Z", "z", "+24:00", "+00:00:30"])
ODD_TIMES = (
    "2026-06-01",
    "2026-06-01T09",
    "2026-06-01T09:30",
    "2026-06-01 09:30:00.1",
    "2026-06-01T09:30:00.1234567",
    "2026-06-01T24:00:00",
    "0000-01-01T00:00:00",
    "0001-01-01T00:00:00+14:00",
    "20260601",
    "2026-W23-1",
    "2026-06-01t09:30:00",
    " 2026-06-01 ",
    "9999-12-31T23:59:59.999999-14:00",
)
times = st.one_of(st.tuples(MOMENTS, ZONES).map("".join), st.dates().map(str), st.sampled_from(ODD_TIMES))
ODD_NUMBERS = ("-0", "-0.0", "1e2", "1E-2", "1.0", "1.250", "9007199254740993", "-1e-400", "1e400", "0.1e1")
numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.integers(-300, 300).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.decimals(-1000, 1000, places=2).map(str),
    st.sampled_from(ODD_NUMBERS),
    st.sampled_from(["NaN", "Infinity", "-Infinity", "Inf", "01", "+1", ".5", "1.", "-"]),
)
decimals = st.sampled_from([".5", "1.", "+1.5", "1e1", " 1", "1_0", "-0", "", "NaN", "1.255", "\u0661"])
raw = st.one_of(
    numbers,
    st.sampled_from(["true", "false", "null", "[]", "{}", '"\\ud800"', '"\\u0000"', '"\t"', "nul", ""]),
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.one_of(times, decimals).map(json.dumps),
)
FITTING: dict[str, st.SearchStrategy[str]] = {
    "BOOLEAN": st.sampled_from(["true", "false"]),
    "TINYINT": st.integers(-128, 127).map(str),
    "INT": st.integers(-(2**31), 2**31 - 1).map(str),
    "BIGINT": st.integers(-(2**63), 2**63 - 1).map(str),
    "DOUBLE": st.one_of(st.floats(-1e9, 1e9).map(json.dumps), st.integers(-99, 99).map(str)),
    "DECIMAL(9,2)": st.decimals(-1000, 1000, places=2).map(str),
    "DECIMAL(38,10)": st.decimals(-1000, 1000, places=5).map(str),
    "STRING": st.text(max_size=5).map(json.dumps),
    "DATE": st.dates().map(lambda day: json.dumps(str(day))),
}
LIKELY: dict[str, st.SearchStrategy[str]] = {
    "DOUBLE": numbers,
    "DECIMAL(9,2)": st.one_of(numbers, decimals.map(json.dumps)),
    "DECIMAL(38,10)": st.one_of(numbers, decimals.map(json.dumps)),
    **dict.fromkeys(("DATE", *TIMES), times.map(json.dumps)),
}
"""What comes near to a type, or is another way to write it."""


@st.composite
def cases(draw: st.DrawFn) -> tuple[Schema, bytes]:
    kinds = draw(st.lists(st.sampled_from(TYPES + TIMES), min_size=1, max_size=3))
    full = draw(st.sampled_from(["", "", " NOT NULL"]))
    schema = Schema.parse(", ".join(f"c{n} {kind}{full}" for n, kind in enumerate(kinds)))
    moments = (
        st.tuples(MOMENTS, st.just(draw(st.sampled_from(["Z", ""]) | ZONES))).map("".join).map(json.dumps)
    )
    fitting = {**FITTING, **dict.fromkeys(TIMES, moments)}
    odd = draw(st.sampled_from(["", "", "null", "likely", "raw"]))
    lines = []
    for number in range(draw(st.integers(1, 3))):
        values = {f"c{n}": draw(fitting[kind]) for n, kind in enumerate(kinds)}
        at = draw(st.integers(0, len(kinds) - 1))
        if odd == "null":
            values[f"c{at}"] = "null"
            values.pop(f"c{draw(st.integers(0, 3))}", None)
        elif odd and number == 0:
            values[f"c{at}"] = draw(LIKELY.get(kinds[at], raw) if odd == "likely" else raw)
        space = draw(st.sampled_from(["", " "]))
        lines.append("{" + ",".join(f'"{name}":{space}{value}' for name, value in values.items()) + "}")
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    return schema, draw(st.one_of(st.just(data), st.just(data + b"\n"), broken(data)))


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """Lines that are not as they should be, or only seem so."""
    between = draw(st.sampled_from([b"\n", b"\r\n", b"", b"\n\n", b"\r", b" \n", b",\n"]))
    data = draw(st.sampled_from([b"", b"", b" ", "\ufeff".encode()])) + data.replace(b"\n", between)
    data += draw(st.sampled_from([b"", b"\n", b"\n\n", b"\n}", b" x", b'\n{"x": 1}', b'{"c0": 1, "c0": 1}']))
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.sampled_from([b"", b"\n", b"\xff", b"\x00", b"\r", b"}{", b","])) + data[at:]


@settings(max_examples=500, deadline=None)
@given(cases())
def test_what_arrow_reads_is_what_the_decoder_reads(case: tuple[Schema, bytes]) -> None:
    schema, data = case
    found = read(data, schema)
    if found is not None:
        (want,) = json_lines(data.splitlines(), schema, topic="t", chunk=100)
        assert repr(found.to_pylist()) == repr(want.to_pylist())
        assert found.schema == want.schema
        found.validate(full=True)


def test_ordinary_lines_are_read_by_arrow() -> None:
    schema = Schema.parse(
        "id BIGINT, ok BOOLEAN, name STRING, price DECIMAL(9,2), weight DOUBLE, day DATE, at TIMESTAMP,"
        " here TIMESTAMP_NTZ"
    )
    row: dict[str, Any] = {
        "id": 7,
        "ok": True,
        "name": "gr\u00fc\u00df \U0001f600",
        "price": 12.5,
        "weight": 0.0,
        "day": "2026-06-01",
        "at": "2026-06-01T09:30:00.25+02:00",
        "here": "2026-06-01T09:30:00",
    }
    rows = [row, {"id": 8, "price": "0.10"}, dict.fromkeys(row), {}]
    data = "\n".join(map(json.dumps, rows)).encode() + b"\n"
    found = read(data, schema)
    assert found is not None
    (want,) = json_lines(data.splitlines(), schema, topic="t")
    assert found.equals(want)
    local = read(b'{"at":"2026-06-01T09:30:00"}', Schema.parse("at TIMESTAMP"))
    assert local is not None
    assert local["at"][0].as_py().isoformat() == "2026-06-01T09:30:00+00:00"


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1}{"a":2}\n',
        b'{"a":\n1}{"a":2}',
        b'{"a":1,"a":2}',
        b"",
        b"\n",
        b'{"b":1}',
        b'{"a":null}',
        b"{}",
    ],
)
def test_what_arrow_reads_otherwise_is_left_to_the_decoder(data: bytes) -> None:
    schema = Schema.parse("a BIGINT")
    assert read(data, schema, required=["a"]) is None


def test_a_decimal_with_too_many_digits_is_left_to_the_decoder() -> None:
    assert read(b'{"a":12345678}', Schema.parse("a DECIMAL(9,2)")) is None
    assert read(b'{"a":1234567}', Schema.parse("a DECIMAL(9,2)")) is not None


def test_a_type_that_arrow_reads_otherwise_is_left_to_the_decoder() -> None:
    for kind in (
        "FLOAT",
        "BINARY",
        "VARCHAR(3)",
        "ARRAY<INT>",
        "MAP<STRING, INT>",
        "STRUCT<a: INT>",
        "TIME(3)",
    ):
        assert read(b'{"a":null}', Schema.parse(f"a {kind}")) is None


def test_a_null_that_is_not_allowed_is_named_by_the_decoder() -> None:
    schema = Schema.parse("a BIGINT NOT NULL")
    assert read(b'{"a":null}', schema) is None
    with pytest.raises(BadRow, match="NOT NULL"):
        list(json_lines([b'{"a":null}'], schema, topic="t"))

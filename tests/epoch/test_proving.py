"""A proof finds every difference, however much there is to compare."""

from __future__ import annotations

import sys
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evert.epoch.prove import difference
from evert.trace import consolidate

ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 3)),
        st.sampled_from(["", "x", "longer text", None]),
        st.booleans(),
    ),
    max_size=30,
)


def table(rows, chunks=1):
    schema = pa.schema([("n", pa.int32()), ("word", pa.string()), ("is_it", pa.bool_())])
    parts = [rows[start::chunks] for start in range(chunks)]
    made = [pa.table([list(column) for column in zip(*part, strict=True)], schema) for part in parts if part]
    return pa.concat_tables([schema.empty_table(), *made])


def bag(rows):
    return Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.mark.parametrize("part_bytes", [1, 100, 1 << 20])
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expected=ROWS, kept=ROWS, chunks=st.integers(1, 3))
def test_what_is_only_in_one_of_two_tables(monkeypatch, part_bytes, expected, kept, chunks):
    monkeypatch.setattr(sys.modules[consolidate.__module__], "PART_BYTES", part_bytes)
    missing, unexpected = difference(table(expected), table(kept, chunks))
    assert bag(missing) == Counter(expected) - Counter(kept)
    assert bag(unexpected) == Counter(kept) - Counter(expected)


@pytest.mark.parametrize("part_bytes", [1, 1 << 20])
def test_the_last_digits_of_floating_point_numbers_are_no_difference(monkeypatch, part_bytes):
    monkeypatch.setattr(sys.modules[consolidate.__module__], "PART_BYTES", part_bytes)
    one = pa.table({"k": [1, 2, 3], "x": [0.1 + 0.2, 1.0, float("nan")]})
    two = pa.table({"k": [3, 2, 1], "x": [float("nan"), 1.5, 0.3]})
    missing, unexpected = difference(one, two)
    assert missing.to_pylist() == [{"k": 2, "x": 1.0}]
    assert unexpected.to_pylist() == [{"k": 2, "x": 1.5}]

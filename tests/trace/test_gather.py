"""Gathering finds all rows of the keys, summed over the runs, some keys at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from evert.trace import HASH, WEIGHT, Layout, Run, Trace, with_hash
from evert.trace.arrays import arrays_of
from evert.trace.consolidate import hashes_of
from evert.trace.gather import gathered

LAYOUT = Layout(("k",), schema=pa.schema({"k": pa.int64(), "v": pa.int64(), WEIGHT: pa.int64()}))


def run(rows: list[tuple[int, int, int]], bits: int) -> Run:
    columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    return Run.of(with_hash(pa.table(columns, names=["k", "v", WEIGHT]), ["k"], bits=bits))


@pytest.mark.parametrize("bits", [3, 64])
@pytest.mark.parametrize("limit", [1, 1 << 10, 64 << 20])
def test_rows_are_summed_and_keys_are_never_cut(
    monkeypatch: pytest.MonkeyPatch, bits: int, limit: int
) -> None:
    monkeypatch.setattr("evert.trace.gather.BATCH_BYTES", limit)
    old = [(key, value, 2) for key in range(50) for value in range(5)]
    new = [(key, value, -2 if value else 1) for key in range(50) for value in range(3)]
    trace = Trace(LAYOUT, [run(new, bits), run(old, bits)])
    asked = with_hash(pa.table({"k": np.arange(20, 80)}), ["k"], bits=bits)
    keys = arrays_of(asked, ["k"])
    places, batches = [], []
    for part, rows in gathered(trace, hashes_of(asked), keys, bits):
        wanted = keys[0][part].to_pylist()
        assert set(rows.column("k").to_pylist()) == {key for key in wanted if key < 50}
        places += range(*part.indices(len(asked)))
        batches.append(rows.drop_columns([HASH]))
    assert places == list(range(60))
    assert (len(batches) == 1) == (limit > 1 << 20)
    found = sorted(tuple(row.values()) for row in pa.concat_tables(batches).to_pylist())
    assert found == [(key, value, 3 if value == 0 else 2) for key in range(20, 50) for value in (0, 3, 4)]


def test_no_keys_are_no_batches() -> None:
    assert list(gathered(Trace(LAYOUT, []), np.empty(0, np.uint64), [pa.array([], pa.int64())], 64)) == []

"""Large cells lie in files, small ones travel; both are what they were."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evert.epoch.spill import LARGE, Cellar, Spill


def rows(count: int) -> pa.Table:
    return pa.table({"__h": pa.array(range(count), pa.uint64()), "c0": ["x" * 50] * count})


def test_cells_come_back_as_they_were(tmp_path):
    tables = [rows(count) for count in (1, 10_000, 0, 20_000)]
    with Spill(str(tmp_path), "one.cells") as spill:
        blobs = [pa.py_buffer(spill.blob(table)) for table in tables]
    assert [len(blob) < 200 for blob, table in zip(blobs, tables, strict=True) if table.nbytes >= LARGE] == [
        True
    ] * 2
    cellar = Cellar(str(tmp_path))
    assert [cellar.table(blob) for blob in blobs] == tables


def test_two_writers_of_one_file_are_an_error(tmp_path):
    with Spill(str(tmp_path), "one.cells") as first, Spill(str(tmp_path), "one.cells") as second:
        first.blob(rows(10_000))
        with pytest.raises(FileExistsError):
            second.blob(rows(10_000))


def test_small_cells_leave_no_file(tmp_path):
    with Spill(str(tmp_path), "none.cells") as spill:
        spill.blob(rows(3))
    assert list(tmp_path.iterdir()) == []


def test_a_slice_of_a_table_is_written_without_the_rest(tmp_path):
    with Spill(str(tmp_path), "part.cells") as spill:
        blob = spill.blob(rows(100_000).slice(10, 5_000))
    assert Cellar(str(tmp_path)).table(pa.py_buffer(blob)) == rows(100_000).slice(10, 5_000)
    assert (tmp_path / "part.cells").stat().st_size < 1_000_000

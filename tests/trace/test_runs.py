"""Runs on disk: written, mapped without a copy, checked, let go."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.trace.columns import tables, types

from evert.errors import Corrupt, DiskFailed
from evert.trace import runs
from evert.trace.consolidate import consolidate
from evert.trace.runs import Run, RunCache, RunWriter


def delta(count, first=0):
    numbers = np.arange(first, first + count)
    return consolidate(
        pa.table({"c0": numbers, "c1": [f"n{n}" for n in numbers], "__w": np.ones(count, np.int64)})
    )


def written(folder, *found, file="state/a-1"):
    writer = RunWriter(folder, file)
    stored = [writer.add(table) for table in found]
    writer.close()
    return stored


def mapped(path):
    with open("/proc/self/maps") as maps:
        return sum(line.rstrip().endswith(str(path)) for line in maps)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(types, max_size=2).flatmap(tables), min_size=1, max_size=3))
def test_what_is_written_is_read(tmp_path_factory, found):
    folder = tmp_path_factory.mktemp("runs")
    found = [consolidate(table) for table in found]
    cache = RunCache()
    for stored, table in zip(written(folder, *found), found, strict=True):
        run = cache.open(folder, stored)
        assert stored.start % 64 == 0
        assert (run.rows, run.table.schema) == (table.num_rows, table.schema)
        assert run.hashes.tolist() == table.column("__h").to_pylist()
        assert str(run.table.to_pylist()) == str(table.to_pylist())
        run.table.validate(full=True)


def test_a_run_lies_in_the_mapping_and_not_in_memory(tmp_path):
    (stored,) = written(tmp_path, delta(100_000))
    before = pa.total_allocated_bytes()
    run = RunCache().open(tmp_path, stored)
    assert run.column("c1")[0].as_py().startswith("n")
    assert run.hashes.flags.aligned
    assert not run.hashes.flags.writeable
    assert pa.total_allocated_bytes() - before < 10_000


def test_a_file_exists_from_the_first_run_on(tmp_path):
    writer = RunWriter(tmp_path, "state/a-1")
    writer.close()
    assert not (tmp_path / "state").exists()
    stored = writer.add(delta(3))
    writer.close()
    assert (tmp_path / "state/a-1").stat().st_size >= stored.start + stored.bytes


def test_a_name_is_never_used_again(tmp_path):
    written(tmp_path, delta(1))
    with pytest.raises(DiskFailed):
        written(tmp_path, delta(1))


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(AttributeError), RunWriter(tmp_path, "state/a-1") as writer:
        writer.add(writer.add(delta(3)))
    assert list((tmp_path / "state").iterdir()) == []


def test_a_missing_file_is_corrupt(tmp_path):
    (stored,) = written(tmp_path, delta(3))
    (tmp_path / stored.file).unlink()
    with pytest.raises(Corrupt) as error:
        RunCache().open(tmp_path, stored)
    assert error.value.details == {"file": "state/a-1"}


def test_a_short_file_is_corrupt_even_when_it_was_open_before(tmp_path):
    first, second = written(tmp_path, delta(3), delta(4))
    cache = RunCache()
    cache.open(tmp_path, first)
    os.truncate(tmp_path / second.file, second.start + second.bytes - 1)
    with pytest.raises(Corrupt, match="bytes and not"):
        cache.open(tmp_path, second)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_changed_byte_of_a_run_or_of_the_magic_is_noticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("runs")
    (stored,) = written(folder, delta(5))
    path = folder / stored.file
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        RunCache().open(folder, stored)


@pytest.mark.parametrize("change", [{"rows": 6}, {"start": 128}, {"bytes": 64}])
def test_another_place_or_size_than_the_catalog_says_is_corrupt(tmp_path, change, monkeypatch):
    (stored,) = written(tmp_path, delta(5))
    with pytest.raises(Corrupt):
        RunCache().open(tmp_path, dataclasses.replace(stored, **change))
    monkeypatch.setattr(runs, "VERIFIED_BELOW", 0)
    with pytest.raises(Corrupt):
        RunCache().open(tmp_path, dataclasses.replace(stored, **change))


def test_a_large_run_is_checked_against_its_checksum_only_when_asked(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "VERIFIED_BELOW", 1000)
    (stored,) = written(tmp_path, delta(1000))
    path = tmp_path / stored.file
    content = bytearray(path.read_bytes())
    content[stored.start + stored.bytes - 100] ^= 1
    path.write_bytes(content)
    cache = RunCache()
    assert cache.open(tmp_path, stored).rows == 1000
    with pytest.raises(Corrupt, match="checksum"):
        cache.open(tmp_path, stored, verify=True)


def test_a_file_that_came_in_place_of_another_is_mapped_anew(tmp_path):
    (old,) = written(tmp_path, delta(3))
    cache = RunCache()
    cache.open(tmp_path, old)
    (new,) = written(tmp_path, delta(3, first=10), file="state/other")
    os.replace(tmp_path / "state/other", tmp_path / "state/a-1")
    run = cache.open(tmp_path, dataclasses.replace(new, file="state/a-1"))
    assert sorted(run.column("c0").to_pylist()) == [10, 11, 12]


def test_runs_that_are_not_kept_are_unmapped(tmp_path):
    first, second = written(tmp_path, delta(3), delta(4))
    (third,) = written(tmp_path, delta(5), file="state/b-1")
    cache = RunCache()
    for stored in (first, second, third):
        assert cache.open(tmp_path, stored) is cache.open(tmp_path, stored)
    a, b = tmp_path / first.file, tmp_path / third.file
    assert (mapped(a), mapped(b)) == (1, 1)
    cache.keep([first.file])
    assert (mapped(a), mapped(b), len(cache)) == (1, 0, 2)
    cache.keep([(second.file, second.start)])
    assert (mapped(a), len(cache)) == (1, 1)
    held = cache.open(tmp_path, second)
    cache.keep([])
    assert (mapped(a), len(cache)) == (1, 0)
    assert held.column("c0").to_pylist()
    del held
    assert mapped(a) == 0


def test_a_run_in_memory_sorts_its_rows():
    rows = pa.table({"__h": pa.array([5, 1, 3], pa.uint64()), "c0": ["a", "b", "c"]})
    run = Run.of(pa.concat_tables([rows, rows]))
    assert run.hashes.tolist() == [1, 1, 3, 3, 5, 5]
    assert run.column("c0").to_pylist() == ["b", "b", "c", "c", "a", "a"]


def test_runs_whose_file_was_removed_are_forgotten(tmp_path):
    cache = RunCache()
    stored = []
    for name in ("a.arrow", "b.arrow"):
        with RunWriter(tmp_path, name) as writer:
            stored.append(writer.add(pa.table({"__h": pa.array([1], pa.uint64()), "c0": [1]})))
        cache.open(tmp_path, stored[-1])
    (tmp_path / "a.arrow").unlink()
    cache.forget_removed()
    assert len(cache) == 1
    assert cache.open(tmp_path, stored[1]).rows == 1

"""What a kernel does to its traces, epoch by epoch, against dictionaries."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evert.trace import shard, trace
from evert.trace.consolidate import consolidate, with_hash
from evert.trace.horizon import Limit
from evert.trace.runs import RunCache, RunWriter
from evert.trace.shard import NodeState
from evert.trace.trace import Layout

BAG = Layout(("c0",))
LATEST = Layout(("c0",), latest=True)


class Shard:
    """One shard of a node through many epochs: what the catalog would keep of it."""

    def __init__(self, folder, bits=64):
        self.folder = folder
        self.bits = bits
        self.cache = RunCache()
        self.runs = {}
        self.limits = {}
        self.epochs = 0

    def epoch(self, work):
        self.epochs += 1
        writer = RunWriter(self.folder, f"state/e-{self.epochs}")
        newest = {name: sorted(runs, key=lambda run: -run.id) for name, runs in self.runs.items()}
        state = NodeState(
            shard=0,
            first=self.epochs == 1,
            runs=newest,
            writer=writer,
            cache=self.cache,
            folder=self.folder,
            bits=self.bits,
            limits=self.limits,
        )
        result = work(state)
        writer.close()
        self.commit(state)
        return result

    def commit(self, state):
        last = max((run.id for runs in self.runs.values() for run in runs), default=0)
        for name in self.runs:
            self.runs[name] = [run for run in self.runs[name] if run.id not in state.removed]
        for number, (name, stored) in enumerate(state.added, last + 1):
            run = type(stored)(number, stored.file, stored.start, stored.bytes, stored.rows, stored.checksum)
            self.runs.setdefault(name, []).append(run)
        live = {run.file for runs in self.runs.values() for run in runs}
        for path in (self.folder / "state").glob("*"):
            if f"state/{path.name}" not in live:
                path.unlink()
        self.cache.keep(live)


def weighted(rows, bits=64):
    table = pa.table(
        {
            "c0": pa.array([row[0] for row in rows], pa.string()),
            "c1": pa.array([row[1] for row in rows], pa.int64()),
            "__w": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    return with_hash(table, ["c0"], bits=bits)


def content(state):
    rows = state.trace("rows", BAG).rows()
    if not rows.num_rows:
        return {}
    found: Counter[tuple[str | None, int]] = Counter()
    for row in rows.to_pylist():
        found[row["c0"], row["c1"]] += row["__w"]
    return dict(found)


row = st.tuples(st.sampled_from([None, "a", "b", "c" * 12]), st.integers(0, 3), st.sampled_from([1, -1, 2]))
epochs = st.lists(
    st.tuples(st.lists(row, max_size=8), st.sampled_from(["", "restart", "twice"])), max_size=12
)
slow = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@slow
@given(epochs, st.sampled_from([3, 64]), st.booleans())
def test_a_bag_is_the_sum_of_all_that_was_written(tmp_path_factory, changes, bits, cut):
    one = Shard(tmp_path_factory.mktemp("shard"), bits)
    expected: Counter[tuple[str | None, int]] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        if cut:
            patch.setattr(trace, "PIECE_BYTES", 100)
            patch.setattr(shard, "PIECE_BYTES", 100)
        for rows, event in changes:
            if event == "restart":
                one.cache = RunCache()
            before = {key: weight for key, weight in expected.items() if weight}

            def work(state, rows=rows, event=event, before=before):
                half = len(rows) // 2 if event == "twice" else 0
                state.write("rows", BAG, weighted(rows[:half], bits))
                state.write("rows", BAG, weighted(rows[half:], bits))
                assert content(state) == before

            one.epoch(work)
            for key, number, weight in rows:
                expected[key, number] += weight
        assert one.epoch(content) == {key: weight for key, weight in expected.items() if weight}
    assert cut or len(one.runs.get("rows", [])) <= 6


@slow
@given(
    st.lists(st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 3), max_size=6), max_size=12),
    st.sampled_from([3, 64]),
)
def test_a_latest_trace_is_a_dictionary(tmp_path_factory, changes, bits):
    one = Shard(tmp_path_factory.mktemp("shard"), bits)
    expected: dict[int, int] = {}
    for change in changes:
        table = pa.table(
            {
                "c0": pa.array(list(change), pa.int64()),
                "c1": pa.array(list(change.values()), pa.int64()),
                "__gone": pa.array([value is None for value in change.values()], pa.bool_()),
            }
        )
        one.epoch(lambda state, table=table: state.write("rows", LATEST, with_hash(table, ["c0"], bits=bits)))
        expected |= {key: value for key, value in change.items() if value is not None}
        for key in [key for key, value in change.items() if value is None]:
            expected.pop(key, None)
        rows = one.epoch(lambda state: state.trace("rows", LATEST).rows()).to_pylist()
        assert {found["c0"]: found["c1"] for found in rows} == expected
        assert len(rows) == len(expected)


def test_an_empty_table_writes_nothing(tmp_path):
    one = Shard(tmp_path)
    one.epoch(lambda state: state.write("rows", BAG, weighted([])))
    assert not (tmp_path / "state").exists()


def test_a_merge_that_leaves_nothing_only_removes(tmp_path):
    one = Shard(tmp_path)
    for number in range(3):
        one.epoch(lambda state, number=number: state.write("rows", BAG, weighted([("a", number, 1)])))
    gone = weighted([("a", number, -1) for number in range(3)])
    one.epoch(lambda state: state.write("rows", BAG, gone))
    assert one.runs["rows"] == []
    assert list((tmp_path / "state").iterdir()) == []
    assert one.epoch(content) == {}


def test_traces_of_one_node_share_a_file_and_no_rows(tmp_path):
    one = Shard(tmp_path)

    def work(state):
        state.write("left", BAG, weighted([("a", 1, 1)]))
        state.write("right", BAG, weighted([("a", 2, 1)]))
        return [stored.file for _, stored in state.added]

    assert len(set(one.epoch(work))) == 1
    left, right = one.epoch(lambda state: [state.trace(name, BAG).rows() for name in ("left", "right")])
    assert left.column("c1").to_pylist() == [1]
    assert right.column("c1").to_pylist() == [2]


def test_rows_out_of_order_are_sorted_and_summed(tmp_path):
    one = Shard(tmp_path)
    rows = pa.concat_tables([weighted([("b", 1, 1), ("a", 1, 1)]), weighted([("b", 1, 1), ("c", 0, 0)])])
    one.epoch(lambda state: state.write("rows", BAG, rows))
    assert one.epoch(content) == {("b", 1): 2, ("a", 1): 1}


def test_many_small_epochs_leave_few_runs(tmp_path):
    one = Shard(tmp_path)
    for number in range(60):
        table = consolidate(
            pa.table({"c0": np.arange(number, number + 5), "__w": np.ones(5, np.int64)}), ["c0"]
        )
        one.epoch(lambda state, table=table: state.write("rows", BAG, table))
        assert len(one.runs["rows"]) <= 4
    rows = one.epoch(lambda state: state.trace("rows", BAG).rows())
    assert sum(rows.column("__w").to_pylist()) == 300


def test_what_is_published_is_kept_for_the_epoch(tmp_path):
    one = Shard(tmp_path)
    delta = weighted([("a", 1, 1)])
    assert one.epoch(lambda state: (state.publish(delta), state.published)[1]) == [delta]


def test_state_of_which_much_is_taken_back_is_rewritten(tmp_path):
    kept = Shard(tmp_path)
    kept.epoch(lambda state: state.write("rows", BAG, weighted([(str(n), n, 1) for n in range(100)])))
    few = [(str(n), n, -1) for n in range(19)]
    kept.epoch(lambda state: state.write("rows", BAG, weighted(few)))
    assert len(kept.runs["rows"]) == 2
    many = [(str(n), n, -1) for n in range(19, 50)]
    kept.epoch(lambda state: state.write("rows", BAG, weighted(many)))
    assert [run.rows for run in kept.runs["rows"]] == [50]


def test_what_no_change_can_reach_goes_when_all_runs_are_merged(tmp_path):
    one = Shard(tmp_path)

    def write(numbers, before):
        values = pa.array(numbers, pa.int64()).cast(pa.timestamp("us"))
        rows = with_hash(pa.table({"c0": values, "__w": [1] * len(numbers)}), ["c0"])
        one.limits = {"rows": [Limit("c0", None, before)]}
        one.epoch(lambda state: state.write("rows", BAG, consolidate(rows, bits=64)))

    def there():
        rows = one.epoch(lambda state: state.trace("rows", BAG).rows())
        return sorted(rows.column("c0").cast(pa.int64()).to_pylist())

    for start in (0, 1000, 2000):
        write(range(start, start + 1000), start)
    assert there() == [*range(3000)]
    write(range(3000, 4000), 2900)
    assert there() == [*range(2900, 4000)]


def test_pieces_of_one_merge_count_as_one_run(tmp_path, monkeypatch):
    """Else each of them is no larger than an epoch's run, and all are merged again with every one."""
    monkeypatch.setattr(trace, "PIECE_BYTES", 100_000)
    monkeypatch.setattr(shard, "PIECE_BYTES", 100_000)
    one, count, epochs, written, most = Shard(tmp_path), 5_000, 16, [], 0

    def work(state, epoch):
        state.write("rows", BAG, weighted([(f"{n}", epoch, 1) for n in range(count)]))
        written.extend(stored.rows for _, stored in state.added)

    for epoch in range(epochs):
        one.epoch(lambda state, epoch=epoch: work(state, epoch))
        most = max(most, len(one.runs["rows"]))
    assert most > 6
    assert sum(written) <= 3 * epochs * count

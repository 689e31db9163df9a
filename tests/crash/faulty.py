"""The workload under faults, and what must be true of the folder afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.crash.workload import SCHEMA, SETTINGS, rows
from tests.faults import shim

import evert
from evert.clock import SystemClock
from evert.testing import ManualClock

ROOT = Path(__file__).parents[2]


@dataclass
class Run:
    """What one run of the workload said before it ended."""

    folder: Path
    status: int
    calls: int
    acknowledged: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    raised: str = ""


class Faulty:
    """A server that runs the workload in children, each with its own fault."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._home = scratch / "home"
        self._home.mkdir()
        environment = {
            **os.environ,
            "LD_PRELOAD": str(shim.library()),
            "EVERT_FAULT_DIR": "",
            "PYTHONPATH": str(ROOT),
        }
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )

    def run(self, *, at: int = 0, kind: str = "", log: Path | None = None) -> Run:
        folder = Path(tempfile.mkdtemp(dir=self._scratch))
        said = folder.with_suffix(".said")
        with tempfile.NamedTemporaryFile(dir=self._scratch) as counter:
            counter.write(bytes(shim.COUNTERS.size))
            counter.flush()
            task = {
                "EVERT_FAULT_DIR": str(folder.resolve()),
                "EVERT_FAULT_COUNTER": counter.name,
                "EVERT_FAULT_AT": str(at),
                "EVERT_FAULT_KIND": kind,
                "EVERT_FAULT_LOG": str(log) if log else "",
                "folder": str(folder),
                "said": str(said),
            }
            assert self._server.stdin
            assert self._server.stdout
            print(json.dumps(task), file=self._server.stdin, flush=True)
            status = int(self._server.stdout.readline())
            calls, _ = shim.COUNTERS.unpack(Path(counter.name).read_bytes())
        run = Run(folder, status, calls)
        for line in said.read_text().splitlines() if said.exists() else []:
            word, _, rest = line.partition(" ")
            if word == "ack":
                run.acknowledged.add(rest)
            elif word == "try":
                run.tried.add(rest)
            elif word == "raised":
                run.raised = rest
        return run

    def close(self) -> None:
        assert self._server.stdin
        assert self._server.stdout
        self._server.stdin.close()
        self._server.wait(30)
        self._server.stdout.close()


def check(run: Run, folder: Path | None = None) -> None:
    """Everything acknowledged is there once; the rest is wholly there or wholly absent; the log goes on."""
    later = ManualClock(SystemClock().now() + 3_600_000_000)
    with evert.open(folder or run.folder, clock=later, **SETTINGS) as db:
        facts = db.stream("facts", SCHEMA, partitions=2)
        table = db.table("table", SCHEMA, key="row")
        found = batches(facts)
        state = table_of(table)
        expect_whole(run, found, state)
        again = facts.append(rows(0, 1), request_id="b0")
        if "facts 0" in run.acknowledged:
            assert batches(facts) == found, "a retried request was written twice"
        assert again is not None
        facts.append(rows(200, 3))
        table.upsert(rows(200, 3))
        db.maintain()
        table.compact()
        assert batches(facts)[200] == [0, 1, 2]
        assert [state_row["batch"] for row, state_row in sorted(table_of(table).items()) if row < 3] == [
            200
        ] * 3
        kept = {batch: found_rows for batch, found_rows in batches(facts).items() if batch not in (0, 200)}
        assert kept == {batch: found_rows for batch, found_rows in found.items() if batch != 0}
        with db.catalog.read() as tx:
            known = {file for (file,) in tx.all("SELECT file FROM segments")}
        there = {
            str(p.relative_to(db.path)) for p in db.path.rglob("*.*") if p.suffix in (".parquet", ".arrow")
        }
        assert there == known, "files that no commit refers to were left, or committed ones removed"


def batches(facts: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    offsets: dict[int, int] = {}
    for batch in facts.read():
        for row in batch.to_pylist():
            assert row["_offset"] == offsets.get(row["_partition"], 0), "an offset is missing or doubled"
            offsets[row["_partition"]] = row["_offset"] + 1
            found.setdefault(row["batch"], []).append(row["row"])
    return {batch: sorted(rows_) for batch, rows_ in found.items()}


def table_of(table: Any) -> dict[int, dict[str, Any]]:
    state: dict[int, dict[str, Any]] = {}
    for batch in table.read():
        for row in batch.to_pylist():
            state[row["row"]] = row
    return state


def expect_whole(run: Run, found: dict[int, list[int]], state: dict[int, dict[str, Any]]) -> None:
    from tests.crash.workload import SIZES

    sizes = {**dict(enumerate(SIZES)), 100: 2}
    for batch, size in sizes.items():
        there = found.get(batch)
        assert there in (None, list(range(size))), f"batch {batch} is torn: {there}"
        if f"facts {batch}" in run.acknowledged or f"both {batch}" in run.acknowledged:
            assert there is not None, f"batch {batch} was acknowledged and is lost"
        if there is not None:
            assert f"facts {batch}" in run.tried or f"both {batch}" in run.tried
    newest = dict.fromkeys(range(30), -1)
    for batch, size in sizes.items():
        if {f"table {batch}", f"both {batch}"} & run.acknowledged:
            newest.update(dict.fromkeys(range(size), batch))
    for row, batch in newest.items():
        assert batch == -1 or (row in state and state[row]["batch"] >= batch), f"row {row} went back in time"
    if "both 100" in run.tried:
        assert (100 in found) == (state.get(0, {}).get("batch") == 100), "the transaction is torn"

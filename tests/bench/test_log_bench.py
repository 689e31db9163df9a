"""The benchmark runs, and every system it measures holds what was appended to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.nexmark_bids import SCHEMA, bids
from tests.missing import skip_unless

from bench import kafka_store, report

ROOT = Path(__file__).resolve().parents[2]


def run_quickly(folder: Path, peers: str) -> dict[str, Any]:
    figures = folder / "figures.json"
    command = [sys.executable, str(ROOT / "bench" / "log.py"), "--quick", "--peers", peers]
    options = ["--json", str(figures), "--folder", str(folder)]
    done = subprocess.run(command + options, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return dict(json.loads(figures.read_text()))


def systems_by_case(found: dict[str, Any]) -> dict[str, set[str]]:
    systems: dict[str, set[str]] = {}
    for figure in found["figures"]:
        assert figure["correct"], figure
        assert figure["value"] >= 0, figure
        systems.setdefault(figure["case"], set()).add(figure["system"])
    return systems


def test_every_case_runs_beside_the_peers_that_are_files(tmp_path: Path) -> None:
    systems = systems_by_case(run_quickly(tmp_path, "sqlite,jsonl"))
    everyone = {"evert", "evert, dicts", "sqlite", "jsonl"}
    for processes in (1, 2):
        assert systems[report.append_case(1, processes)] == everyone
        assert systems[report.append_case(10_000, processes)] == everyone
    assert systems[report.threads_case(4)] == everyone
    assert systems[report.BYTES] == {"evert", "sqlite", "jsonl"}
    for case in (report.READ_TAIL, report.READ_SEGMENTS, report.P50, report.P99, report.IDLE):
        assert systems[case] == {"evert"}


def test_kafka_is_measured_too_where_a_broker_can_be_had(tmp_path: Path) -> None:
    skip_unless(kafka_store.available())
    found = run_quickly(tmp_path, "kafka")
    systems = systems_by_case(found)
    for case in (
        report.append_case(1, 1),
        report.append_case(10_000, 2),
        report.READ,
        report.P99,
        report.BYTES,
    ):
        assert "kafka" in systems[case]
    assert {aim["aim"] for aim in found["aims"] if aim["reached"] is None} == {
        aim["aim"] for aim in found["aims"] if "SQLite" in aim["aim"] or "JSON" in aim["aim"]
    }


def test_bids_are_a_pure_function_of_their_numbers() -> None:
    whole = bids(0, 1000)
    assert whole.schema == SCHEMA
    assert pa.concat_batches([bids(0, 300), bids(300, 700)]).equals(whole)
    assert not bids(0, 1000, seed=2).equals(whole)


def test_bids_are_skewed_as_nexmark_says() -> None:
    some = bids(0, 184_000).to_pandas()
    assert 0.5 < (some.auction % 100 == 0).mean() < 0.52
    assert 0.74 < (some.bidder % 100 == 1).mean() < 0.77
    assert abs((some.price < 10_000).mean() - 1 / 3) < 0.01
    assert some.price.between(100, 100_000_000).all()
    assert 0.49 < some.channel.str.startswith("channel-").mean() < 0.51
    assert some["at"].is_monotonic_increasing

"""The benchmarks of views run, and what they measure is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = {
    "nexmark": ["--events", "30000", "--epoch", "10000", "--queries", "q2", "q4", "--runs", "1"],
    "policies": ["--rows", "2000", "--percent", "1", "--rounds", "1", "--views", "aggregate", "top"],
}
LONGER = {
    "serve": ["--seconds", "1", "--batch", "100"],
    "growth": ["--millions", "0.02", "--epochs", "3"],
    "floor": ["--views", "1", "--events", "3"],
    "backfill": ["--events", "50000", "--queries", "q1", "--runs", "1"],
    "tpch": ["--scale", "0.01", "--percent", "1", "--queries", "q3", "--runs", "1"],
}


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER)])
def test_a_benchmark_runs_and_its_results_are_right(tmp_path: Path, name: str) -> None:
    figures = tmp_path / "figures.json"
    command = [
        sys.executable,
        str(ROOT / "bench" / f"{name}.py"),
        *(QUICK | LONGER)[name],
        "--json",
        str(figures),
    ]
    command += ["--picture", str(tmp_path / "figures.svg")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert (tmp_path / "figures.svg").read_text().endswith("</svg>\n")
    found = json.loads(figures.read_text())
    assert {line["correct"] for line in found} <= {True, None}
    assert any(line["correct"] for line in found)
    assert all(line["value"] > 0 for line in found)

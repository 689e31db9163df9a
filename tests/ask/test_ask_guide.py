"""The examples of docs/ask.md run in their order, and give what stands behind them; its lists are complete."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.test_guides import BLOCK, run

from evert.ask.functions import AGGREGATES, SCALARS, WINDOWS

GUIDE = Path(__file__).parents[2] / "docs" / "ask.md"
OTHER_NAMES = {
    "ucase",
    "lcase",
    "character_length",
    "len",
    "position",
    "ceiling",
    "power",
    "signum",
    "dateadd",
    "date_diff",
    "mean",
    "std",
    "stddev_samp",
    "var_samp",
    "every",
    "some",
    "first",
    "last",
}


def test_the_guide_to_questions_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evert.ask.engine.spark_runs", lambda: False)
    names: dict[str, Any] = {}
    try:
        for code, printed in BLOCK.findall(GUIDE.read_text()):
            assert run(code, names).strip() == printed.strip()
    finally:
        names["db"].close()


def test_every_function_that_may_be_asked_is_listed():
    words = set(re.findall(r"\w+", GUIDE.read_text()))
    for table in (SCALARS, AGGREGATES, WINDOWS):
        assert set(table) - OTHER_NAMES <= words

"""The README's first example does what it says."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

from evert.demo.keeper import definitions

README = Path(__file__).parent.parent / "README.md"


def test_its_sql_is_that_of_the_demo():
    (example,) = re.findall(r"```sql\n(.*?)```", README.read_text(), re.S)
    assert all(
        f"{statement};" in definitions() for statement in example.split(";\n")[:-1] if statement.strip()
    )


def test_the_first_example_runs_and_the_view_follows_the_change(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)[0]
    names: dict = {}
    exec(compile(example, str(README), "exec"), names)
    with names["db"]:
        assert names["revenue"].rows() == [{"country": "AT", "revenue": Decimal("19.90")}]
    printed = capsys.readouterr().out
    shown = re.findall(r"^# (\{.*\})$", example, re.M)
    assert len(shown) == 2
    assert all(line in printed for line in shown)

"""The README does what it says: every block of it is run, in its order."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from evert.demo.keeper import definitions

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
WAIT = 120
ENDLESS = {
    "tail -F": "evert log clicks",
    "evert log clicks --follow": "cat said",
    "evert run": "evert view show per_url",
    "evert subscribe per_url": "cat said",
}
"""Commands that go on until they are ended, and what shows that they do their work: the row of /cart."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_every_block_is_of_a_kind_that_is_run_here():
    assert set(re.findall(r"^```(\w+)$", README, re.M)) == {"sh", "sql", "python"}


def test_its_sql_is_that_of_the_demo():
    (example,) = blocks("sql")
    assert all(
        f"{statement};" in definitions() for statement in example.split(";\n")[:-1] if statement.strip()
    )


def test_its_python_runs_and_the_view_follows_the_change(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, *others = blocks("python")
    names: dict = {}
    exec(compile(first, "README.md", "exec"), names)
    with names["db"] as db:
        assert names["revenue"].rows() == [{"country": "AT", "revenue": Decimal("19.90")}]
        printed = capsys.readouterr().out
        shown = re.findall(r"^# (\{.*\})$", first, re.M)
        assert len(shown) == 2
        assert all(line in printed for line in shown)
        for other in others:
            exec(compile(other, "README.md", "exec"), names)
        db.refresh()
        assert names["revenue"].rows() == [{"country": "AT", "revenue": Decimal("27.40")}]
        assert sum(batch.num_rows for batch in db.topic("invoices").read()) == 3
        assert [proof.holds for proof in db.prove()] == [True]


def test_its_first_commands_are_those_of_the_makefile():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"^make (\w+)", blocks("sh")[0], re.M)
    assert named == ["demo", "test"]
    assert set(named) <= set(targets)


@pytest.mark.timeout(600)
def test_its_commands_run(tmp_path):
    """In one shell, as a person types them; those that go on and on are ended when they have shown something."""
    (tmp_path / "access.jsonl").write_text('{"session": "a", "url": "/"}\n{"session": "a", "url": "/cart"}\n')
    lines = [line.partition("  #")[0].strip() for line in blocks("sh")[1].splitlines()]
    assert set(ENDLESS) == {start for start in ENDLESS if any(line.startswith(start) for line in lines)}
    started = []
    prefix = ""
    try:
        for line in lines:
            endless = next((start for start in ENDLESS if line.startswith(start)), None)
            if endless is None:
                ran = shell(prefix + line, tmp_path)
                said, _ = ran.communicate(timeout=WAIT)
                assert ran.returncode == 0, f"{line}\n{said}"
                prefix = "export EVERT_DB=web.evert; "
            else:
                started.append(shell(prefix + line, tmp_path, tmp_path / "said"))
                wait_for(prefix + ENDLESS[endless], tmp_path, line)
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGINT)
        for process in started:
            process.wait(WAIT)


def shell(command: str, folder: Path, said: Path | None = None) -> subprocess.Popen:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with open(said or os.devnull, "a") as out:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "200"},
            stdout=out if said else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def wait_for(look: str, folder: Path, line: str) -> None:
    said, end = "", time.monotonic() + WAIT
    while time.monotonic() < end:
        said, _ = shell(look, folder).communicate(timeout=WAIT)
        if "/cart" in said:
            (folder / "said").write_text("")
            return
        time.sleep(0.5)
    pytest.fail(f"{line} does not do its work: {said}")

"""What `evert run`, `status`, `prove` and `subscribe` put on the screen, without an engine behind it."""

from __future__ import annotations

import io
import os
from dataclasses import replace

import click
import pyarrow as pa
import pytest

from evert.cli.live import Board, board_lines, fitting
from evert.cli.output import columns
from evert.cli.prove import show_proof
from evert.cli.run import epoch_line
from evert.cli.status import progress, shown, trouble
from evert.cli.subscribe import Printer, signed
from evert.epoch.epoch import EpochDone
from evert.epoch.prove import Proof
from evert.views import Change
from evert.views.status import ViewStatus

LIVE = ViewStatus(
    name="revenue",
    group="default",
    state="live",
    position=1204,
    lag_commits=0,
    lag_events=0,
    lag_seconds=0.0,
    epoch_ms=85.3,
    changed=12,
    rows=4,
    bytes=1200,
    error=None,
    recomputes=None,
)
STOPPED = replace(
    LIVE, name="broken", state="stopped", position=7, error={"error": "data", "message": "overflow"}
)


@pytest.fixture(autouse=True)
def _inside_a_command():
    with click.Context(click.Command("evert")):
        yield


def board(states, width=80, stopping=False):
    return board_lines(states, head=1204, epochs=3, seconds=75.0, stopping=stopping, width=width)


def test_the_table_has_a_line_for_each_view_and_one_for_each_that_stopped():
    heading, header, live, stopped, reason = board([LIVE, STOPPED])
    assert heading == "position 1,204, 3 epochs in 1 min 15 s; Ctrl-C stops"
    assert header.split() == [
        "view",
        "state",
        "position",
        "behind",
        "seconds",
        "epoch",
        "ms",
        "changed",
        "rows",
        "size",
    ]
    assert live.split() == ["revenue", "live", "1204", "0", "0.0", "85", "12", "4", "1.2", "kB"]
    assert stopped.split()[:3] == ["broken", "stopped", "7"]
    assert reason == "broken stopped at position 7: overflow; `evert view resume broken`"


def test_corrections_have_a_column_where_there_are_some():
    _, header, first, second = board([replace(LIVE, corrections=3), replace(LIVE, name="other")], width=100)
    assert "corrections" in header
    assert first.split()[7:9] == ["3", "4"]
    assert second.split()[7:9] == ["0", "4"]


def test_a_view_that_is_built_shows_how_far_it_is():
    building = replace(
        LIVE,
        state="building",
        position=50,
        lag_commits=150,
        lag_events=900,
        epoch_ms=None,
        rows=None,
        bytes=None,
    )
    assert progress(building) == "revenue is being built  █████░░░░░░░░░░░░░░░ 25%, 900 events to go"
    assert progress(replace(building, position=-1, lag_events=0)) == f"revenue is being built  {'░' * 20} 0%"
    assert board([building])[-1] == progress(building)
    assert shown(replace(building, position=-1))["position"] is None
    assert trouble(building) is None
    assert shown(replace(building, replacing=True))["view"] == "revenue (new)"
    waiting = replace(LIVE, replacing=True, held=True)
    assert board([waiting])[-1].startswith("revenue (new) waits: `evert view compare revenue`")
    stopped = replace(waiting, state="stopped", error={"message": "overflow"})
    assert (
        trouble(stopped)
        == f"revenue (new) stopped at position {LIVE.position}: overflow; `evert view abandon revenue`"
    )


def test_no_views_say_what_to_do():
    assert "evert sql" in board([])[1]


def test_the_board_writes_over_itself_and_never_wraps_or_scrolls():
    out = io.StringIO()
    drawn = Board(out, size=lambda: os.terminal_size((20, 4)))
    drawn.draw(["x" * 50, "two"])
    first = out.getvalue()
    assert first.startswith("\x1b[?25l")
    assert all(columns(line.removeprefix("\x1b[?25l").split("\x1b")[0]) < 20 for line in first.split("\n"))
    drawn.draw(["1", "2", "3", "4", "5"])
    second = out.getvalue()[len(first) :]
    assert second.startswith("\x1b[2A\r")
    assert "… and 3 more" in second
    assert second.count("\n") == 3
    drawn.close()
    assert out.getvalue().endswith("\x1b[?25h")


def test_lines_that_fit_stay_as_they_are():
    assert fitting(["a", "b"], 2) == ["a", "b"]
    assert fitting(["a", "b", "c"], 1) == ["… and 3 more"]


def test_an_epoch_is_one_line():
    done = EpochDone(
        "default", 12, 0, 1234.5, 50_000, changed={"revenue": 1200, "quiet": 0}, views=["revenue"]
    )
    assert epoch_line(done) == "position 12  1,234 ms  50,000 events  changed: revenue 1,200"
    assert epoch_line(replace(done, changed={})).endswith("changed: nothing")


def change(kind, position, rows):
    names = ["country", "n", "_weight"]
    schema = pa.schema([("country", pa.string()), ("n", pa.int64()), ("_weight", pa.int64())])
    return Change(
        kind, position, pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)
    )


def test_changes_are_signed_rows_those_that_went_first():
    rows = change("delta", 5, [("CH", 2, 1), ("CH", 1, -1), ("DE", 7, 2)]).rows
    assert [(sign, row["n"]) for piece in signed(rows) for sign, row in piece] == [
        ("-", 1),
        ("+", 2),
        ("+", 7),
        ("+", 7),
    ]


def test_a_subscription_is_one_table(capsys):
    printer = Printer()
    printer.write(change("snapshot", 5, [("CH", 1, 1)]))
    printer.write(change("delta", 6, [("CH", 1, -1), ("CH", 2, 1)]))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["position", "country", "n"],
        ["+", "5", "CH", "1"],
        ["-", "6", "CH", "1"],
        ["+", "6", "CH", "2"],
    ]


def test_a_proof_is_a_line_and_a_disproof_shows_the_rows(capsys):
    none = pa.table({"country": pa.array([], pa.string()), "n": pa.array([], pa.int64())})
    show_proof(Proof("revenue", 12, 1000, none, none), 20)
    assert capsys.readouterr().out == "revenue: proved at position 12, 1,000 rows\n"
    missing = pa.table({"country": ["CH", "DE", "AT"], "n": [1, 2, 3]})
    show_proof(Proof("revenue", 12, 1000, missing, missing.slice(0, 1)), 2)
    shown_, hidden = capsys.readouterr()
    assert shown_.splitlines()[0] == "revenue: differs at position 12, 1,000 rows"
    assert [line.split() for line in shown_.splitlines()[2:]] == [
        ["-", "CH", "1"],
        ["-", "DE", "2"],
        ["+", "CH", "1"],
    ]
    assert hidden == "… and 1 more\n"

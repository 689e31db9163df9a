from __future__ import annotations

import pytest
from tests.cli.evert_cli import Shell

import evert

ALL = (
    "b BOOLEAN, i INT, d DOUBLE, x DECIMAL(20,4), s STRING, y BINARY, day DATE, t TIMESTAMP, n TIMESTAMP_NTZ,"
    " v INTERVAL DAY TO SECOND, l ARRAY<DECIMAL(4,1)>, m MAP<STRING, DOUBLE>, r STRUCT<a: INT, z: TIMESTAMP>"
)
ROW = (
    '{"b": true, "i": 7, "d": "NaN", "x": "12345678901234.5678", "s": "h\\u00e9\\n\\u001b[31m", "y": "AP8=",'
    ' "day": "2026-02-03", "t": "2026-02-03T04:05:06.789Z", "n": "2026-02-03T04:05:06", "v": "-P1DT2H0.5S",'
    ' "l": ["1.5", null], "m": {"a": "Infinity"}, "r": {"a": 1, "z": "2026-02-03T04:05:06Z"}}'
)


@pytest.fixture
def ten(shell: Shell) -> Shell:
    """Ten rows, two a commit, some in a segment and some in the tail."""
    shell.run("topics", "create", "t", "id BIGINT, note STRING")
    rows = [f'{{"id": {i}, "note": "note {i}"}}\n' for i in range(10)]
    shell.run("append", "t", "--batch", 2, given="".join(rows[:6]))
    shell.run("maintain")
    shell.run("append", "t", "--batch", 2, given="".join(rows[6:]))
    return shell


def ids(shell: Shell, *words: object) -> list[int]:
    return [row["id"] for row in shell.lines("log", "t", *words)]


def test_rows_have_their_place_beside_the_columns(ten: Shell) -> None:
    row = ten.lines("log", "t", "--limit", 1)[0]
    assert (row["_topic"], row["_position"], row["_partition"], row["_offset"]) == ("t", 1, 0, 0)
    assert row["_ingested_at"].endswith("Z")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), range(10)),
        (("--after", 3), range(6, 10)),
        (("--after", 1, "--upto", 2), range(2, 4)),
        (("--limit", 3), range(3)),
        (("--limit", 0), ()),
        (("--last", 3), range(7, 10)),
        (("--last", 5), range(5, 10)),
        (("--last", 0), ()),
        (("--last", 100), range(10)),
        (("--from-offset", 7), range(7, 10)),
        (("--from-offset", "0:3", "--limit", 2), range(3, 5)),
        (("--since", "1 hour ago"), range(10)),
        (("--since", "2999-01-01T00:00:00Z"), ()),
    ],
)
def test_a_range_of_rows(ten: Shell, words: tuple[object, ...], expected: range) -> None:
    assert ids(ten, *words) == list(expected)


def test_since_a_time_between_two_commits(ten: Shell) -> None:
    times = {row["id"]: row["_ingested_at"] for row in ten.lines("log", "t")}
    assert ids(ten, "--since", times[4]) == list(range(4, 10))
    assert ids(ten, "--since", times[8]) == [8, 9]


def test_ways_to_begin_exclude_each_other(ten: Shell) -> None:
    ten.run("log", "t", "--last", 1, "--after", 2, code=2)
    ten.run("log", "t", "--since", "yesteryear", code=4)
    ten.run("log", "t", "--from-offset", "x", code=4)
    ten.run("log", "t", "--from-offset", "3:1", code=4)


def test_an_offset_that_retention_took_is_an_error_with_the_first_that_is_kept(shell: Shell) -> None:
    shell.run("topics", "create", "t", "id BIGINT", "--retain", "1 microsecond")
    shell.run("append", "t", given='{"id": 1}\n{"id": 2}\n')
    shell.run("maintain")
    assert "0:2" in shell.error("log", "t", "--from-offset", 1, code=7)["hint"]


def test_columns_can_be_chosen_and_an_unknown_one_is_an_error(ten: Shell) -> None:
    assert list(ten.lines("log", "t", "--columns", "note", "--limit", 1, "--bare")[0]) == ["note"]
    assert ten.error("log", "t", "--columns", "nope", code=3)["error"] == "unknown_column"


def test_several_topics_come_in_one_order(ten: Shell) -> None:
    ten.run("topics", "create", "u", "name STRING", "--table", "--key", "name")
    ten.run("append", "u", given='{"name": "x"}')
    ten.run("append", "t", given='{"id": 10}')
    found = [row["_topic"] for row in ten.lines("log", "t", "u", "--after", 5)]
    assert found == ["u", "t"]
    text = ten.run("log", "t", "u", "--last", 2).stdout
    assert "u:\n" in text
    assert "_deleted" in text


def test_every_type_survives_log_and_append(shell: Shell) -> None:
    shell.run("topics", "create", "a", ALL)
    shell.run("topics", "create", "b", ALL)
    shell.run("append", "a", given=ROW + "\n{}\n")
    copied = shell.run("log", "a", "--json", "--bare").stdout
    shell.run("append", "b", given=copied)
    with evert.open(shell.db) as db:
        one, two = ([str(batch.select(range(13)).to_pylist()) for batch in db.topic(t).read()] for t in "ab")
    assert one == two
    assert shell.run("log", "b", "--json", "--bare").stdout == copied


def test_a_table_on_the_screen_shows_no_control_characters(shell: Shell) -> None:
    shell.run("topics", "create", "a", ALL)
    shell.run("append", "a", given=ROW)
    text = shell.run("log", "a").stdout
    assert "\x1b" not in text
    assert len(text.splitlines()) == 2
    assert "hé\\n" in text


def test_an_empty_topic_prints_nothing(shell: Shell) -> None:
    shell.run("topics", "create", "t", "id BIGINT")
    assert shell.run("log", "t").stdout == ""

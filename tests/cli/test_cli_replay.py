"""Lines that were set aside, tried again."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.evert_cli import Shell


@pytest.fixture
def topics(shell: Shell) -> Shell:
    shell.run("topics", "create", "clicks", "id INT, url STRING")
    shell.run("topics", "create", "users", "id BIGINT, name VARCHAR(3)", "--table", "--key", "id")
    return shell


def rows(shell: Shell, topic: str = "clicks") -> list[tuple[Any, ...]]:
    return [(row["id"], row["url"]) for row in shell.lines("log", topic)]


def aside(shell: Shell, name: str = "bad.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shell.folder / name).read_text().splitlines()]


def edit(shell: Shell, old: str, new: str) -> None:
    path = shell.folder / "bad.jsonl"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_lines_that_fit_now_are_appended_and_the_others_stay_with_their_reason(topics: Shell) -> None:
    given = '{"id": 1}\n{"id": 3000000000}\nnonsense\n'
    topics.run("append", "clicks", "--set-aside", "bad.jsonl", given=given)
    assert len(aside(topics)) == 2
    topics.run("topics", "alter", "clicks", "--schema", "id BIGINT, url STRING")
    edit(topics, '"is not JSON', '"was not JSON')
    (said,) = topics.lines("append", "clicks", "--replay", "bad.jsonl")
    assert (said["rows"], said["remaining"], said["position"]) == (1, 1, 2)
    assert rows(topics) == [(1, None), (3000000000, None)]
    (left,) = aside(topics)
    assert (left["line"], left["text"]) == (3, "nonsense")
    assert left["reason"].startswith("is not JSON")


def test_a_file_of_which_nothing_remains_is_gone(topics: Shell) -> None:
    topics.run("append", "clicks", "--set-aside", "bad.jsonl", given='{"id": "x"}\n{"idd": 2}\n')
    edit(topics, '\\"x\\"', "7")
    edit(topics, "idd", "id")
    said = topics.run("append", "clicks", "--replay", "bad.jsonl").stdout
    assert said == "appended 2 rows to clicks at position 1; bad.jsonl is done and gone\n"
    assert not (topics.folder / "bad.jsonl").exists()
    assert rows(topics) == [(7, None), (2, None)]


def test_csv_lines_are_read_under_the_header_of_their_file(topics: Shell) -> None:
    (topics.folder / "in.tsv").write_text('url\tid\nNULL\tone\n"two\nlines"\ttwo\nthree\n')
    topics.run("append", "clicks", "in.tsv", "--null", "NULL", "--set-aside", "bad.jsonl")
    edit(topics, "\\tone", "\\t1")
    edit(topics, "\\ttwo", "\\t2")
    (said,) = topics.lines("append", "clicks", "--replay", "bad.jsonl")
    assert (said["rows"], said["remaining"]) == (2, 1)
    assert rows(topics) == [(1, None), (2, "two\nlines")]
    assert aside(topics)[0]["reason"] == "has 1 cells, not 2"


def test_csv_without_a_header_keeps_the_columns_it_had(topics: Shell) -> None:
    words = ("append", "clicks", "--format", "csv", "--no-header", "--set-aside", "bad.jsonl")
    topics.run(*words, given="3000000000,a\n")
    topics.run("topics", "alter", "clicks", "--schema", "id BIGINT, url STRING, at DATE")
    topics.run("append", "clicks", "--replay", "bad.jsonl")
    assert rows(topics) == [(3000000000, "a")]


def test_a_torn_csv_record_does_not_take_its_neighbours_with_it(topics: Shell) -> None:
    (topics.folder / "in.csv").write_text('id,url\nx,a\n2,"open\n')
    topics.run("append", "clicks", "in.csv", "--set-aside", "bad.jsonl")
    edit(topics, "x,a", "1,a")
    (said,) = topics.lines("append", "clicks", "--replay", "bad.jsonl")
    assert (said["rows"], said["remaining"]) == (1, 1)
    assert rows(topics) == [(1, "a")]


def test_rows_of_parquet_come_back_too(topics: Shell) -> None:
    pq.write_table(pa.table({"id": [1, 2], "name": ["abcd", "b"]}), topics.folder / "in.parquet")
    topics.run("append", "users", "in.parquet", "--set-aside", "bad.jsonl")
    topics.run("topics", "alter", "users", "--schema", "id BIGINT, name VARCHAR(4)")
    topics.run("append", "users", "--replay", "bad.jsonl")
    assert [(row["id"], row["name"]) for row in topics.lines("log", "users")] == [(2, "b"), (1, "abcd")]


def test_a_delete_stays_a_delete(topics: Shell) -> None:
    topics.run("append", "users", given='{"id": 1, "name": "a"}\n')
    topics.run("append", "users", "--delete", "--set-aside", "bad.jsonl", given='{"id": "one"}\n')
    edit(topics, '\\"one\\"', "1")
    topics.run("append", "users", "--replay", "bad.jsonl")
    assert [row["_deleted"] for row in topics.lines("log", "users")] == [False, True]


def test_lines_of_another_topic_and_lost_bytes_stay_as_they_are(topics: Shell) -> None:
    topics.run("append", "users", "--set-aside", "bad.jsonl", given='{"name": "a"}\n')
    topics.run("append", "clicks", "--set-aside", "bad.jsonl", given=b'{"id": 1, "url": "\xff"}\n')
    before = aside(topics)
    (said,) = topics.lines("append", "clicks", "--replay", "bad.jsonl")
    assert (said["rows"], said["remaining"], said["position"]) == (0, 2, None)
    assert aside(topics) == before


def test_a_replay_that_is_repeated_after_a_crash_appends_nothing_twice(topics: Shell) -> None:
    topics.run("append", "clicks", "--set-aside", "bad.jsonl", given='{"idd": 1}\n')
    edit(topics, "idd", "id")
    content = (topics.folder / "bad.jsonl").read_text()
    topics.run("append", "clicks", "--replay", "bad.jsonl")
    (topics.folder / "bad.jsonl").write_text(content)
    (said,) = topics.lines("append", "clicks", "--replay", "bad.jsonl")
    assert (said["rows"], said["repeated"]) == (0, 1)
    assert rows(topics) == [(1, None)]
    assert not (topics.folder / "bad.jsonl").exists()


def test_what_is_no_file_of_lines_set_aside_is_refused_and_left_alone(topics: Shell) -> None:
    (topics.folder / "rows.jsonl").write_text('{"id": 1}\n')
    said = topics.error("append", "clicks", "--replay", "rows.jsonl", code=4)
    assert said["line"] == 1
    assert (topics.folder / "rows.jsonl").exists()
    topics.run("append", "clicks", "rows.jsonl", "--replay", "rows.jsonl", code=2)
    topics.run("append", "clicks", "--replay", "nowhere.jsonl", code=2)

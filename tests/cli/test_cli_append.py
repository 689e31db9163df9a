from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.evert_cli import Shell


@pytest.fixture
def topics(shell: Shell) -> Shell:
    shell.run("topics", "create", "clicks", "id BIGINT, url STRING")
    shell.run("topics", "create", "users", "id BIGINT, name STRING", "--table", "--key", "id")
    return shell


def ids(shell: Shell, topic: str = "clicks") -> list[int]:
    return [row["id"] for row in shell.lines("log", topic)]


def test_json_lines_from_stdin(topics: Shell) -> None:
    said = topics.run("append", "clicks", given='{"id": 1, "url": "/"}\n\n{"id": 2}').stdout
    assert said.startswith("appended 2 rows to clicks at position 1, ")
    assert ids(topics) == [1, 2]


def test_files_of_several_formats_one_after_the_other(topics: Shell) -> None:
    (topics.folder / "a.jsonl").write_text('{"id": 1}\n')
    (topics.folder / "b.csv").write_text('url,id\n"two\nlines",2\n')
    (topics.folder / "c.tsv").write_text("id\turl\n3\tx\n")
    (topics.folder / "d.json.gz").write_bytes(gzip.compress(b'{"id": 4}\n'))
    pq.write_table(pa.table({"id": [5, 6]}), topics.folder / "e.parquet")
    (said,) = topics.lines(
        "append", "clicks", "a.jsonl", "b.csv", "c.tsv", "d.json.gz", "e.parquet", "--batch", 1
    )
    assert (said["rows"], said["position"]) == (6, 6)
    assert ids(topics) == [1, 2, 3, 4, 5, 6]


def test_csv_options(topics: Shell) -> None:
    topics.run(
        "append",
        "clicks",
        "--format",
        "csv",
        "--no-header",
        "--delimiter",
        ";",
        "--null",
        "-",
        given="1;-\n2;x\n",
    )
    assert [row["url"] for row in topics.lines("log", "clicks")] == [None, "x"]


def test_a_file_of_an_unknown_ending_needs_a_format(topics: Shell) -> None:
    (topics.folder / "rows.txt").write_text('{"id": 1}\n')
    assert "--format" in topics.run("append", "clicks", "rows.txt", code=4).stderr
    topics.run("append", "clicks", "rows.txt", "--format", "json")


def test_rows_are_committed_in_batches(topics: Shell) -> None:
    (said,) = topics.lines("append", "clicks", "--batch", 2, given='{"id": 1}\n' * 5)
    assert said["position"] == 3


def test_the_first_bad_line_stops_and_says_what_was_appended(topics: Shell) -> None:
    lines = '{"id": 1}\n{"id": 2}\n{"id": 3}\n{"id": "x"}\n{"id": 5}\n'
    said = topics.error("append", "clicks", "--batch", 2, given=lines, code=4)
    assert (said["error"], said["line"], said["column"], said["appended"]) == ("bad_row", 4, "id", 2)
    assert ids(topics) == [1, 2]
    spoken = topics.run("append", "clicks", "--batch", 2, given=lines, code=4).stderr
    assert "line 4" in spoken
    assert "appended before it: 2 rows, up to position 2" in spoken


def test_lines_that_do_not_fit_are_set_aside_with_line_and_reason(topics: Shell) -> None:
    (topics.folder / "in.jsonl").write_text('{"id": 1}\nnonsense\n{"id": 3}\n{"idd": 4}\n{"id": 5}\n')
    (said,) = topics.lines("append", "clicks", "in.jsonl", "--batch", 2, "--set-aside", "bad.jsonl")
    assert (said["rows"], said["set_aside"]) == (3, 2)
    assert ids(topics) == [1, 3, 5]
    bad = [json.loads(line) for line in (topics.folder / "bad.jsonl").read_text().splitlines()]
    assert [(one["file"], one["line"], one["text"]) for one in bad] == [
        ("in.jsonl", 2, "nonsense"),
        ("in.jsonl", 4, '{"idd": 4}'),
    ]
    assert "idd" in bad[1]["reason"]


def test_csv_and_parquet_rows_are_set_aside_too(topics: Shell) -> None:
    (topics.folder / "in.csv").write_text('id,url\n1,a\nx,"b\nb"\n3,c\n4\n5,e\n')
    (said,) = topics.lines("append", "clicks", "in.csv", "--batch", 2, "--set-aside", "bad.csv.jsonl")
    assert (said["rows"], said["set_aside"]) == (3, 2)
    bad = [json.loads(line) for line in (topics.folder / "bad.csv.jsonl").read_text().splitlines()]
    assert [one["line"] for one in bad] == [3, 6]
    pq.write_table(pa.table({"id": [1, None, 3], "name": ["a", "b", "c"]}), topics.folder / "in.parquet")
    (said,) = topics.lines("append", "users", "in.parquet", "--set-aside", "bad.parquet.jsonl")
    assert (said["rows"], said["set_aside"]) == (2, 1)


def test_a_null_key_names_its_line(topics: Shell) -> None:
    said = topics.error("append", "users", given='{"id": 1}\n{"name": "x"}\n', code=4)
    assert (said["line"], said["column"]) == (2, "id")


def test_rows_of_a_table_replace_each_other_and_can_be_deleted(topics: Shell) -> None:
    topics.run("append", "users", given='{"id": 1, "name": "a"}\n{"id": 1, "name": "b"}\n')
    topics.run("append", "users", "--delete", given='{"id": 1}\n')
    assert [row["_deleted"] for row in topics.lines("log", "users")] == [False, False, True]
    topics.run("append", "clicks", "--delete", given='{"id": 1}\n', code=4)


def test_a_repeated_command_with_a_producer_appends_nothing_twice(topics: Shell) -> None:
    (topics.folder / "in.jsonl").write_text("".join(f'{{"id": {i}}}\n' for i in range(5)))
    words = ("append", "clicks", "in.jsonl", "--batch", 2, "--producer", "p", "--sequence", 7)
    (first,) = topics.lines(*words)
    (second,) = topics.lines(*words)
    assert (first["rows"], first["repeated"]) == (5, 0)
    assert (second["rows"], second["repeated"], second["position"]) == (0, 5, first["position"])
    assert ids(topics) == [0, 1, 2, 3, 4]


def test_a_producer_goes_on_where_a_crash_stopped_it(topics: Shell) -> None:
    rows = [f'{{"id": {i}}}\n' for i in range(5)]
    topics.run("append", "clicks", "--batch", 2, "--producer", "p", "--sequence", 0, given="".join(rows[:2]))
    topics.run("append", "clicks", "--batch", 2, "--producer", "p", "--sequence", 0, given="".join(rows))
    assert ids(topics) == [0, 1, 2, 3, 4]


def test_a_request_id_makes_one_commit_of_everything(topics: Shell) -> None:
    words = ("append", "clicks", "--batch", 1, "--request-id", "r")
    (first,) = topics.lines(*words, given='{"id": 1}\n{"id": 2}\n')
    (second,) = topics.lines(*words, given='{"id": 1}\n{"id": 2}\n')
    assert (first["position"], first["rows"]) == (1, 2)
    assert (second["position"], second["repeated"]) == (1, 2)
    assert topics.error(*words, given='{"id": 3}\n', code=5)["error"] == "request_reused"


def test_an_append_can_depend_on_nobody_having_been_faster(topics: Shell) -> None:
    topics.run("append", "users", "--unmoved-since", 0, given='{"id": 1}\n{"id": 2}\n')
    assert (
        topics.error("append", "users", "--unmoved-since", 0, given='{"id": 3}', code=5)["error"]
        == "conflict"
    )
    topics.run("append", "users", "--unmoved-since", 0, "--unmoved-key", 3, given='{"id": 3}')
    topics.run("append", "users", "--unmoved-since", 0, "--unmoved-key", 3, given='{"id": 3}', code=5)
    topics.run("append", "users", "--unmoved-key", 3, given='{"id": 3}', code=2)


def test_no_input_appends_nothing(topics: Shell) -> None:
    (said,) = topics.lines("append", "clicks")
    assert (said["rows"], said["position"]) == (0, None)


def test_an_unknown_topic_is_named_with_a_guess(topics: Shell) -> None:
    assert "clicks" in topics.run("append", "click", given="{}", code=3).stderr

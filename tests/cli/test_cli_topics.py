from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from tests.cli.evert_cli import Shell


def test_init_twice_is_fine(shell: Shell) -> None:
    assert "is ready" in shell.run("init", shell.db).stdout


def test_an_empty_database_says_so(shell: Shell) -> None:
    assert shell.run("topics").stderr == "there are no topics yet\n"


def test_a_topic_is_listed_with_its_sizes(shell: Shell) -> None:
    shell.run(
        "topics", "create", "users", "id BIGINT, country STRING", "--table", "--key", "id", "--partitions", 2
    )
    shell.run("append", "users", given='{"id": 1}\n{"id": 2}\n')
    (listed,) = shell.lines("topics")
    assert (listed["topic"], listed["kind"], listed["key"], listed["rows"]) == ("users", "table", ["id"], 2)
    assert (listed["first_position"], listed["last_position"], listed["tail_commits"]) == (1, 1, 1)
    header, line = shell.run("topics").stdout.splitlines()
    assert header.split()[:3] == ["topic", "kind", "key"]
    assert line.split()[:3] == ["users", "table", "id"]


def test_show_has_schema_options_and_offsets(shell: Shell) -> None:
    shell.run("topics", "create", "t", "a INT", "--retain", "7 days", "--retain-bytes", "5 MB")
    (shown,) = shell.lines("topics", "show", "t")
    assert shown["schema"] == "a INT"
    assert shown["options"]["retain"] == "7 days"
    assert shown["options"]["retain_bytes"] == 5_000_000
    assert shown["offsets"] == [{"partition": 0, "first_offset": 0, "next_offset": 0}]
    assert "7 days" in shell.run("topics", "show", "t").stdout


def test_creating_the_same_topic_again_is_fine_and_another_is_not(shell: Shell) -> None:
    shell.run("topics", "create", "t", "a INT")
    shell.run("topics", "create", "t", "a INT")
    assert shell.error("topics", "create", "t", "a STRING", code=4)["error"] == "topic_exists"


def test_a_schema_can_come_from_a_parquet_file(shell: Shell) -> None:
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), shell.folder / "like.parquet")
    shell.run("topics", "create", "t", "--like", shell.folder / "like.parquet")
    assert shell.lines("topics", "show", "t")[0]["schema"] == "id BIGINT, name STRING"
    assert shell.error("topics", "create", "u", code=2)["error"] == "usage"


def test_alter_adds_columns_and_takes_bounds_away(shell: Shell) -> None:
    shell.run("topics", "create", "t", "a INT", "--retain", "7 days")
    shell.run("topics", "alter", "t", "--schema", "a INT, b STRING", "--retain", "none")
    (shown,) = shell.lines("topics", "show", "t")
    assert (shown["schema"], shown["schema_version"]) == ("a INT, b STRING", 2)
    assert shown["options"]["retain"] is None
    shell.run("topics", "alter", "t", code=2)


def test_drop_asks_unless_told_yes(shell: Shell) -> None:
    shell.run("topics", "create", "t", "a INT")
    refused = shell.run("topics", "drop", "t", code=4)
    assert "--yes" in refused.stderr
    shell.run("topics", "drop", "t", "--yes")
    assert shell.lines("topics") == []


def test_sizes_and_durations_that_make_no_sense_are_usage_errors(shell: Shell) -> None:
    for option, value in (("--retain", "soon"), ("--max-bytes", "much"), ("--capacity", "some")):
        assert value in shell.run("topics", "create", "t", "a INT", option, value, code=2).stderr

"""`evert sql` without Spark: topics, what is refused, and the conversation at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from tests.cli.evert_cli import PROGRAM, Shell

SHOP = """
-- the shop; all of it
CREATE STREAM orders (id BIGINT, amount DECIMAL(10,2)) KEY (id) WITH (retain = '7 days', max_bytes = '5 GB');
CREATE TABLE customers (
    id BIGINT,
    country STRING,
    PRIMARY KEY (id)
);
"""


def test_topics_are_made_with_key_and_options(shell: Shell) -> None:
    said = shell.run("sql", SHOP).stdout.splitlines()
    assert said == [
        "orders is a stream of id BIGINT, amount DECIMAL(10,2)",
        "customers is a table of id BIGINT, country STRING",
    ]
    (orders,) = shell.lines("topics", "show", "orders")
    assert (orders["kind"], orders["key"]) == ("stream", ["id"])
    assert (orders["options"]["retain"], orders["options"]["max_bytes"]) == ("7 days", 5_000_000_000)
    assert shell.lines("topics", "show", "customers")[0]["key"] == ["id"]


def test_a_text_can_be_run_again(shell: Shell) -> None:
    shell.run("sql", SHOP)
    shell.run("sql", SHOP)
    error = shell.error("sql", "CREATE STREAM orders (id BIGINT)", code=4)
    assert error["error"] == "topic_exists"
    assert shell.lines("sql", "CREATE STREAM IF NOT EXISTS orders (id BIGINT)") == [
        {"kind": "create_stream", "message": "orders is there already"}
    ]


def test_statements_come_from_files_and_from_stdin(shell: Shell) -> None:
    (shell.folder / "shop.sql").write_text(SHOP)
    shell.run("sql", "-f", "shop.sql")
    assert [row["topic"] for row in shell.lines("sql", "-", given="SHOW TOPICS")] == ["customers", "orders"]
    assert [row["topic"] for row in shell.lines("sql", given="SHOW STREAMS;")] == ["orders"]
    shell.run("sql", "SHOW TOPICS", "-f", "shop.sql", code=2)


def test_show_and_describe_are_tables(shell: Shell) -> None:
    shell.run("sql", SHOP)
    header, line = shell.run("sql", "SHOW TABLES").stdout.splitlines()
    assert header.split() == ["topic", "kind", "key", "columns"]
    assert line.split()[:3] == ["customers", "table", "id"]
    said = shell.run("sql", "DESCRIBE Customers").stdout.splitlines()
    assert said[0] == "customers is a table"
    assert said[2].split() == ["id", "BIGINT", "no", "yes"]
    assert said[3].split() == ["country", "STRING", "yes", "no"]


def test_nothing_to_show_is_said_on_stderr(shell: Shell) -> None:
    result = shell.run("sql", "SHOW STREAMS; SHOW VIEWS")
    assert result.stdout == ""
    assert result.stderr == "there are no streams yet\nthere are no views yet\n"


def test_nothing_is_done_if_one_statement_cannot_be_read(shell: Shell) -> None:
    (shell.folder / "shop.sql").write_text(SHOP + "DROP TABEL customers;\n")
    error = shell.error("sql", "-f", "shop.sql", code=4)
    assert (error["error"], error["file"], error["line"], error["column"]) == (
        "bad_statement",
        "shop.sql",
        9,
        6,
    )
    assert error["hint"] == "did you mean TABLE?"
    assert shell.lines("topics") == []
    said = shell.run("sql", "-f", "shop.sql", code=4).stderr
    assert said.startswith("evert: shop.sql, line 9, column 6: expected STREAM, TABLE or MATERIALIZED VIEW")


def test_a_statement_that_fails_names_its_line_and_those_before_it_stay_done(shell: Shell) -> None:
    (shell.folder / "shop.sql").write_text(SHOP + "CREATE STREAM clicks (\n  url TEXT\n);\n")
    error = shell.error("sql", "-f", "shop.sql", code=4)
    assert (error["error"], error["line"]) == ("bad_schema", 10)
    assert "did you mean STRING?" in error["hint"]
    assert [topic["topic"] for topic in shell.lines("topics")] == ["customers", "orders"]


def test_an_option_that_is_not_there_names_those_that_are(shell: Shell) -> None:
    error = shell.error("sql", "CREATE STREAM s (a INT) WITH (retian = '1 day')", code=4)
    assert error["error"] == "bad_option"
    assert "retain" in error["hint"]


def test_drop_tells_streams_from_tables_and_is_quiet_about_what_may_be_missing(shell: Shell) -> None:
    shell.run("sql", SHOP)
    error = shell.error("sql", "DROP STREAM customers", code=4)
    assert error["hint"] == "write DROP TABLE customers"
    assert shell.run("sql", "DROP TABLE customers").stdout == "the table customers is gone\n"
    assert shell.error("sql", "DROP TABLE order", code=3)["hint"] == "did you mean orders?"
    shell.run("sql", "DROP TABLE IF EXISTS customers")


@pytest.mark.parametrize(
    ("text", "hint"),
    [("SELECT 1", "CREATE MATERIALIZED VIEW"), ("INSERT INTO orders VALUES (1, 2)", "evert append")],
)
def test_what_sql_does_not_do_names_what_does(shell: Shell, text: str, hint: str) -> None:
    assert hint in shell.error("sql", text, code=4)["hint"]


def test_a_text_that_is_no_utf8_is_a_usage_error(shell: Shell) -> None:
    (shell.folder / "bad.sql").write_bytes(b"SHOW \xff")
    assert "UTF-8" in shell.run("sql", "-f", "bad.sql", code=2).stderr


def test_at_a_terminal_it_asks_until_a_semicolon_and_survives_mistakes(shell: Shell) -> None:
    here, there = pty.openpty()
    environment = {**os.environ, "EVERT_DB": str(shell.db), "TERM": "dumb"}
    process = subprocess.Popen(
        [*PROGRAM, "sql"],
        stdin=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    os.close(there)
    os.write(here, b"CREATE STREAM s\n(a INT, b\nSTRING);\nSHWO TOPICS;\n\nSHOW TOPICS;\nquit\n")
    said, errors = process.communicate(timeout=60)
    os.close(here)
    assert process.returncode == 0
    assert "s is a stream of a INT, b STRING" in said
    assert "    -> " in said
    assert said.splitlines()[-2].split()[-3:] == ["INT,", "b", "STRING"]
    assert "did you mean SHOW?" in errors

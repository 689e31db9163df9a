from __future__ import annotations

import pytest
from tests.cli.evert_cli import Shell


@pytest.fixture
def shop(shell: Shell) -> Shell:
    shell.run("topics", "create", "clicks", "session STRING, url STRING, at TIMESTAMP, price DECIMAL(10,2)")
    lines = (
        '{"session": "a", "url": "/", "price": "1.50"}\n'
        '{"session": "b", "url": "/cart", "at": "2026-01-01T00:00:00Z"}'
    )
    shell.run("append", "clicks", given=lines)
    shell.run("append", "clicks", given='{"session": "a", "url": "/"}')
    return shell


def test_a_question_is_answered_as_a_table(shop: Shell) -> None:
    result = shop.run("ask", "SELECT url, count(*) AS n FROM clicks GROUP BY url ORDER BY n DESC")
    assert [line.split() for line in result.stdout.splitlines()] == [["url", "n"], ["/", "2"], ["/cart", "1"]]
    assert result.stderr == "at position 2: 2 rows\n"
    assert shop.run("ask", "-", given="SELECT 1 AS one").stdout.split() == ["one", "1"]


def test_a_question_is_answered_as_json(shop: Shell) -> None:
    sql = "SELECT at, price, _offset FROM clicks ORDER BY _offset"
    assert shop.lines("ask", sql, "--limit", 2) == [
        {"at": None, "price": "1.50", "_offset": 0},
        {"at": "2026-01-01T00:00:00Z", "price": None, "_offset": 1},
    ]
    assert shop.lines("ask", "SELECT count(*) AS n FROM clicks", "--at", 1) == [{"n": 2}]
    assert shop.lines("ask", "SELECT session, session FROM clicks LIMIT 1") == [
        {"session": "a", "session_2": "a"}
    ]
    assert shop.lines("ask", "SELECT url FROM clicks WHERE false") == []


def test_less_is_shown_and_more_is_refused(shop: Shell) -> None:
    shown = shop.run("ask", "SELECT url FROM clicks", "--limit", 1)
    assert shown.stderr == "at position 2: 1 of 3 rows\n"
    error = shop.error("ask", "SELECT url FROM clicks", "--max-rows", 2, code=4)
    assert (error["error"], error["max_rows"]) == ("too_many_rows", 2)
    assert "--max-rows" in error["hint"]


def test_mistakes_have_the_exit_codes_of_the_other_commands(shop: Shell) -> None:
    assert shop.error("ask", "SELECT * FROM clics", code=4)["hint"] == "did you mean 'clicks'?"
    assert shop.error("ask", "SELECT * FROM clics", code=4)["error"] == "unknown_relation"
    assert shop.error("ask", "SELECT urll FROM clicks", code=4)["error"] == "bad_query"
    assert shop.error("ask", "SELECT 1", "--at", 99, code=4)["error"] == "bad_option"
    assert shop.error("ask", "DROP TABLE clicks", code=4)["error"] == "bad_query"
    shop.run("ask", code=2)
    shop.run("ask", "SELECT 1", "--seconds", 0, code=2)
    refused = shop.run("ask", "SELECT 1 / 0", code=4).stderr
    assert refused == "evert: the query fails: division by zero\n"


def test_asking_starts_no_spark_and_leaves_nothing_on_stderr(shop: Shell) -> None:
    with shop.start("ask", "SELECT sum(price) AS total FROM clicks") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert out.split() == ["total", "1.50"]
    assert err == "at position 2: 1 rows\n"

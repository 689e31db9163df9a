from __future__ import annotations

import pytest

from evert.errors import BadStatement
from evert.plan.statements import (
    CreateTopic,
    CreateView,
    Describe,
    Drop,
    Explain,
    Query,
    Refresh,
    Show,
    finished,
    parse,
)
from evert.schema.schema import Schema


def only(text: str):
    (found,) = parse(text)
    return found


def refused(text: str) -> BadStatement:
    with pytest.raises(BadStatement) as caught:
        parse(text)
    return caught.value


def test_a_stream_has_columns_a_key_and_options():
    made = only(
        "create stream Clicks (session STRING, at TIMESTAMP) key (session) with (retain = '7 days', partitions = 4)"
    )
    assert isinstance(made, CreateTopic)
    assert (made.kind, made.name, made.key) == ("stream", "Clicks", ("session",))
    assert made.options == {"retain": "7 days", "partitions": 4}
    assert Schema.parse(made.schema).ddl() == "session STRING, at TIMESTAMP"


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("id BIGINT, shop INT, PRIMARY KEY (id, shop)", ("id", "shop")),
        ("PRIMARY KEY (id), id BIGINT, shop INT", ("id",)),
        ("id BIGINT, PRIMARY KEY (shop), shop INT", ("shop",)),
        ("id BIGINT PRIMARY KEY, shop INT", ("id",)),
        ("id BIGINT, shop INT primary key", ("shop",)),
    ],
)
def test_the_primary_key_is_taken_out_of_the_columns(columns, key):
    made = only(f"CREATE TABLE users ({columns})")
    assert made.key == key
    assert Schema.parse(made.schema).ddl() == "id BIGINT, shop INT"


def test_nested_types_and_comments_in_columns_are_left_alone():
    columns = (
        "id BIGINT, a ARRAY<STRUCT<x: INT, y: DECIMAL(10, 2)>> COMMENT 'PRIMARY KEY, ;', m MAP<STRING, INT>"
    )
    made = only(f"CREATE TABLE t ({columns}, /* the key */ PRIMARY KEY (id))")
    assert Schema.parse(made.schema) == Schema.parse(columns)


def test_an_error_in_the_columns_names_the_line_of_the_text():
    made = parse("SHOW TOPICS;\n\nCREATE STREAM s (\n  a INT,\n  b TEXT\n)")[1]
    with pytest.raises(Exception, match="line 5, character 5"):
        Schema.parse(made.schema)


def test_a_view_is_all_that_surrounds_its_query():
    text = (
        "CREATE OR REPLACE MATERIALIZED VIEW revenue KEY (country) GROUP slow HISTORY '1 day' AS\n"
        "  SELECT country, sum(amount) -- of all; really\n  FROM orders GROUP BY country  \n;"
    )
    made = only(text)
    assert isinstance(made, CreateView)
    assert (made.name, made.key, made.group, made.history) == ("revenue", ("country",), "slow", "1 day")
    assert (made.replace, made.hold, made.if_not_exists) == (True, False, False)
    assert made.query == Query(
        "SELECT country, sum(amount) -- of all; really\n  FROM orders GROUP BY country", 2, 3
    )


def test_a_stream_says_when_its_events_happened():
    made = only(
        "CREATE STREAM s (at TIMESTAMP) EVENT TIME at LATENESS INTERVAL 10 MINUTES WITH (late = 'drop')"
    )
    assert made.options == {"event_time": "at", "lateness": "10 minutes", "late": "drop"}
    made = only("CREATE TABLE t (k INT PRIMARY KEY, since TIMESTAMP) EVENT TIME since")
    assert made.options == {"event_time": "since"}


def test_a_view_says_what_it_emits():
    assert only("CREATE MATERIALIZED VIEW v AS SELECT 1").emit is None
    assert only("CREATE MATERIALIZED VIEW v EMIT CHANGES AS SELECT 1").emit == "changes"
    assert only("CREATE MATERIALIZED VIEW v COMMENT 'it''s' AS SELECT 1").comment == "it's"
    assert only("CREATE STREAM s (a INT) COMMENT 'what' WITH (retain = 5)").options["comment"] == "what"
    assert only("CREATE MATERIALIZED VIEW v EMIT ON WINDOW CLOSE KEY (a) AS SELECT 1").emit == "close"


def test_the_query_is_not_looked_into():
    query = "WITH a AS (SELECT ';' AS `x;y`, r'\\' AS z) /*+ h */ SELECT \"a;''\" FROM a /* ; /* ; */ ; */ b"
    assert only(f"CREATE MATERIALIZED VIEW v AS {query}; -- done;").query.text == query


def test_clauses_of_a_view_come_in_any_order_and_once():
    made = only("CREATE MATERIALIZED VIEW IF NOT EXISTS v HISTORY '1 day' KEY (`a b`) AS SELECT 1 AS `a b`")
    assert (made.history, made.key, made.if_not_exists) == ("1 day", ("a b",), True)
    assert only("CREATE OR REPLACE MATERIALIZED VIEW v HOLD KEY (a) AS SELECT 1").hold
    assert "only a replacement can be held" in refused("CREATE MATERIALIZED VIEW v HOLD AS SELECT 1").message
    twice = refused("CREATE MATERIALIZED VIEW v KEY (a) KEY (b) AS SELECT 1")
    choices = "expected GROUP, HISTORY, REFRESH POLICY, EMIT, COMMENT or AS with the query, found 'KEY'"
    assert choices in twice.message


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("DROP STREAM s", Drop(kind="stream", name="s")),
        ("drop table if exists `odd-name`.late", Drop(kind="table", name="odd-name.late", if_exists=True)),
        ("DROP MATERIALIZED VIEW v", Drop(kind="view", name="v")),
        ("SHOW STREAMS", Show(what="streams")),
        ("SHOW MATERIALIZED VIEWS", Show(what="views")),
        ("show topics", Show(what="topics")),
        ("DESCRIBE users", Describe(name="users")),
        ("DESC TABLE users", Describe(name="users")),
        ("DESCRIBE stream", Describe(name="stream")),
        ("EXPLAIN MATERIALIZED VIEW v", Explain(target="v")),
        ("EXPLAIN SELECT 1", Explain(target=Query("SELECT 1", 1, 9))),
        ("REFRESH", Refresh()),
        ("REFRESH MATERIALIZED VIEWS", Refresh()),
    ],
)
def test_the_other_statements(text, statement):
    assert only(text) == statement


def test_statements_are_cut_at_semicolons_outside_quotes_and_comments():
    text = ";; SHOW VIEWS;\n-- SHOW TABLES;\n/* ; /* nested ; */ ; */ DROP TABLE `a;b` ; ;"
    assert parse(text) == [Show(what="views"), Drop(kind="table", name="a;b", line=3)]
    assert parse(" -- nothing\n") == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE STREEM s (a INT)", "expected STREAM, TABLE or MATERIALIZED VIEW, found 'STREEM'"),
        ("SHWO VIEWS", "expected a statement, found 'SHWO'"),
        ("CREATE TABLE t (id INT)", "the table t has no key"),
        ("CREATE TABLE t (id INT, PRIMARY KEY (id)", "expected ')' after the columns"),
        ("CREATE TABLE t (id INT, PRIMARY KEY id)", "expected '(', found 'id'"),
        ("CREATE STREAM s (a INT PRIMARY KEY)", "a stream keeps every row"),
        ("CREATE STREAM s AS SELECT 1", "not the result of a query"),
        ("CREATE STREAM s (a INT) WITH (retain '1')", "expected '=', found ''1''"),
        ("CREATE STREAM s (a INT) WITH (x = 1, X = 2)", "the option x is given twice"),
        ("CREATE STREAM s (a INT) OCCURRED a", "expected SENT and a column"),
        ("CREATE STREAM s (a INT) SOURCE a WITH (source = b)", "the option source is given twice"),
        ("CREATE TABLE t (a INT PRIMARY KEY) OCCURRED a SENT a", "expected the end of the statement"),
        ("CREATE OR REPLACE TABLE t (a INT PRIMARY KEY)", "cannot be replaced"),
        ("CREATE VIEW v AS SELECT 1", "every view is kept up to date"),
        ("CREATE SINK s", "CREATE SINK comes in a later version"),
        ("CREATE MATERIALIZED VIEW v AS ;", "expected a query, found the end of the statement"),
        ("CREATE MATERIALIZED VIEW v SELECT 1", "or AS with the query, found 'SELECT'"),
        ("CREATE MATERIALIZED VIEW v EMIT FINAL AS SELECT 1", "expected CHANGES or ON WINDOW CLOSE"),
        ("CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1", "exclude each other"),
        (
            "CREATE STREAM s (at TIMESTAMP) EVENT TIME at LATENESS INTERVAL soon",
            "expected a number and a unit",
        ),
        ("DROP TABLE 'users'", "expected the name of a table, found ''users''"),
        ("SHOW VIEWS please", "expected the end of the statement"),
        ("EXPLAIN v", "expected MATERIALIZED VIEW and a name, or a query"),
        ("REFRESH MATERIALIZED VIEW v", "views are refreshed together"),
        ("INSERT INTO t VALUES (1)", "rows are not inserted with SQL"),
        ("SELECT * FROM t", "make it a view"),
        ("(SELECT 1)", "make it a view"),
        ("SHOW 'VIEWS", "never closed"),
        ("SHOW `VIEWS", "never closed"),
        ("SHOW /* VIEWS", "never closed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_expected(text, said):
    error = refused(text)
    assert said in error.message
    assert error.code == "bad_statement"
    assert (error.details["line"], error.details["column"]) >= (1, 1)


def test_an_error_names_file_line_and_column_and_what_was_meant():
    with pytest.raises(BadStatement) as caught:
        parse("SHOW VIEWS;\n\n  DROP TABEL users;", source="shop.sql")
    error = caught.value
    assert error.message.startswith("shop.sql, line 3, column 8: expected STREAM")
    assert error.details == {"file": "shop.sql", "line": 3, "column": 8}
    assert error.hint == "did you mean TABLE?"


def test_insert_points_to_append():
    assert "evert append" in (refused("INSERT INTO t VALUES (1)").hint or "")


@pytest.mark.parametrize(
    ("text", "is_finished"),
    [("", False), ("SHOW", False), ("SHOW VIEWS;", True), ("'a;", False), ("a; -- b", True), ("/* ;", False)],
)
def test_what_is_typed_is_finished_by_a_semicolon(text, is_finished):
    assert finished(text) is is_finished


def test_a_stream_says_whose_clock_showed_what():
    made = only(
        "CREATE STREAM s (a INT) KEY (a) SOURCE d OCCURRED o SENT `s t` RECEIVED r WITH (retain = '1 day')"
    )
    assert made.options == {
        "source": "d",
        "occurred": "o",
        "sent": "s t",
        "received": "r",
        "retain": "1 day",
    }
    assert only("CREATE STREAM s (a INT) occurred o sent s").options == {"occurred": "o", "sent": "s"}


def test_option_values_are_texts_numbers_and_constants():
    made = only("CREATE STREAM s (a INT) WITH (a = 'it''s', b = -2, c = 1.5, d = TRUE, e = NULL, f = block)")
    assert made.options == {"a": "it's", "b": -2, "c": 1.5, "d": True, "e": None, "f": "block"}

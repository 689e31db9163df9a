"""What the embedded engine does not take, Spark answers, where it runs; over the same rows."""

from __future__ import annotations

import pytest
from tests.views.engine import Engine, open_database

from evert.errors import BadQuery, NotTranslated, Refused, TimedOut, TooManyRows


@pytest.fixture
def db(tmp_path, spark):
    with open_database(tmp_path / "db") as made:
        clicks = made.stream("clicks", "url STRING, n INT")
        clicks.append([{"url": "/a1", "n": 1}, {"url": "/b22", "n": 2}])
        clicks.append([{"url": "/ß", "n": 3}])
        people = made.table("people", "id INT, name STRING", key="id")
        people.upsert([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
        people.delete(2)
        engine = Engine(made)
        engine.view("kept")
        engine.epoch(2, {"kept": {("x", 1): 2}})
        yield made


def test_a_function_without_a_tested_equal_goes_to_spark(db):
    sql = "SELECT regexp_extract(url, '([0-9]+)', 1) AS digits, _offset FROM clicks ORDER BY _offset"
    answer = db.ask(sql)
    assert (answer.engine, answer.position) == ("spark", db.position)
    assert answer.rows()[:2] == [{"digits": "1", "_offset": 0}, {"digits": "22", "_offset": 1}]
    assert len(db.ask(sql, at=1)) == 2
    assert db.ask("SELECT collect_list(name) AS names FROM people").rows() == [{"names": ["a"]}]
    both = db.ask("SELECT collect_list(n) AS l, (SELECT count(*) FROM clicks) AS c FROM kept")
    assert (both.position, both.rows()) == (2, [{"l": [1, 1], "c": 3}])


def test_a_value_without_a_tested_equal_goes_to_spark(db):
    answer = db.ask("SELECT upper(url) AS u FROM clicks WHERE n = 3")
    assert (answer.engine, answer.rows()) == ("spark", [{"u": "/SS"}])
    assert db.ask("SELECT upper(url) AS u FROM clicks WHERE n < 3").engine == "duckdb"


def test_where_no_spark_runs_it_is_refused(db, monkeypatch):
    monkeypatch.setattr("evert.ask.engine.spark_runs", lambda: False)
    with pytest.raises(NotTranslated, match="regexp_extract"):
        db.ask("SELECT regexp_extract(url, 'a', 1) FROM clicks")
    with pytest.raises(NotTranslated, match="upper"):
        db.ask("SELECT upper(url) AS u FROM clicks")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM parquet.`/etc/passwd` WHERE rlike('a', 'a')",
        "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT java_method('java.lang.System', 'getenv', 'HOME') FROM clicks",
        "SELECT rand() FROM clicks",
        "SELECT input_file_name() FROM clicks",
        "SELECT regexp_count(nothing, 'a') FROM clicks",
        "SELECT no_such_function(url) FROM clicks",
        "SELECT * FROM clicks LATERAL VIEW no_such_thing(url)",
    ],
)
def test_spark_reads_nothing_but_topics_and_views(db, sql):
    with pytest.raises(Refused) as found:
        db.ask(sql)
    assert len(found.value.message) < 400


def test_spark_keeps_to_the_limits(db):
    with pytest.raises(TooManyRows):
        db.ask("SELECT explode(array(1, 2, 3)) FROM clicks", max_rows=8)
    assert len(db.ask("SELECT explode(array(1, 2, 3)) FROM clicks", max_rows=9)) == 9
    with pytest.raises(BadQuery, match=r"fails|cannot be cast"):
        db.ask("SELECT regexp_replace(url, 'x', 'y'), CAST(url AS INT) FROM clicks")
    numbers = "SELECT /*+ REPARTITION(8) */ explode(sequence(1, 1000000)) AS"
    slow = f"SELECT count(*) FROM ({numbers} a) JOIN ({numbers} b) ON hash(a, b) % 7 = 3"
    with pytest.raises(TimedOut):
        db.ask(slow, max_seconds=1.5)

"""Nothing that can be asked reads or writes anything but topics and views."""

from __future__ import annotations

import duckdb
import pytest
from tests.views.engine import open_database

from evert.ask.duck import _connected
from evert.errors import Refused


@pytest.fixture
def db(tmp_path):
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with open_database(tmp_path / "db") as made:
        made.stream("clicks", "url STRING").append({"url": "/"})
        yield made


ATTEMPTS = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_csv_auto('{secret}')",
    "SELECT * FROM read_parquet('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM `{secret}`",
    'SELECT * FROM "{secret}"',
    "SELECT * FROM csv.`{secret}`",
    "SELECT * FROM parquet.`{secret}`",
    "SELECT read_text('{secret}')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM t0_rows, clicks",
    "SELECT * FROM t0, clicks",
    "SELECT current_setting('memory_limit')",
    "SELECT getenv('HOME')",
    "SELECT error('x')",
    "SELECT query('SELECT 1')",
    "SELECT * FROM query_table('clicks')",
    "COPY clicks TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.db'",
    "PRAGMA database_list",
    "SET memory_limit = '100GB'",
    "RESET lock_configuration",
    "INSTALL httpfs",
    "LOAD httpfs",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f() AS 1",
    "INSERT INTO clicks VALUES ('/')",
    "DELETE FROM clicks",
    "UPDATE clicks SET url = ''",
    "DROP TABLE clicks",
    "EXPORT DATABASE '{folder}/out'",
    "CALL pragma_version()",
    "EXPLAIN SELECT 1",
    "DESCRIBE clicks",
    "SHOW TABLES",
    "SELECT 1; COPY clicks TO '{folder}/out.csv'",
    "WITH x AS (DELETE FROM clicks RETURNING *) SELECT * FROM x",
    "SELECT * FROM clicks, LATERAL (SELECT * FROM read_csv('{secret}'))",
    "SELECT reflect('java.lang.System', 'getenv')",
    "SELECT ? FROM clicks",
    "SELECT :url FROM clicks",
    "SELECT $1",
    "SELECT * FROM range(10)",
    "SELECT * FROM TABLE(clicks)",
    "SELECT input_file_name() FROM clicks",
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_an_attempt_to_get_out_is_refused(db, tmp_path, monkeypatch, attempt):
    monkeypatch.setattr("evert.ask.engine.spark_runs", lambda: False)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Refused) as found:
        db.ask(attempt.format(secret=tmp_path / "secret.csv", folder=tmp_path))
    assert "\n" not in found.value.message
    assert sorted(tmp_path.iterdir()) == before
    assert db.ask("SELECT count(*) AS n FROM clicks").rows() == [{"n": 1}]


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if "range(10)" not in one])
def test_nor_is_it_taken_by_spark_where_one_runs(spark, db, tmp_path, attempt):
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Refused) as found:
        db.ask(attempt.format(secret=tmp_path / "secret.csv", folder=tmp_path))
    assert "\n" not in found.value.message
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "text",
    [
        "it''s",
        r"a\'b",
        r"\' || 1 --",
        "'' OR 1 = 1 --",
        "/* */ --",
        r"\\",
        "{0} {over}",
        "a\0b",
        "\\u0027; DROP",
        "💥",
    ],
)
def test_a_text_in_quotes_stays_a_text(db, text):
    sql = f"SELECT '{text}' AS x, url FROM clicks WHERE url <> '{text}'"
    try:
        (row,) = db.ask(sql).rows()
    except Refused:
        return
    assert row["url"] == "/"
    assert set(row) == {"x", "url"}


@pytest.mark.parametrize("name", ['a"b', "a`b", "a''b", "x; DROP", "select", "r1", "t0", ""])
def test_names_that_the_user_gives_stay_names(db, name):
    quoted = name.replace("`", "``")
    try:
        answer = db.ask(f"SELECT `{quoted}`.url AS `{quoted}` FROM clicks AS `{quoted}`")
    except Refused:
        assert not name
        return
    assert answer.rows() == [{name: "/"}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.db'",
        "SET threads = 8",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM secret",
    ],
)
def test_the_engine_itself_is_shut_in(tmp_path, sql):
    """Even SQL that nobody has translated reaches neither files nor settings, nor Python's variables."""
    secret = duckdb.sql  # noqa: F841  (a variable that DuckDB would take for a table, if it were let)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with _connected(1) as con, pytest.raises(duckdb.Error):
        con.execute(sql.format(secret=tmp_path / "secret.csv", folder=tmp_path)).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]

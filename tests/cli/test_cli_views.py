"""Views from the command line, with Spark behind them."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.evert_cli import Shell

from evert.database import Database

SHOP = """
CREATE STREAM orders (id BIGINT, customer BIGINT, amount DECIMAL(10,2));
CREATE TABLE customers (id BIGINT, country STRING, PRIMARY KEY (id));
CREATE MATERIALIZED VIEW revenue AS
  SELECT country, sum(amount) AS revenue
  FROM orders JOIN customers ON customer = customers.id
  GROUP BY country;
"""
CUSTOMERS = '{"id": 1, "country": "CH"}\n{"id": 2, "country": "DE"}\n'
ORDERS = '{"id": 100, "customer": 1, "amount": "19.90"}\n{"id": 101, "customer": 2, "amount": "5.00"}\n'


@pytest.fixture
def shop(shell: Shell, spark: Any) -> Shell:
    """Two customers, two orders, and a view at their position."""
    (shell.folder / "shop.sql").write_text(SHOP)
    shell.run("sql", "-f", "shop.sql")
    shell.run("append", "customers", given=CUSTOMERS)
    shell.run("append", "orders", given=ORDERS)
    shell.run("run", "--once")
    return shell


def by_country(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["country"]: row["revenue"] for row in rows}


def test_a_file_of_statements_can_be_run_again(shop: Shell) -> None:
    (status,) = shop.lines("run", "shop.sql", "--once")
    assert (status["name"], status["state"], status["lag_events"]) == ("revenue", "live", 0)
    assert by_country(shop.lines("view", "show", "revenue")) == {"CH": "19.90", "DE": "5.00"}


def test_rows_are_shown_whole_by_key_and_up_to_a_limit(shop: Shell) -> None:
    shown = shop.run("view", "show", "Revenue")
    assert shown.stdout.splitlines()[0].split() == ["country", "revenue"]
    assert shown.stderr == "revenue at position 2: 2 rows\n"
    assert shop.lines("view", "show", "revenue", "--key", "CH") == [{"country": "CH", "revenue": "19.90"}]
    assert shop.lines("view", "show", "revenue", "--key", "XX") == []
    assert "1 of 2 rows" in shop.run("view", "show", "revenue", "--limit", 1).stderr
    assert (
        "--key 1 times"
        in shop.error("view", "show", "revenue", "--key", "a", "--key", "b", code=4)["message"]
    )
    assert shop.error("view", "show", "revenu", code=3)["hint"] == "did you mean revenue?"


def test_a_view_that_was_not_built_says_how_to(shell: Shell, spark: Any) -> None:
    shell.run("sql", SHOP)
    error = shell.error("view", "show", "revenue", code=3)
    assert error["error"] == "not_ready"
    assert "evert run --once" in error["hint"]


def test_one_changed_row_is_one_that_goes_and_one_that_comes(shop: Shell) -> None:
    shop.run("append", "customers", given='{"id": 1, "country": "AT"}')
    shop.run("run", "--once", "--quiet")
    changes = shop.lines("subscribe", "revenue", "--after", 2, "--no-follow")
    assert [(c["_op"], c["_position"], c.get("country")) for c in changes] == [
        ("-", 3, "CH"),
        ("+", 3, "AT"),
        ("progress", 3, None),
    ]
    assert by_country(shop.lines("view", "show", "revenue", "--at", 2)) == {"CH": "19.90", "DE": "5.00"}
    assert by_country(shop.lines("view", "show", "revenue")) == {"AT": "19.90", "DE": "5.00"}


def test_a_subscription_begins_with_all_rows(shop: Shell) -> None:
    lines = shop.run("subscribe", "revenue", "--no-follow").stdout.splitlines()
    assert lines[0].split() == ["position", "country", "revenue"]
    assert sorted(line.split() for line in lines[1:]) == [["+", "2", "CH", "19.90"], ["+", "2", "DE", "5.00"]]


def test_views_and_status_tell_how_far_they_are(shop: Shell) -> None:
    (listed,) = shop.lines("views")
    assert (listed["name"], listed["state"], listed["position"], listed["rows"]) == ("revenue", "live", 2, 2)
    assert listed["key"] == ["country"]
    assert listed["query"].startswith("SELECT country")
    _, line = shop.run("views").stdout.splitlines()
    assert line.split()[:4] == ["revenue", "live", "2", "2"]
    shop.run("append", "orders", given='{"id": 102, "customer": 1, "amount": "1.00"}')
    (status,) = shop.lines("status")
    assert (status["lag_commits"], status["lag_events"]) == (1, 1)
    assert shop.run("status").stdout.splitlines()[1].split()[:4] == ["revenue", "live", "2", "1"]


def test_a_profile_tells_what_the_nodes_did(shop: Shell) -> None:
    (epoch,) = shop.lines("status", "--profile")
    assert (epoch["group"], epoch["position"], epoch["events"]) == ("default", 2, 4)
    nodes = {node["kind"]: node for node in epoch["nodes"]}
    assert nodes["join"]["rows_in"] == 4
    assert (nodes["join"]["rows_out"], nodes["output"]["rows_out"], nodes["output"]["state_rows"]) == (
        2,
        2,
        2,
    )
    assert all(node["milliseconds"] > 0 for node in epoch["nodes"])
    assert epoch["milliseconds"] > epoch["scanning"] > 0
    whole, header, *lines = shop.run("status", "--profile").stdout.splitlines()
    assert whole.startswith("default: 4 events to position 2 in ")
    assert header.split()[:3] == ["view", "node", "kind"]
    assert [line.split()[0] for line in lines] == ["revenue"] * len(nodes)
    shop.run("append", "orders", given='{"id": 102, "customer": 9, "amount": "1.00"}')
    shop.run("run", "--once")
    tree = shop.run("explain", "--analyze", "revenue").stdout
    assert "1 rows in, 0 out" in tree
    assert "not reached by the last epoch; state of 2 rows" in tree
    assert shop.error("explain", "--analyze", "SELECT 1 AS x", code=4)["error"] == "refused"


def test_statements_show_describe_and_explain_views(shop: Shell) -> None:
    (listed,) = shop.lines("sql", "SHOW VIEWS")
    assert (listed["view"], listed["state"], listed["position"], listed["key"]) == (
        "revenue",
        "live",
        2,
        "country",
    )
    described = shop.lines("sql", "DESCRIBE revenue")
    assert [(row["column"], row["type"], row["key"]) for row in described] == [
        ("country", "STRING", "yes"),
        ("revenue", "DECIMAL(20,2)", "no"),
    ]
    tree = shop.run("explain", "revenue").stdout
    assert "orders" in tree
    assert "customers" in tree
    assert shop.run("sql", "EXPLAIN MATERIALIZED VIEW revenue").stdout == tree
    assert "orders" in shop.run("explain", "SELECT count(*) AS n FROM orders").stdout


def test_refresh_is_a_statement(shop: Shell) -> None:
    shop.run("append", "orders", given='{"id": 102, "customer": 1, "amount": "0.10"}')
    assert shop.run("sql", "REFRESH").stdout == "all views are at position 3\n"
    assert by_country(shop.lines("view", "show", "revenue"))["CH"] == "20.00"


def test_a_view_is_replaced_and_dropped(shop: Shell) -> None:
    query = "SELECT customer, count(*) AS n FROM orders GROUP BY customer"
    error = shop.error("sql", f"CREATE MATERIALIZED VIEW revenue AS {query}", code=4)
    assert error["error"] == "view_exists"
    assert "OR REPLACE" in error["hint"]
    shop.run("sql", f"CREATE OR REPLACE MATERIALIZED VIEW revenue AS {query}; REFRESH")
    assert shop.lines("view", "show", "revenue", "--key", 1) == [{"customer": 1, "n": 1}]
    assert "reads it" in shop.error("sql", "DROP STREAM orders", code=4)["message"]
    assert "--yes" in shop.run("view", "drop", "revenue", code=4).stderr
    shop.run("view", "drop", "revenue", "--yes")
    shop.run("sql", "DROP STREAM orders")
    assert shop.lines("views") == []


def test_a_replacement_is_held_compared_and_let_in_and_the_way_back_is_kept(shop: Shell) -> None:
    new = "SELECT country, sum(amount) AS revenue FROM orders JOIN customers ON customer = customers.id"
    held = f"CREATE OR REPLACE MATERIALIZED VIEW revenue HOLD AS {new} WHERE amount > 10 GROUP BY country"
    assert "HOLD" in shop.error("view", "compare", "revenue", code=3)["hint"]
    assert shop.error("view", "rollback", "revenue", code=3)["error"] == "nothing_earlier"
    assert "waits for `evert view switch revenue`" in shop.run("sql", held).stdout
    assert shop.error("view", "compare", "revenue", code=3)["error"] == "not_ready"
    shop.run("run", "--once")
    assert ["amount > 10" in line["query"] for line in shop.lines("views")] == [False, True]
    shown = shop.run("views")
    assert shown.stdout.splitlines()[2].startswith("revenue (new)  live")
    assert "revenue (new) waits: `evert view compare revenue`" in shown.stderr
    (found,) = shop.lines("view", "compare", "revenue")
    assert (found["position"], found["added"], found["removed"], found["same"]) == (2, 0, 1, 1)
    assert found["rows"] == [{"country": "DE", "revenue": "5.00", "_weight": -1}]
    compared = shop.run("view", "compare", "Revenue", "--most", 1)
    assert compared.stdout.splitlines()[1].split() == ["-", "DE", "5.00"]
    assert "0 rows only in the new one, 1 only in the old one, 1 in both" in compared.stderr
    shop.run("view", "switch", "revenue")
    shop.run("run", "--once")
    assert by_country(shop.lines("view", "show", "revenue")) == {"CH": "19.90"}
    (earlier,) = shop.lines("view", "earlier", "revenue")
    assert (earlier["position"], earlier["kind"], earlier["query"][:14]) == (3, "sql", "SELECT country")
    shop.run("view", "rollback", "revenue")
    shop.run("view", "abandon", "revenue")
    assert shop.error("view", "abandon", "revenue", code=3)["error"] == "no_replacement"
    shop.run("view", "earlier", "revenue", "--forget")
    assert shop.run("view", "earlier", "revenue").stderr == "nothing earlier is kept of revenue\n"


def test_an_error_in_a_query_names_the_line_of_the_file(shop: Shell) -> None:
    text = (
        "SHOW VIEWS;\n\nCREATE MATERIALIZED VIEW bad AS\n  SELECT id,\n    sum(amuont) AS n\n  FROM orders;\n"
    )
    (shop.folder / "bad.sql").write_text(text)
    error = shop.error("sql", "-f", "bad.sql", code=4)
    assert (error["error"], error["file"]) == ("bad_query", "bad.sql")
    assert error["line"] in (4, 5)
    assert [view["name"] for view in shop.lines("views")] == ["revenue"]


def test_a_view_that_stops_says_why_and_the_others_go_on(shop: Shell) -> None:
    shop.run("sql", "CREATE MATERIALIZED VIEW small AS SELECT id, CAST(amount AS TINYINT) AS n FROM orders")
    shop.run("run", "--once")
    shop.run("append", "orders", given='{"id": 102, "customer": 1, "amount": "1000.00"}')
    error = shop.error("run", "--once", code=13)
    assert (error["error"], error["views"]) == ("stopped", ["small"])
    assert "small stopped at position 2" in shop.run("status").stderr
    assert by_country(shop.lines("view", "show", "revenue"))["CH"] == "1019.90"
    stopped = shop.error("view", "show", "small", code=13)
    assert "evert view resume small" in stopped["hint"]
    assert len(shop.lines("view", "show", "small", "--at", 2)) == 2
    assert shop.lines("view", "resume", "small")[0]["view"] == "small"
    assert "not stopped" in shop.error("view", "resume", "revenue", code=4)["message"]


def test_views_are_proved_and_a_difference_is_shown(shop: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (proof,) = shop.lines("prove")
    assert (proof["view"], proof["position"], proof["rows"], proof["proved"]) == ("revenue", 2, 2, True)
    assert shop.run("prove", "revenue").stdout == "revenue: proved at position 2, 2 rows\n"
    assert shop.error("prove", "revenu", code=3)["error"] == "unknown_view"
    real = Database.prove

    def doubting(self: Database, name: str | None = None) -> list[Any]:
        extra = pa.table({"country": ["XX"], "revenue": ["1.00"]})
        return [replace(found, unexpected=extra) for found in real(self, name)]

    monkeypatch.setattr(Database, "prove", doubting)
    shown = shop.run("prove", code=14)
    assert ["+", "XX", "1.00"] in [line.split() for line in shown.stdout.splitlines()]
    assert shown.stderr.startswith("evert: revenue differs from what Spark SQL computes")


def test_run_keeps_views_up_to_date_until_it_is_told_to_end(shop: Shell) -> None:
    with shop.start("run", "shop.sql", "--json") as process:
        assert process.stdout
        shop.run("append", "orders", given='{"id": 102, "customer": 1, "amount": "0.10"}')
        epoch = json.loads(process.stdout.readline())
        assert (epoch["position"], epoch["changed"], epoch["views"]) == (3, {"revenue": 2}, ["revenue"])
        assert by_country(shop.lines("view", "show", "revenue"))["CH"] == "20.00"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_run_ends_after_its_seconds(shop: Shell) -> None:
    assert shop.run("run", "--quiet", "--seconds", 0.5).stdout == ""
    shop.run("run", "--once", "--seconds", 1, code=2)

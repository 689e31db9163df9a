"""Views over HTTP: rows, formats, filters, positions, keys, questions."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.serve.serving import serving

from evert.serve import Limits

CH, DE = ({"country": c, "revenue": r, "orders": 100} for c, r in (("CH", "10150.00"), ("DE", "10050.00")))


def by_country(rows):
    return sorted(rows, key=lambda row: row["country"])


def test_rows_with_their_position_and_columns(shop, client):
    answer = client.get("/views/revenue")
    told = answer.json()
    assert by_country(told["rows"]) == [CH, DE]
    assert told["position"] == shop.views["revenue"].position == int(answer.headers["Evert-Position"])
    assert told["columns"][0] == {"name": "country", "type": "STRING"}
    assert told["total"] == 2


def test_the_other_formats_have_the_same_rows(client):
    asked = client.get("/views/large", headers={"Accept": "application/vnd.apache.arrow.stream"})
    arrow = pa.ipc.open_stream(asked.content).read_all()
    text = client.get("/views/large", params={"format": "csv"})
    assert text.headers["Content-Type"].startswith("text/csv")
    assert int(text.headers["Evert-Position"])
    cells = csv.read_csv(io.BytesIO(text.content))
    assert arrow.num_rows == cells.num_rows == 101
    assert sorted(arrow["id"].to_pylist()) == sorted(cells["id"].to_pylist())
    assert client.get("/views/large", headers={"Accept": "image/png"}).status_code == 406


def test_filter_order_columns_and_limit(client):
    asked = {"where": "amount < 110 OR id = 200", "order": "id DESC", "columns": "id, amount * 2 AS twice"}
    told = client.get("/views/large", params=asked | {"limit": "2"}).json()
    assert told["rows"] == [{"id": 200, "twice": "401.00"}, {"id": 109, "twice": "219.00"}]
    assert len(client.get("/views/large", params={"limit": "3"}).json()["rows"]) == 3


@pytest.mark.parametrize(
    "asked",
    [
        {"where": "1 = 1) UNION ALL SELECT id, amount FROM orders WHERE (1 = 1"},
        {"where": "1 = 1 GROUP BY id"},
        {"where": "id ="},
        {"where": "1 = 1) --"},
        {"order": "id LIMIT 1 OFFSET 2"},
        {"columns": "id FROM orders; SELECT 1"},
        {"columns": "id, (SELECT max(nope) FROM orders)"},
        {"where": "read_csv('/etc/passwd') IS NULL"},
        {"limit": "-1"},
        {"limit": "many"},
        {"unknown": "1"},
        {"format": "xml"},
        {"at": "1", "where": "id = 1", "limit": "1.5"},
    ],
)
def test_what_is_no_expression_of_the_view_is_refused(client, asked):
    answer = client.get("/views/large", params=asked)
    assert answer.status_code == 400, answer.text
    assert answer.json()["message"]


def test_a_key_finds_its_row(shop, client):
    told = client.get("/views/revenue/row", params={"key": "CH"}).json()
    assert told == {"view": "revenue", "position": shop.views["revenue"].position, "row": CH}
    absent = client.get("/views/revenue/row", params={"key": "XX"})
    assert (absent.status_code, absent.json()["error"]) == (404, "not_found")
    assert client.get("/views/revenue/row").status_code == 400
    assert client.get("/views/revenue/row?key=CH&key=DE").status_code == 400
    assert client.get("/views/large/row", params={"key": "1"}).status_code == 400
    assert client.get("/views/none/row", params={"key": "1"}).status_code == 404


def test_one_reads_what_one_has_written_and_the_past(shop, client):
    before = shop.views["revenue"].position
    position = client.post("/topics/customers", json={"id": 1, "country": "AT"}).json()["position"]
    shop.refresh()
    params = {"key": "AT", "at_least": str(position)}
    assert client.get("/views/revenue/row", params=params).json()["row"]["revenue"] == "10150.00"
    assert by_country(client.get("/views/revenue", params={"at": str(before)}).json()["rows"]) == [CH, DE]
    filtered = {"at": str(before), "where": "country = 'CH'"}
    assert client.get("/views/revenue", params=filtered).json()["rows"] == [CH]
    client.post("/topics/customers", json={"id": 1, "country": "CH"})
    shop.refresh()


def test_waiting_for_a_position_ends(shop):
    with serving(shop, Limits(max_wait=0.2)) as client:
        late = client.get("/views/revenue", params={"at_least": str(shop.position + 1_000)})
    assert (late.status_code, late.json()["error"]) == (504, "timed_out")


def test_a_question_is_answered_at_one_position(shop, client):
    sql = "SELECT country, revenue FROM revenue ORDER BY revenue DESC"
    told = client.post("/ask", json={"sql": sql}).json()
    assert [row["country"] for row in told["rows"]] == ["CH", "DE"]
    assert told["position"] == shop.views["revenue"].position
    text = client.post("/ask?format=csv", json={"sql": sql}).text
    assert text.splitlines()[1] == '"CH","10150.00"'


def test_questions_are_limited_and_only_read(shop):
    with serving(shop, Limits(max_rows=10, max_seconds=5)) as client:
        many = client.post("/ask", json={"sql": "SELECT * FROM large", "max_rows": 1_000_000})
        assert (many.status_code, many.json()["error"]) == (400, "too_many_rows")
        for sql in (
            "DROP TABLE orders",
            "INSERT INTO orders VALUES (1)",
            "SELECT 1; SELECT 2",
            "COPY x TO 'y'",
        ):
            assert client.post("/ask", json={"sql": sql}).status_code == 400
        for body in ({}, {"sql": 1}, {"sql": "SELECT 1", "what": 2}, {"sql": "SELECT 1", "at": "now"}, [1]):
            assert client.post("/ask", json=body).status_code == 400


def test_the_log_is_read_in_whole_commits(shop, client):
    first = client.get("/topics/customers/rows", params={"limit": "1"}).json()
    assert [row["id"] for row in first["rows"]] == [1, 2]
    rest = client.get("/topics/customers/rows", params={"after": str(first["position"])}).json()
    assert all(row["_position"] > first["position"] for row in rest["rows"])


def test_the_status_has_what_the_page_draws(shop, client):
    told = client.get("/status").json()
    assert told["running"] is False
    (view,) = [one for one in told["views"] if one["name"] == "revenue"]
    assert view["comment"] == "Revenue by country."
    assert sorted(view["reads"]) == ["customers", "orders"]
    assert view["columns"][0] == {"name": "country", "type": "STRING"}
    (topic,) = [one for one in told["topics"] if one["name"] == "orders"]
    assert (topic["appended"], topic["event_time"]) == (200, "at")


def test_metrics_are_what_prometheus_reads(client):
    text = client.get("/metrics").text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(samples['evert_view_rows{view="revenue"}']) == 2
    assert float(samples['evert_topic_appended_total{topic="orders"}']) == 200
    assert float(samples['evert_http_requests_total{method="GET",path="/views/{view}",status="200"}']) > 0
    named = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert all(any(sample.startswith(name) for name in named) for sample in samples)

"""Events over HTTP: what comes in is what Python would append, once, within limits, or not at all."""

from __future__ import annotations

import gzip
import io
import threading
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.serve.serving import LINES, serving

from evert.serve import Limits

ROWS = [{"id": 1, "customer": 7, "amount": "19.90"}, {"id": 2, "customer": None, "amount": "0.05"}]
EXACT = [row | {"amount": Decimal(row["amount"])} for row in ROWS]


def rows_of(db, topic="orders"):
    return [row for batch in db.topic(topic).read() for row in batch.to_pylist()]


def kept(db):
    return [(row["id"], row["customer"], str(row["amount"])) for row in rows_of(db)]


def arrow(rows):
    table = pa.Table.from_pylist(rows)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


BODIES = {
    "application/json": b'[{"id": 1, "customer": 7, "amount": "19.90"}, {"id": 2, "amount": 0.05}]',
    "application/x-ndjson": b'{"id": 1, "customer": 7, "amount": 19.90}\n\n{"id": 2, "amount": "0.05"}\n',
    "text/csv": b"id,customer,amount\r\n1,7,19.90\r\n2,,0.05\r\n",
    "application/vnd.apache.arrow.stream": arrow(EXACT),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("kind", BODIES)
def test_every_format_brings_the_same_rows(db, kind, packed):
    body, headers = BODIES[kind], {"Content-Type": kind}
    if packed:
        body, headers = gzip.compress(body), headers | {"Content-Encoding": "gzip"}
    with serving(db) as client:
        answer = client.post("/topics/orders", content=body, headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"position": 1, "rows": 2})
    assert kept(db) == [(1, 7, "19.90"), (2, None, "0.05")]


def test_a_request_id_makes_a_retry_harmless(db):
    with serving(db) as client:
        for _ in range(3):
            answer = client.post("/topics/orders", json=ROWS, headers={"Request-Id": "a"})
            assert answer.json() == {"position": 1, "rows": 2}
        other = client.post("/topics/orders", json=ROWS[:1], headers={"Request-Id": "a"})
        for _ in range(2):
            numbered = {"Producer": "web", "Sequence": "17"}
            assert client.post("/topics/orders", json=ROWS, headers=numbered).json()["position"] == 2
    assert other.status_code == 409
    assert other.json()["error"] == "request_reused"
    assert len(kept(db)) == 4


def test_a_row_that_does_not_fit_is_refused_with_its_place_and_nothing_is_written(db):
    with serving(db) as client:
        body = b'{"id": 1}\n{"id": 2, "amount": "1.234"}\n'
        answer = client.post("/topics/orders", content=body, headers=LINES)
        assert answer.status_code == 400
        assert answer.json()["error"] == "bad_row"
        assert (answer.json()["row"], answer.json()["column"]) == (2, "amount")
        for bad in (b"[1]", b'"x"', b"{", b"\xff", b'{"id": NaN}', b"[" * 100_000):
            refused = client.post("/topics/orders", content=bad, headers={"Content-Type": "application/json"})
            assert refused.status_code == 400, bad[:10]
        for kind in ("application/vnd.apache.arrow.stream", "text/csv"):
            refused = client.post("/topics/orders", content=b"\x00nonsense", headers={"Content-Type": kind})
            assert refused.status_code == 400
    assert kept(db) == []


def test_a_table_takes_rows_and_gives_them_up(db):
    with serving(db) as client:
        client.post("/topics/customers", json=[{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
        client.post("/topics/customers", json={"id": 1, "country": "AT"})
        answer = client.request("DELETE", "/topics/customers/rows", json=[{"id": 2}])
        assert answer.json() == {"position": 3, "rows": 1}
        asked = client.post("/ask", json={"sql": "SELECT id, country FROM customers"}).json()
        assert asked["rows"] == [{"id": 1, "country": "AT"}]
        facts = client.request("DELETE", "/topics/orders/rows", json=[{"id": 2}])
        assert facts.status_code == 400


def test_writes_to_several_topics_are_one_commit(db):
    writes = [
        {"topic": "orders", "rows": ROWS},
        {"topic": "customers", "rows": {"id": 7, "country": "CH"}, "delete": [{"id": 8}]},
    ]
    with serving(db) as client:
        assert client.post("/transactions", json={"writes": writes}).json() == {"position": 1, "rows": 4}
        bad = [writes[0], {"topic": "customers", "rows": {"id": "x"}}]
        assert client.post("/transactions", json={"writes": bad}).status_code == 400
        for wrong in ([1], [{"rows": []}], [{"topic": "orders", "what": 1}]):
            assert client.post("/transactions", json={"writes": wrong}).status_code == 400
    assert db.position == 1


def test_columns_that_were_added_meanwhile_are_taken(db):
    with serving(db) as client:
        client.post("/topics/orders", json=ROWS)
        with db.__class__(db.path, create=False, clock=None, config=db.config) as other:
            other.alter("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2), note STRING")
        answer = client.post("/topics/orders", json={"id": 3, "note": "new"})
    assert answer.status_code == 200
    assert rows_of(db)[-1]["note"] == "new"


def test_a_body_that_is_too_large_is_refused_before_it_is_read(db):
    with serving(db, Limits(max_body=1_000)) as client:
        said = client.post("/topics/orders", content=b" " * 2_000)
        assert said.status_code == 413

        def unsaid():
            for _ in range(100):
                yield b" " * 100

        assert client.post("/topics/orders", content=unsaid()).status_code == 413
        bomb = gzip.compress(b" " * 10_000_000)[:900]
        packed = client.post(
            "/topics/orders", content=gzip.compress(b" " * 20_000), headers={"Content-Encoding": "gzip"}
        )
        assert packed.status_code == 413
        cut = client.post("/topics/orders", content=bomb, headers={"Content-Encoding": "gzip"})
        assert cut.status_code in (400, 413)
        other = client.post("/topics/orders", content=b"x", headers={"Content-Encoding": "br"})
        assert other.status_code == 415
        kind = client.post("/topics/orders", content=b"x", headers={"Content-Type": "text/html"})
        assert kind.status_code == 415


def test_more_bodies_than_the_server_can_hold_are_told_to_come_again(db):
    begun, go = threading.Event(), threading.Event()

    def slow():
        yield b"[" + b" " * 900
        begun.set()
        go.wait(30)
        yield b"]"

    with serving(db, Limits(max_waiting=1_000)) as client:
        thread = threading.Thread(target=lambda: client.post("/topics/orders", content=slow()))
        thread.start()
        begun.wait(30)
        for _ in range(100):
            answer = client.post("/topics/orders", content=b" " * 200)
            if answer.status_code == 503:
                break
        go.set()
        thread.join(30)
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert client.post("/topics/orders", json=ROWS).status_code == 200


def test_a_full_topic_is_back_pressure(db):
    db.stream("jobs", "id BIGINT", when_full="block", capacity=2, block_timeout="100 ms")
    db.stream("drops", "id BIGINT", when_full="drop", capacity=2)
    with db.consumer("workers", ["jobs", "drops"]), serving(db) as client:
        for topic in ("jobs", "drops"):
            assert client.post(f"/topics/{topic}", json=[{"id": 1}, {"id": 2}]).status_code == 200
        full = client.post("/topics/jobs", json={"id": 3})
        assert (full.status_code, full.json()["error"]) == (429, "full")
        assert full.headers["Retry-After"]
        assert client.post("/topics/drops", json={"id": 3}).json()["position"] is None


def test_a_marker_moves_the_watermark(db):
    db.stream("clicks", "id BIGINT, at TIMESTAMP", event_time="at")
    with serving(db) as client:
        client.post("/topics/clicks", json={"id": 1, "at": "2026-01-01T00:00:00Z"})
        answer = client.post("/topics/clicks/marker", json={"before": "2026-01-02T00:00:00Z"})
        assert answer.json() == {"position": 2}
        assert client.post("/topics/clicks/marker", json={"before": "soon"}).status_code == 400
        (topic,) = [one for one in client.get("/status").json()["topics"] if one["name"] == "clicks"]
    assert topic["watermark"] == "2026-01-02T00:00:00Z"


def test_topics_are_made_altered_and_dropped(db):
    with serving(db) as client:
        made = client.put(
            "/topics/visits", json={"schema": "id BIGINT, at TIMESTAMP", "options": {"retain": "7 days"}}
        )
        assert made.status_code == 200
        assert made.json()["options"]["retain"] == 7 * 86_400_000_000
        table = {"kind": "table", "schema": "id BIGINT", "key": ["id"]}
        assert client.put("/topics/users", json=table).json()["key"] == ["id"]
        assert client.put("/topics/users", json={"kind": "table", "schema": "id BIGINT"}).status_code == 400
        changed = client.patch("/topics/visits", json={"options": {"comment": "who came"}})
        assert changed.json()["options"]["comment"] == "who came"
        assert client.delete("/topics/visits").json() == {"dropped": "visits"}
        assert client.delete("/topics/visits").status_code == 404
        names = [one["name"] for one in client.get("/topics").json()["topics"]]
    assert names == ["customers", "orders", "users"]

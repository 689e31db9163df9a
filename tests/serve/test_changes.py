"""Changes as server-sent events: a snapshot, every epoch, and where one left off."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.serve.conftest import LARGE
from tests.serve.serving import events, serving

import evert


def follow(client, view, **params):
    headers = params.pop("headers", {})
    return client.stream("GET", f"/views/{view}/changes", params=params, headers=headers)


def order(db, number, amount="100.00"):
    db.topic("orders").append({"id": number, "customer": 1, "amount": amount})
    db.refresh()


def test_a_snapshot_and_then_every_epoch(shop, client):
    with follow(client, "revenue") as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        found = events(response)
        first = next(found)
        assert first.kind == "snapshot"
        assert {row["country"] for row in first.data["rows"]} == {"CH", "DE"}
        order(shop, 1_001)
        changed = next(found)
        assert changed.kind == "delta"
        (came,), (went,) = changed.data["rows"], changed.data["gone"]
        assert float(came["revenue"]) - float(went["revenue"]) == 100
        assert changed.data["position"] == shop.views["revenue"].position
    with follow(client, "revenue", headers={"Last-Event-ID": first.id}) as response:
        again = next(events(response))
    assert (again.kind, again.data) == (changed.kind, changed.data)
    with follow(client, "revenue", after=str(first.data["position"])) as response:
        assert next(events(response)).data == changed.data


def test_without_a_snapshot_it_begins_with_the_next_change(shop, client):
    with follow(client, "large", snapshot="false") as response:
        found = events(response)
        time.sleep(0.3)
        order(shop, 1_002, "500.00")
        first = next(found)
    assert first.kind == "delta"
    assert first.data["rows"] == [{"id": 1_002, "amount": "500.00"}]


def test_a_large_snapshot_comes_in_pieces_and_only_the_last_can_be_gone_on_from(spark, tmp_path):
    with evert.open(tmp_path / "db") as db:
        db.stream("numbers", "n BIGINT")
        db.view("numbered", "SELECT n FROM numbers")
        db.topic("numbers").append([{"n": n} for n in range(2_500)])
        db.refresh()
        with serving(db) as client, follow(client, "numbered") as response:
            found = events(response)
            pieces = [next(found) for _ in range(3)]
        assert [len(piece.data["rows"]) for piece in pieces] == [1_000, 1_000, 500]
        assert [piece.data["more"] for piece in pieces] == [True, True, False]
        assert [piece.id is None for piece in pieces] == [True, True, False]
        assert {row["n"] for piece in pieces for row in piece.data["rows"]} == set(range(2_500))


def test_a_view_that_is_defined_anew_begins_anew(shop, client):
    with follow(client, "large") as response:
        found = events(response)
        last = next(found)
        shop.view("large", LARGE.replace("100", "150"), replace=True)
        shop.refresh()
        later = next(found)
        while later.kind == "progress":
            later = next(found)
        if later.kind == "delta":  # the feed goes on: rows below 150 went
            assert all(float(row["amount"]) < 150 for row in later.data["gone"])
        else:
            assert later.kind == "reset"
            assert next(found).kind == "snapshot"
    with follow(client, "large", headers={"Last-Event-ID": "999." + last.id.split(".")[1]}) as response:
        found = events(response)
        assert [next(found).kind, next(found).kind] == ["reset", "snapshot"]
    shop.view("large", LARGE, replace=True)
    shop.refresh()


@pytest.mark.parametrize("given", ["x", "1.2.3", "-1", "1.", "9" * 50])
def test_an_id_that_was_never_sent_is_refused(client, given):
    assert client.get("/views/revenue/changes", headers={"Last-Event-ID": given}).status_code == 400


def test_the_status_is_followed(shop, client):
    with client.stream("GET", "/status/changes") as response:
        found = events(response)
        first = next(found)
        order(shop, 1_003)
        later = next(found)
        while later.data["position"] == first.data["position"]:
            later = next(found)
    assert later.kind == "status"


def test_many_clients_of_which_some_do_not_read_cost_the_server_nothing(shop, client):
    """200 clients, 20 of which never read: the others get everything, and memory stays where it was."""
    port = client.base_url.port
    text = b"GET /views/revenue/changes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    def connected():
        made = socket.create_connection(("127.0.0.1", port))
        made.sendall(text)
        return made

    order(shop, 2_000)
    clients = [connected() for _ in range(200)]
    quick = clients[20:]
    try:
        for one in quick:
            one.settimeout(30)
            assert b"snapshot" in _until(one, b"\n\n", 2)
        before = memory()
        for number in range(20):
            order(shop, 2_001 + number)
        last = f"id: {shop.views['revenue'].definition.feed}.{shop.views['revenue'].position}\n".encode()
        for one in quick:
            assert last in _until(one, last, 1)
        grown = memory() - before
        assert grown < 100 << 20
    finally:
        for one in clients:
            with closing(one):
                pass


def memory():
    """The anonymous memory of this process, server included."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in line]
    return int(line.split()[1]) * 1024


def _until(connection, mark, times):
    found = b""
    while found.count(mark) < times:
        piece = connection.recv(65_536)
        assert piece, found
        found += piece
    return found


def test_a_view_that_stops_says_so_and_goes_on(spark, tmp_path):
    with evert.open(tmp_path / "db") as db:
        db.stream("numbers", "n BIGINT")
        db.view("inverse", "SELECT n, 10 DIV n AS part FROM numbers")
        db.topic("numbers").append({"n": 5})
        db.refresh()
        with serving(db) as client, follow(client, "inverse") as response:
            found = events(response)
            assert next(found).kind == "snapshot"
            db.topic("numbers").append({"n": 0})
            db.refresh()
            told = next(found)
            while told.kind == "progress":
                told = next(found)
            assert told.kind == "stopped"
            assert told.data["error"] == "stopped"
            assert client.get("/views/inverse").status_code == 503
            states = {one["name"]: one["state"] for one in client.get("/status").json()["views"]}
            assert states == {"inverse": "stopped"}

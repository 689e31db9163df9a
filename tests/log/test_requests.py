"""Ids of requests and producers: kept for a time, refused rather than guessed at after it."""

from __future__ import annotations

import pytest

import evert
from evert.errors import BadOption, RequestForgotten, RequestReused


@pytest.fixture
def db(tmp_path, clock):
    with evert.open(tmp_path / "db", clock=clock, ids_kept="1 day", background=False) as made:
        made.stream("t", "n INT")
        made.table("u", "id INT", key="id")
        yield made


def test_a_producers_sequences_may_come_out_of_order(db):
    topic = db.topic("t")
    positions = {n: topic.append({"n": n}, producer="p", sequence=n) for n in (3, 1, 2)}
    assert {n: topic.append({"n": n}, producer="p", sequence=n) for n in (1, 2, 3)} == positions


def test_a_sequence_older_than_what_is_kept_is_refused_and_a_newer_one_is_taken(db, clock):
    topic = db.topic("t")
    topic.append({"n": 5}, producer="p", sequence=5)
    clock.advance("2 days")
    db.maintain()
    for sequence in (4, 5):
        with pytest.raises(RequestForgotten) as raised:
            topic.append({"n": sequence}, producer="p", sequence=sequence)
        assert "above 5" in raised.value.hint
    topic.append({"n": 6}, producer="p", sequence=6)
    assert [row["n"] for batch in topic.read() for row in batch.to_pylist()] == [5, 6]


def test_a_request_id_is_known_for_as_long_as_ids_are_kept(db, clock):
    topic = db.topic("t")
    first = topic.append({"n": 1}, request_id="r")
    clock.advance("23 hours")
    db.maintain()
    assert topic.append({"n": 1}, request_id="r") == first
    clock.advance("2 days")
    db.maintain()
    assert topic.append({"n": 1}, request_id="r") > first


def test_a_delete_is_not_taken_for_an_upsert_of_the_same_key(db):
    users = db.topic("u")
    users.upsert({"id": 1}, request_id="r")
    with pytest.raises(RequestReused):
        users.delete(1, request_id="r")


def test_the_same_rows_for_another_topic_are_other_content(db):
    db.stream("v", "n INT")
    db.topic("t").append({"n": 1}, request_id="r")
    with pytest.raises(RequestReused):
        db.topic("v").append({"n": 1}, request_id="r")


def test_a_transaction_is_one_request(db):
    def transfer():
        with db.transaction(request_id="r") as tx:
            tx.append("t", {"n": 1})
            tx.upsert("u", {"id": 1})
        return tx.position

    assert transfer() == transfer()
    assert db.position == 1


@pytest.mark.parametrize(
    "options",
    [
        {"request_id": ""},
        {"request_id": 5},
        {"producer": "p"},
        {"sequence": 1},
        {"producer": "p", "sequence": -1},
        {"producer": "p", "sequence": 1, "request_id": "r"},
    ],
)
def test_half_an_id_is_refused(db, options):
    with pytest.raises(BadOption):
        db.topic("t").append({"n": 1}, **options)

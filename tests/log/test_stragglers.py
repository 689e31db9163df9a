"""Event time: marks of sources, watermarks of streams, and what comes too late."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest

import evert
from evert.errors import BadOption, Full, Refused, TopicExists, UnknownColumn
from evert.log import watermarks
from evert.log.stragglers import Arrival

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def at(minutes):
    return NOON + timedelta(minutes=minutes)


def clicks(db, **options):
    given = {"event_time": "at", "lateness": "5 minutes"} | options
    return db.stream("clicks", "n INT, at TIMESTAMP, phone STRING", **given)


def send(stream, *minutes, phone="a"):
    return stream.append([{"n": n, "at": None if n is None else at(n), "phone": phone} for n in minutes])


def kept(db, name="clicks"):
    return [row["n"] for batch in db.topic(name).read() for row in batch.to_pylist()]


def test_the_watermark_is_the_latest_event_less_the_lateness_and_never_goes_back(db):
    stream = clicks(db)
    assert stream.watermark is None
    send(stream, 3, 10, 7)
    assert stream.watermark == at(5)
    send(stream, 8)
    assert stream.watermark == at(5)
    send(stream, None)
    assert stream.watermark == at(5)
    send(stream, 11)
    assert stream.watermark == at(6)


def test_late_events_correct_the_views_unless_they_are_to_be_dropped(db):
    stream = clicks(db)
    send(stream, 10)
    send(stream, 4)
    assert kept(db) == [10, 4]
    assert [(s.events, s.late, s.dropped) for s in stream.sources()] == [(2, 1, 0)]
    assert "clicks.late" not in db.topics


def test_an_event_on_the_mark_is_on_time_and_one_before_it_is_set_aside(db):
    stream = clicks(db, late="drop")
    send(stream, 10, 1)
    assert kept(db) == [10, 1], "events of one commit are measured by what came before it"
    position = stream.append(
        [
            {"n": 5, "at": at(5), "phone": None},
            {"n": 4, "at": at(5) - timedelta(microseconds=1), "phone": None},
        ]
    )
    assert kept(db) == [10, 1, 5]
    assert kept(db, "clicks.late") == [4]
    (batch,) = db.topic("clicks.late").read()
    assert batch.column("_position").to_pylist() == [position]
    assert [(s.events, s.late, s.dropped) for s in stream.sources()] == [(4, 1, 1)]


def test_a_fast_source_makes_nobody_else_late(db):
    stream = clicks(db, late="drop", source="phone")
    send(stream, 100, phone="fast")
    send(stream, 1, phone="slow")
    send(stream, 2, phone="slow")
    assert kept(db) == [100, 1, 2]
    assert [(s.name, s.mark) for s in stream.sources()] == [
        ("slow", _micros(at(-3))),
        ("fast", _micros(at(95))),
    ]
    assert stream.watermark == at(95), "it had gone on before the slow one came"


def test_the_watermark_waits_for_the_slowest_until_that_is_idle(db, clock):
    stream = clicks(db, source="phone", idle_after="1 minute")
    send(stream, 10, phone="a")
    send(stream, 10, phone="b")
    send(stream, 30, phone="b")
    assert stream.watermark == at(5)
    clock.advance(59)
    send(stream, 31, phone="b")
    assert stream.watermark == at(5)
    clock.advance(1)
    db.maintain()
    assert stream.watermark == at(26)
    assert [(s.name, s.idle) for s in stream.sources()] == [("a", True), ("b", False)]
    send(stream, 12, phone="a")
    assert stream.watermark == at(26)
    send(stream, 40, phone="b")
    assert stream.watermark == at(26), "the one that is back counts again"


def test_when_all_are_silent_the_one_ahead_is_not_held_back(db, clock):
    stream = clicks(db, source="phone", idle_after="1 minute")
    send(stream, 10, phone="a")
    send(stream, 30, phone="b")
    clock.advance(3600)
    head = db.position
    db.maintain()
    assert stream.watermark == at(25)
    assert db.position == head + 1
    db.maintain()
    assert db.position == head + 1, "nothing is left to say"


def test_markers_move_watermarks_without_events(db):
    stream = clicks(db, late="drop", source="phone")
    position = stream.no_more_before(at(0))
    assert (position, stream.watermark) == (1, at(0))
    send(stream, -1, 2, phone="a")
    assert (kept(db), kept(db, "clicks.late")) == ([2], [-1])
    stream.no_more_before(at(20), source="a")
    assert stream.watermark == at(20)
    send(stream, 19, phone="a")
    assert kept(db, "clicks.late") == [-1, 19]
    db.no_more_before("clicks", at(10), source="a")
    assert stream.watermark == at(20)


def test_what_is_older_than_forget_after_is_set_aside_whatever_the_policy(db):
    stream = clicks(db, forget_after="1 hour")
    send(stream, 100)
    send(stream, 35, 34)
    assert kept(db) == [100, 35]
    assert kept(db, "clicks.late") == [34]
    assert [(s.late, s.dropped) for s in stream.sources()] == [(2, 1)]


def test_nobody_sends_what_is_before_the_horizon(db):
    stream = clicks(db, forget_after="1 hour")
    send(stream, 100)
    send(stream, 34, phone="new")
    assert kept(db, "clicks.late") == [34]
    send(stream, 35, phone="new")
    stream.replay_late()
    assert kept(db) == [100, 35]


def test_a_stream_stays_with_the_horizon_that_it_has(db):
    stream = clicks(db)
    send(stream, 100)
    stream.alter(forget_after="1 hour")
    stream.alter(forget_after=None)
    stream.alter(forget_after="1 hour")
    send(stream, 101)
    stream.alter("n INT, at TIMESTAMP, phone STRING, other TIMESTAMP")
    for change in ({"forget_after": None}, {"event_time": "other"}):
        with pytest.raises(Refused, match="views of clicks have forgotten what is before its horizon"):
            stream.alter(**change)
    stream.alter(forget_after="2 hours")
    send(stream, 35, phone="new")
    assert kept(db, "clicks.late") == [35]
    send(stream, 110)
    send(stream, 36, phone="another")
    assert kept(db) == [100, 101, 110, 36]


def test_what_was_set_aside_can_be_let_in_once(db):
    stream = clicks(db, late="drop", forget_after="1 hour")
    send(stream, 100)
    send(stream, 90, 1, 80)
    assert kept(db) == [100]
    assert stream.replay_late() == 3
    assert kept(db) == [100, 90, 80]
    assert kept(db, "clicks.late") == [90, 1, 80]
    assert [(s.events, s.late, s.dropped) for s in stream.sources()] == [(4, 3, 3)]
    assert stream.replay_late() == 0
    assert kept(db) == [100, 90, 80]


def test_the_watermark_of_every_position_is_known_for_good(db, tmp_path, clock):
    stream = clicks(db)
    positions = [send(stream, minute) for minute in (10, 9, 20, 30)]
    db.maintain()
    with evert.open(tmp_path / "db", clock=clock, background=False) as again:
        topic = again.definition("clicks")
        with again.catalog.read() as tx:
            found = [watermarks.watermark(tx, topic.id, position) for position in (0, *positions)]
        assert found == [None, *(_micros(at(minute)) for minute in (5, 5, 15, 25))]
        assert again.topic("clicks").watermark == at(25)


def test_a_retry_moves_nothing_and_sets_nothing_aside_twice(db):
    stream = clicks(db, late="drop")
    send(stream, 10)
    for _ in range(2):
        stream.append(
            [{"n": 1, "at": at(1), "phone": None}, {"n": 9, "at": at(9), "phone": None}], request_id="r"
        )
    assert kept(db) == [10, 9]
    assert kept(db, "clicks.late") == [1]
    assert [(s.events, s.dropped) for s in stream.sources()] == [(3, 1)]


def test_all_rows_late_is_a_commit_too(db):
    stream = clicks(db, late="drop")
    send(stream, 10)
    assert send(stream, 1, 2) == 2
    assert (kept(db), kept(db, "clicks.late")) == ([10], [1, 2])


def test_writers_side_by_side_agree_on_what_is_late(db):
    stream = clicks(db, late="drop", lateness=0)

    def write(first):
        for minute in range(first, 200, 4):
            send(stream, minute)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    high, late = -1, []
    both = sorted(
        (row["_position"], row["n"], name)
        for name in ("clicks", "clicks.late")
        for batch in db.topic(name).read()
        for row in batch.to_pylist()
    )
    for _, minute, name in both:
        late.append((minute < high) == (name == "clicks.late"))
        high = max(high, minute)
    assert len(both) == 200
    assert all(late)


def test_large_appends_and_other_kinds_of_columns(db):
    stream = db.stream("sensors", "id BIGINT, at TIMESTAMP_NTZ", event_time="AT", source="id", late="drop")
    size = 60_000
    first = [{"id": n % 3, "at": datetime(2026, 1, 1) + timedelta(seconds=n)} for n in range(size)]
    stream.append(first)
    stream.append(first[-9:])
    assert stream.options.event_time == "at"
    assert sum(batch.num_rows for batch in stream.read()) == size + 3
    assert sum(batch.num_rows for batch in db.topic("sensors.late").read()) == 6
    assert [s.name for s in stream.sources()] == ["0", "1", "2"]


def test_columns_that_are_added_are_added_to_the_stragglers_too(db):
    stream = clicks(db, late="drop")
    stream.alter("n INT, at TIMESTAMP, phone STRING, page STRING")
    stream.append({"n": 10, "at": at(10), "phone": None, "page": "x"})
    stream.append({"n": 1, "at": at(1), "phone": None, "page": "y"})
    (batch,) = db.topic("clicks.late").read()
    assert batch.column("page").to_pylist() == ["y"]


def test_time_can_be_given_to_a_stream_that_has_none(db):
    stream = db.stream("clicks", "n INT, at TIMESTAMP, phone STRING")
    send(stream, 1)
    stream.alter(event_time="at", late="drop")
    send(stream, 10)
    send(stream, 9)
    assert (kept(db), kept(db, "clicks.late")) == ([1, 10], [9])


def test_what_the_time_of_streams_is_like_can_be_asked(db, clock):
    clicks(db, late="drop", source="phone")
    db.stream("plain", "n INT")
    send(db.topic("clicks"), 10)
    send(db.topic("clicks"), 1, 2, 11)
    (told,) = db.times()
    assert (told.topic, told.watermark, told.sources, told.idle) == ("clicks", at(6), 1, 0)
    assert (told.events, told.late, told.dropped, told.recently) == (4, 2, 2, 2)
    assert told.rising
    clock.advance(7200)
    assert [(one.recently, one.rising) for one in db.times()] == [(0, False)]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"event_time": "n"}, BadOption, "event_time is a TIMESTAMP"),
        ({"event_time": "when"}, UnknownColumn, "there is no column 'when'"),
        ({"event_time": "at", "source": "at"}, BadOption, "source is a column of texts"),
        ({"event_time": None}, BadOption, "lateness needs event_time"),
        ({"late": "maybe"}, BadOption, "late is correct or drop"),
        ({"lateness": -1}, BadOption, "negative"),
        ({"forget_after": 10**15}, BadOption, "longer than time itself"),
    ],
)
def test_options_that_make_no_sense_are_refused(db, options, error, says):
    with pytest.raises(error) as raised:
        clicks(db, **options)
    assert says in str(raised.value)


def test_tables_have_event_time_but_no_lateness(db):
    db.table("rates", "id INT, since TIMESTAMP", key="id", event_time="since")
    with pytest.raises(BadOption):
        db.table("prices", "id INT, since TIMESTAMP", key="id", event_time="since", lateness="1 hour")
    with pytest.raises(BadOption):
        db.no_more_before("rates", at(0))
    db.stream("plain", "n INT")
    with pytest.raises(BadOption):
        db.no_more_before("plain", at(0))


def test_the_stream_of_stragglers_goes_with_its_stream_and_not_before(db):
    clicks(db, late="drop")
    with pytest.raises(Refused) as raised:
        db.drop("clicks.late")
    assert "stragglers of clicks" in str(raised.value)
    db.drop("clicks")
    assert db.topics == {}
    stream = db.stream("clicks", "at TIMESTAMP_NTZ", event_time="at", late="drop")
    assert (stream.watermark, stream.sources()) == (None, [])
    stream.alter(late="correct")
    db.drop("clicks.late")
    assert list(db.topics) == ["clicks"]


def test_stragglers_of_a_writer_that_knows_an_older_schema_fit_the_newer_one(db, tmp_path, clock):
    stream = clicks(db, late="drop")
    send(stream, 10)
    with evert.open(tmp_path / "db", clock=clock, background=False) as other:
        other.topic("clicks").alter("n BIGINT, at TIMESTAMP, phone STRING, page STRING")
        other.topic("clicks.late").alter("n BIGINT, at TIMESTAMP, phone STRING, page STRING, why STRING")
    send(stream, 1)
    stream.append([{"n": n, "at": at(1), "phone": "a"} for n in range(60_000)])
    (first, *_) = db.topic("clicks.late").read()
    assert first.slice(0, 1).to_pylist()[0] | {"_ingested_at": None} == {
        "n": 1,
        "at": at(1),
        "phone": "a",
        "page": None,
        "why": None,
        "_position": 2,
        "_partition": 0,
        "_offset": 0,
        "_ingested_at": None,
    }
    db.maintain()
    assert len(kept(db, "clicks.late")) == 60_001


def test_a_change_of_the_policy_holds_for_those_who_opened_the_stream_before(db, tmp_path, clock):
    stream = clicks(db, late="drop")
    send(stream, 10)
    with evert.open(tmp_path / "db", clock=clock, background=False) as other:
        other.topic("clicks").alter(late="correct")
        send(stream, 1)
        assert (kept(db), kept(db, "clicks.late")) == ([10, 1], [])
        other.topic("clicks").alter("n INT, at TIMESTAMP, phone STRING, at2 TIMESTAMP", event_time="at2")
        send(stream, 2)
    assert kept(db) == [10, 1, 2]


def test_a_late_batch_that_only_corrects_is_not_parted_twice(db, monkeypatch):
    stream = clicks(db, lateness=0)
    seen = []
    plain = Arrival.again
    monkeypatch.setattr(Arrival, "again", lambda self, tx: seen.append(self) or plain(self, tx))
    look = Arrival.look

    def overtaken(tx, topic, rows, accepts=False):
        found = look(tx, topic, rows, accepts)
        if rows.num_rows == 2:
            other = threading.Thread(target=send, args=(stream, 30))
            other.start()
            other.join()
        return found

    monkeypatch.setattr(Arrival, "look", staticmethod(overtaken))
    send(stream, 10, 20)
    assert len(seen) == 2
    assert [(s.events, s.late) for s in stream.sources()] == [(3, 2)]
    stream.alter(late="drop")
    send(stream, 25, 40)
    assert (kept(db)[-2:], kept(db, "clicks.late")) == ([30, 40], [25])


def test_sources_are_not_waited_for_that_nobody_can_name_any_more(db):
    stream = clicks(db, lateness=0)
    send(stream, 10)
    stream.alter(source="phone")
    send(stream, 20, phone="a")
    assert stream.watermark == at(20)


def test_stragglers_are_not_let_in_where_they_would_be_dropped_again(db):
    stream = clicks(db, late="drop", lateness=0, when_full="drop", capacity=1)
    send(stream, 10)
    send(stream, 1)
    consumer = db.consumer("g", "clicks")
    with pytest.raises(Full):
        stream.replay_late()
    consumer.poll()
    consumer.commit()
    assert stream.replay_late() == 1
    assert kept(db) == [10, 1]
    consumer.close()


def test_a_name_that_stragglers_need_must_be_free(db):
    db.table("clicks.late", "n INT", key="n")
    with pytest.raises(TopicExists):
        clicks(db, late="drop")
    stream = clicks(db)
    with pytest.raises(TopicExists):
        stream.alter(late="drop")


def test_watermarks_of_events_that_are_gone_go_too_but_for_the_last(db, clock):
    stream = clicks(db, retain="1 hour")
    for minute in (10, 20, 30):
        send(stream, minute)
        db.maintain()
    clock.advance(7200)
    send(stream, 40)
    db.maintain()
    topic = db.definition("clicks")
    with db.catalog.read() as tx:
        rows = tx.all("SELECT position, value FROM watermarks WHERE topic = ?", topic.id)
        assert rows == [(3, _micros(at(25))), (4, _micros(at(35)))]
        assert watermarks.watermark(tx, topic.id, 3) == _micros(at(25))


def _micros(moment):
    return int(moment.timestamp() * 1_000_000)

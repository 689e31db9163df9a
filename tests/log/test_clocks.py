"""Clocks of devices: what they are off by, and the time that it really was."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log import devices

import evert
from evert.errors import BadOption, BadRow, BadSchema, SchemaChangeRefused, TopicExists
from evert.log.corrections import Correction
from evert.testing import ManualClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
COLUMNS = "device STRING, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP, value DOUBLE"
COLUMN_NAMES = ("device", "occurred", "sent", "received")
HOUR = timedelta(hours=1)


def telemetry(db, columns=COLUMNS, **options):
    given = {"source": "device", "occurred": "occurred", "sent": "sent", "received": "received"} | options
    return db.stream("telemetry", columns, **given)


def said(minute, *, ahead=HOUR, device="a", delay=0.05, kept=0.0):
    """An event at a minute, of a device whose clock is ahead."""
    at = NOON + timedelta(minutes=minute)
    sent = at + timedelta(seconds=kept)
    return {
        "device": device,
        "occurred": at + ahead,
        "sent": sent + ahead,
        "received": sent + timedelta(seconds=delay),
        "value": minute,
    }


def rows(stream):
    return [row for batch in stream.read() for row in batch.to_pylist()]


def off(row):
    """How far the corrected time of an event is from the truth, in seconds."""
    return abs((row["corrected_time"] - NOON).total_seconds() - row["value"] * 60)


def known(stream, ahead=HOUR, minutes=10):
    """Let a device send until its clock is known."""
    for minute in range(minutes):
        stream.append(said(minute, ahead=ahead, delay=0.05 + minute % 3 / 100))


TRUTH = COLUMNS.replace("value DOUBLE", "truth TIMESTAMP")


def test_the_corrected_time_of_simulated_devices_is_within_the_stated_error(db):
    stream = telemetry(db, TRUTH)
    came = devices.day(seed=11, size=120)
    for start in range(0, came.num_rows, 1000):
        stream.append(came.slice(start, 1000))
    found = pa.Table.from_batches(stream.read(columns=["device", "truth", "corrected_time", "clock_error"]))
    away, error = measured(found)
    assert found.num_rows == came.num_rows == 66_000
    assert np.mean(away <= error) > 0.999
    assert np.median(error) < 0.065
    assert np.quantile(error, 0.9) < 0.13
    fine = pa.table({"device": found.column("device"), "fine": pa.array(away <= error)})
    by_device = fine.group_by("device").aggregate([("fine", "mean")]).column("fine_mean")
    assert min(by_device.to_pylist()) > 0.98


def test_where_the_quickest_messages_take_next_to_nothing_the_error_is_that_of_the_jitter(db):
    stream = telemetry(db, TRUTH, min_delay="1 ms")
    came = devices.day(seed=12, size=60, near=True)
    for start in range(0, came.num_rows, 1000):
        stream.append(came.slice(start, 1000))
    away, error = measured(pa.Table.from_batches(stream.read()))
    assert np.mean(away <= error) > 0.99
    assert np.median(error) < 0.01


@pytest.mark.parametrize("size", [37, 400, 100_000])
def test_however_the_appends_are_cut_the_error_holds(db, size):
    stream = telemetry(db, TRUTH)
    came = devices.day(seed=5, size=8)
    for start in range(0, came.num_rows, size):
        stream.append(came.slice(start, size))
    away, error = measured(pa.Table.from_batches(stream.read()))
    assert np.mean(away <= error) > 0.98
    assert np.median(error) < 0.15


def measured(found):
    """How far from the truth the corrected times are, and how far they say that they may be, in seconds."""
    micros = {name: np.asarray(found.column(name).cast(pa.int64())) for name in ("truth", "corrected_time")}
    away = np.abs(micros["corrected_time"] - micros["truth"]) / 1e6
    return away, np.asarray(found.column("clock_error"))


def test_the_offset_of_a_clock_has_a_sign_and_an_error_that_shrinks_as_messages_come(db):
    stream = telemetry(db)
    errors = []
    for minute in range(12):
        stream.append([said(minute), said(minute, device="b", ahead=-HOUR, delay=0.06 + minute % 2 / 50)])
        errors.append([clock.error for clock in stream.clocks()])
    first, second = stream.clocks()
    assert (first.device, second.device) == ("a", "b")
    assert abs(first.offset - HOUR) < first.error < timedelta(seconds=0.1)
    assert abs(second.offset + HOUR) < second.error < timedelta(seconds=0.2)
    assert errors[0][0] > timedelta(seconds=10) > errors[1][0] > errors[6][0] > errors[11][0]
    assert (first.jumps, first.events) == (0, 12)
    assert first.seen == NOON + timedelta(minutes=11, seconds=0.05)
    assert db.clocks("telemetry") == [first, second]


def test_without_a_column_the_time_of_the_append_is_when_events_came(db, clock):
    stream = db.stream(
        "telemetry",
        "n INT, device BIGINT, at TIMESTAMP_NTZ, sent TIMESTAMP_NTZ",
        source="device",
        occurred="at",
        sent="sent",
        min_delay="10 milliseconds",
    )
    for n in range(12):
        clock.advance(60)
        now = datetime.fromtimestamp(clock.now() / 1e6, UTC).replace(tzinfo=None)
        sent = now + timedelta(hours=2) - timedelta(milliseconds=5)
        stream.append({"n": n, "device": 7, "at": sent - timedelta(seconds=3), "sent": sent})
    (found,) = stream.clocks()
    assert found.device == "7"
    assert abs(found.offset - timedelta(hours=2)) < found.error < timedelta(milliseconds=20)
    last = rows(stream)[-1]
    real = last["_ingested_at"] - timedelta(seconds=3, milliseconds=5)
    assert abs((last["corrected_time"] - real).total_seconds()) <= last["clock_error"] < 0.02


def test_an_event_that_lacks_a_time_or_a_device_stays_as_it_is(db):
    stream = telemetry(db)
    known(stream)
    stream.append([said(20) | {name: None} for name in ("device", "sent", "received", "occurred")])
    stream.append(said(21) | {"sent": datetime(9999, 1, 1, tzinfo=UTC)})
    *missing, far = rows(stream)[-5:]
    assert [row["corrected_time"] for row in missing] == [row["occurred"] for row in missing]
    assert [row["clock_error"] for row in [*missing, far]] == [None] * 5
    assert far["corrected_time"] == far["occurred"]
    assert [clock.events for clock in stream.clocks()] == [10]


def test_a_clock_that_is_set_forward_is_known_at_once(db):
    stream = telemetry(db)
    known(stream)
    ahead = HOUR + timedelta(seconds=30)
    for minute in range(10, 18):
        stream.append(said(minute, ahead=ahead))
    after = rows(stream)[10:]
    assert all(off(row) <= row["clock_error"] for row in after)
    assert off(after[0]) < 1
    assert after[-1]["clock_error"] < 0.2
    assert [clock.jumps for clock in stream.clocks()] == [1]


def test_a_clock_that_is_set_back_is_known_when_messages_stay_late(db):
    stream = telemetry(db)
    known(stream)
    for minute in range(10, 18):
        stream.append(said(minute, ahead=-HOUR, delay=0.05 + minute % 2 / 100))
    after = rows(stream)[10:]
    assert all(off(row) <= row["clock_error"] for row in after)
    assert [row["clock_error"] > 3600 for row in after] == [True] * 4 + [False] * 4
    assert after[-1]["clock_error"] < 0.5
    assert [clock.jumps for clock in stream.clocks()] == [1]


def test_slow_messages_are_no_jump(db):
    stream = telemetry(db)
    known(stream)
    for number, delay in enumerate((20, 3, 47, 9, 30, 12, 70)):
        stream.append(said(10 + number, delay=delay))
    stream.append(said(20))
    slow = rows(stream)[10:-1]
    assert max(map(off, slow)) < 0.1
    assert [clock.jumps for clock in stream.clocks()] == [0]
    assert stream.clocks()[0].error < timedelta(seconds=0.1)


def test_events_that_were_kept_are_of_the_clock_that_they_occurred_by(db):
    stream = telemetry(db)
    known(stream)
    before = [said(minute) for minute in (10, 11, 12)]
    for minute in range(20, 32):
        stream.append(said(minute, ahead=3 * HOUR))
    sent = NOON + timedelta(minutes=33)
    late = [row | {"sent": sent + 3 * HOUR, "received": sent + timedelta(seconds=0.05)} for row in before]
    stream.append(late)
    found = rows(stream)[-3:]
    assert max(map(off, found)) < 0.2
    assert all(off(row) <= row["clock_error"] < 1 for row in found)


def test_events_that_were_kept_while_the_clock_was_set_back_are_of_the_former_clock(db):
    stream = telemetry(db)
    known(stream)
    for minute in range(20, 32):
        stream.append(said(minute, ahead=-HOUR, delay=0.05 + minute % 3 / 100))
    sent = NOON + timedelta(minutes=33)
    stream.append(said(12) | {"sent": sent - HOUR, "received": sent + timedelta(seconds=0.05)})
    assert off(rows(stream)[-1]) <= rows(stream)[-1]["clock_error"] < 1


def test_an_event_that_was_sent_before_it_occurred_is_off_by_at_least_that_much(db):
    stream = telemetry(db)
    known(stream)
    stream.append(said(12, kept=-90))
    assert rows(stream)[-1]["clock_error"] > 90


def test_events_that_flow_control_drops_tell_nothing_of_their_clock(db):
    stream = telemetry(db, when_full="drop", capacity=1)
    db.consumer("g", "telemetry").close()
    stream.append(said(0))
    assert stream.append(said(1)) is None
    assert [clock.events for clock in stream.clocks()] == [1]


def test_a_drift_is_followed_and_told(db):
    stream = telemetry(db)
    for minute in range(0, 600, 10):
        ahead = HOUR + timedelta(seconds=minute * 60 * 40e-6)
        stream.append(said(minute, ahead=ahead, delay=0.05 + minute % 30 / 1000))
    (found,) = stream.clocks()
    assert abs(found.drift - 40) < 5
    assert off(rows(stream)[-1]) < 0.1
    stream.append(said(1200, ahead=HOUR + timedelta(seconds=1200 * 60 * 40e-6)))
    assert off(rows(stream)[-1]) <= rows(stream)[-1]["clock_error"] < 0.5


def test_the_state_outlives_the_process_and_goes_with_the_topic(db, tmp_path, clock):
    stream = telemetry(db)
    known(stream)
    with evert.open(tmp_path / "db", clock=clock, background=False) as again:
        assert again.clocks("telemetry") == stream.clocks() != []
        again.topic("telemetry").append(said(10))
    assert off(rows(stream)[-1]) <= rows(stream)[-1]["clock_error"] < 0.2
    db.drop("telemetry")
    assert telemetry(db).clocks() == []


def test_a_retry_changes_no_clock(db):
    stream = telemetry(db)
    for _ in range(2):
        for minute in range(5):
            stream.append(said(minute), producer="p", sequence=minute)
    assert [clock.events for clock in stream.clocks()] == [5]
    assert len(rows(stream)) == 5


def test_writers_side_by_side_bring_one_clock_on(db):
    stream = telemetry(db)

    def write(first):
        for minute in range(first, 100, 4):
            stream.append([said(minute), said(minute, device=f"own {first}", ahead=-HOUR)])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {clock.device: clock for clock in stream.clocks()}
    assert [found[name].events for name in ("a", "own 0", "own 3")] == [100, 25, 25]
    assert abs(found["a"].offset - HOUR) < found["a"].error < timedelta(seconds=0.2)
    assert all(off(row) <= row["clock_error"] for row in rows(stream))


def test_a_commit_that_was_overtaken_loses_no_message_of_the_other(db, monkeypatch):
    stream = telemetry(db)
    look = Correction.look

    def overtaken(tx, topic, given):
        found = look(tx, topic, given)
        if given.num_rows == 2:
            other = threading.Thread(target=stream.append, args=(said(5),))
            other.start()
            other.join()
        return found

    monkeypatch.setattr(Correction, "look", staticmethod(overtaken))
    stream.append([said(6), said(7, device="b")])
    assert [(clock.device, clock.events) for clock in stream.clocks()] == [("a", 2), ("b", 1)]


def test_many_devices_at_once_are_as_each_alone(db):
    came = devices.day(seed=3, size=12)
    together = telemetry(db, TRUTH)
    for start in range(0, came.num_rows, 500):
        together.append(came.slice(start, 500))
    found = pa.Table.from_batches(together.read())
    for name in ("d1", "d7"):
        alone = db.stream(
            name, together.schema, source="device", occurred="occurred", sent="sent", received="received"
        )
        for start in range(0, came.num_rows, 500):
            some = came.slice(start, 500)
            alone.append(some.filter(pa.compute.equal(some.column("device"), name)))
        mine = found.filter(pa.compute.equal(found.column("device"), name))
        other = pa.Table.from_batches(alone.read())
        for column in ("corrected_time", "clock_error"):
            assert mine.column(column).equals(other.column(column))


def test_the_columns_of_its_own_are_not_appended(db):
    stream = telemetry(db)
    for wrong in (
        said(0) | {"corrected_time": NOON},
        pa.table({"device": ["a"], "clock_error": [1.0]}),
    ):
        with pytest.raises(BadRow) as raised:
            stream.append(wrong)
        assert "is filled by Evert" in str(raised.value)
        assert raised.value.hint == "leave out corrected_time and clock_error"
    with pytest.raises(BadRow) as raised:
        stream.append(said(0) | {"clock": 1})
    assert "is not a column" in str(raised.value)


def test_rows_come_as_arrow_and_pandas_and_columns_can_be_chosen(db):
    pandas = pytest.importorskip("pandas")
    stream = telemetry(db, event_time="Corrected_Time")
    assert stream.options.event_time == "corrected_time"
    stream.append(pa.Table.from_pylist([said(minute) for minute in range(5)]))
    stream.append(pandas.DataFrame([said(minute) for minute in range(5, 10)]))
    read = pa.Table.from_batches(stream.read(columns=["clock_error", "value"]))
    assert read.column("value").to_pylist() == list(range(10))
    assert read.column("clock_error").null_count == 0
    assert abs(stream.watermark - (NOON + timedelta(minutes=9))) < timedelta(seconds=0.1)


def test_large_appends_partitions_and_keys(db):
    stream = telemetry(db, key="device", partitions=3)
    came = [said(n / 600, device=f"d{n % 7}", delay=0.05 + n % 11 / 1000) for n in range(60_000)]
    stream.append(came)
    db.maintain()
    found = rows(stream)
    assert len(found) == 60_000
    assert np.mean([off(row) <= row["clock_error"] for row in found]) > 0.999
    assert sum(clock.events for clock in stream.clocks()) == 60_000


def test_a_schema_can_be_changed_as_ever(db, tmp_path, clock):
    stream = telemetry(db, late="drop", event_time="corrected_time")
    known(stream)
    with evert.open(tmp_path / "db", clock=clock, background=False) as other:
        other.alter("telemetry", COLUMNS + ", page STRING")
        stream.append(said(10))
        other.topic("telemetry").append(said(11) | {"page": "x"})
        names = [*COLUMNS.split(", "), "page STRING"]
        own = ["corrected_time TIMESTAMP", "clock_error DOUBLE"]
        assert other.topic("telemetry").schema.split(", ") == [*names[:5], *own, names[5]]
        other.alter("telemetry", ", ".join([*names[:5], *own, names[5], "more INT"]))
        stream.append(said(12) | {"more": 1})
    telemetry(db)
    telemetry(db, stream.schema)
    found = rows(stream)[-3:]
    assert [(row["page"], row["more"], off(row) < 0.1) for row in found] == [
        (None, None, True),
        ("x", None, True),
        (None, 1, True),
    ]
    stream.append(said(1))
    (late,) = db.topic("telemetry.late").read()
    assert off(late.to_pylist()[0]) < 0.1


def test_clocks_can_be_given_to_a_stream_and_taken_from_it_beside_its_writers(db, tmp_path, clock):
    stream = db.stream("telemetry", COLUMNS)
    times = {"source": "device", "occurred": "occurred", "sent": "sent", "received": "received"}
    stream.append(said(0))
    with evert.open(tmp_path / "db", clock=clock, background=False) as other:
        other.alter("telemetry", **times)
        stream.append(said(1))
        assert [row["clock_error"] is None for row in rows(stream)] == [True, False]
        other.topic("telemetry").append(said(2))
        other.alter("telemetry", **dict.fromkeys(times))
        stream.append(said(3))
        assert [row["corrected_time"] is None for row in rows(stream)] == [True, False, False, True]
        other.alter("telemetry", **times)
        assert other.clocks("telemetry") == []
        stream.append([said(n) for n in (4, 5)])
    assert [clock.events for clock in stream.clocks()] == [2]


def test_a_writer_of_before_does_without_columns_that_tell_the_time_now(db, tmp_path, clock):
    stream = telemetry(db)
    stream.append(said(0))
    with evert.open(tmp_path / "db", clock=clock, background=False) as other:
        other.alter("telemetry", COLUMNS + ", left TIMESTAMP", sent="left")
        stream.append(said(1))
        other.topic("telemetry").append(said(2) | {"left": said(2)["sent"]})
    assert [row["clock_error"] is None for row in rows(stream)] == [False, True, False]


MOMENTS = st.one_of(
    st.none(),
    st.sampled_from([NOON, NOON + HOUR, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]),
    st.datetimes(datetime(1969, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.floats(-1e4, 1e4).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["a", "", None]), MOMENTS, MOMENTS, MOMENTS), max_size=30),
        max_size=6,
    )
)
def test_whatever_devices_say_there_is_a_time_and_an_error(tmp_path_factory, appends):
    with evert.open(tmp_path_factory.mktemp("any"), clock=ManualClock(), background=False) as made:
        stream = telemetry(made)
        for some in appends:
            stream.append([dict(zip(COLUMN_NAMES, row, strict=True)) for row in some])
        found = rows(stream)
        assert len(found) == sum(map(len, appends))
        for row in found:
            whole = all(row[name] is not None for name in COLUMN_NAMES)
            assert (row["corrected_time"] is None) == (row["occurred"] is None)
            assert row["clock_error"] is None or (whole and 0 <= row["clock_error"] < float("inf"))
        known = sum(row["clock_error"] is not None for row in found)
        assert sum(one.events for one in stream.clocks()) == known


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"sent": None}, BadOption, "occurred needs occurred= and sent="),
        ({"occurred": None, "sent": None}, BadOption, "received needs occurred= and sent="),
        ({"source": None}, BadOption, "need source="),
        ({"sent": "value"}, BadOption, "sent is a TIMESTAMP"),
        ({"sent": "corrected_time"}, BadOption, "is filled by Evert"),
        ({"lateness": "1 minute"}, BadOption, "lateness needs event_time"),
        ({"key": "clock_error"}, BadSchema, "cannot be part of the key"),
        ({"columns": COLUMNS + ", corrected_time STRING"}, BadSchema, "is a column that Evert adds itself"),
        ({"columns": COLUMNS + ", corrected_time TIMESTAMP"}, BadSchema, "is a column that Evert adds"),
    ],
)
def test_options_that_make_no_sense_are_refused(db, options, error, says):
    with pytest.raises(error) as raised:
        telemetry(db, **options)
    assert says in str(raised.value)


def test_tables_and_streams_without_clocks_have_none(db):
    with pytest.raises(BadOption):
        db.table("t", COLUMNS, key="device", source="device", occurred="occurred", sent="sent")
    db.stream("plain", COLUMNS)
    with pytest.raises(BadOption):
        db.clocks("plain")
    telemetry(db)
    with pytest.raises(TopicExists):
        telemetry(db, sent="received")
    with pytest.raises(SchemaChangeRefused):
        db.alter("telemetry", "device STRING, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP")

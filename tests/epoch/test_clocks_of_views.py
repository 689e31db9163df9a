"""Windows by the time that devices say next to windows by the time that it really was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.epoch.orders import right

import evert
from evert.testing import ManualClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AHEAD = {"a": timedelta(hours=1), "b": timedelta(minutes=-20), "c": timedelta(0)}
BY_MINUTE = (
    "SELECT window.start AS begins, count(*) AS n, sum(value) AS total"
    " FROM telemetry GROUP BY window({}, '5 minutes')"
)


def reports(minute):
    """What three devices send at a minute: at the tenth second of it, by clocks that are an hour apart."""
    at = NOON + timedelta(minutes=minute, seconds=10)
    return [
        {
            "device": device,
            "occurred": at + ahead,
            "sent": at + ahead + timedelta(milliseconds=20),
            "received": at + timedelta(milliseconds=60 + minute % 3),
            "value": minute,
        }
        for device, ahead in AHEAD.items()
    ]


def streamed(db, **options):
    columns = "device STRING, occurred TIMESTAMP, sent TIMESTAMP, received TIMESTAMP, value BIGINT"
    times = {"source": "device", "occurred": "occurred", "sent": "sent", "received": "received"}
    return db.stream("telemetry", columns, **times, **options)


def test_windows_by_the_corrected_time_put_together_what_happened_together(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as db:
        telemetry = streamed(db)
        real = db.view("real", BY_MINUTE.format("corrected_time"))
        said = db.view("said", BY_MINUTE.format("occurred"))
        sure = db.view(
            "sure",
            "SELECT device, count(*) AS n, min(clock_error) AS least, max(corrected_time - occurred) AS most"
            " FROM telemetry WHERE clock_error < 1 GROUP BY device",
        )
        for minute in range(0, 20, 4):
            telemetry.append([row for each in range(minute, minute + 4) for row in reports(each)])
            db.refresh(timeout=120)
            assert right(db)
        assert sorted((row["begins"], row["n"]) for row in real.rows()) == [
            (NOON + timedelta(minutes=start), 15) for start in range(0, 20, 5)
        ]
        assert len(said.rows()) == 12
        found = {row["device"]: row for row in sure.rows()}
        assert found["a"]["n"] >= 12
        assert found["a"]["least"] < 0.2
        assert abs(found["a"]["most"] + AHEAD["a"]) < timedelta(milliseconds=200)
        assert db.explain("real").recomputes is None
        assert db.explain("sure").recomputes is None


def test_a_view_that_is_built_later_or_in_other_epochs_has_the_same_rows(spark, tmp_path):
    query = "SELECT device, occurred, corrected_time, clock_error FROM telemetry"
    with evert.open(tmp_path / "db", background=False) as db:
        telemetry = streamed(db)
        first = db.view("first", query)
        for minute in range(12):
            telemetry.append(reports(minute))
            if minute % 5 == 0:
                db.refresh(timeout=120)
        db.maintain()
        second = db.view("second", query)
        db.refresh(timeout=120)
        assert right(db)
        assert _sorted(first.rows()) == _sorted(second.rows())
        read = [
            {name: row[name] for name in ("device", "occurred", "corrected_time", "clock_error")}
            for batch in telemetry.read()
            for row in batch.to_pylist()
        ]
        assert _sorted(first.rows()) == _sorted(read)


def test_watermark_and_stragglers_go_by_the_corrected_time(spark, tmp_path):
    clock = ManualClock()
    with evert.open(tmp_path / "db", clock=clock, background=False) as db:
        telemetry = streamed(db, event_time="corrected_time", lateness="1 minute", late="drop")
        real = db.view("real", BY_MINUTE.format("corrected_time"))
        for minute in range(15):
            telemetry.append(reports(minute))
        assert db.topic("telemetry.late").sizes().rows == 0
        assert abs(telemetry.watermark - (NOON + timedelta(minutes=13, seconds=10))) < timedelta(seconds=1)
        kept = timedelta(minutes=13)
        telemetry.append(
            [row | {"sent": row["sent"] + kept, "received": row["received"] + kept} for row in reports(2)]
        )
        (late,) = db.topic("telemetry.late").read()
        assert late.num_rows == 3
        assert all(
            abs(row["corrected_time"] - (NOON + timedelta(minutes=2, seconds=10))) < timedelta(seconds=1)
            for row in late.to_pylist()
        )
        db.refresh(timeout=120)
        assert sum(row["n"] for row in real.rows()) == 45
        assert telemetry.replay_late() == 3
        assert [clock.events for clock in telemetry.clocks()] == [16, 16, 16]
        db.refresh(timeout=120)
        assert right(db)
        assert sum(row["n"] for row in real.rows()) == 48
        again = [row for batch in telemetry.read() for row in batch.to_pylist()][-3:]
        assert [row["corrected_time"] for row in again] == late.column("corrected_time").to_pylist()


def _sorted(rows):
    return sorted(rows, key=str)

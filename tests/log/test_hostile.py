"""Input that nobody should send: each has a clear answer, and nothing lands outside the folder."""

from __future__ import annotations

import math
import shutil
import subprocess
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests.missing import skip_unless

import evert
from evert.errors import BadName, BadRow, BadSchema, DiskFull, Refused, TopicExists


@pytest.fixture
def db(tmp_path):
    with evert.open(tmp_path / "inside" / "db", background=False) as made:
        yield made
    outside = {path for path in tmp_path.rglob("*") if path.is_file() and "inside" not in path.parts}
    assert outside == set()


def values(topic):
    return [row for batch in topic.read() for row in batch.to_pylist()]


@pytest.mark.parametrize(
    "name", ["../../etc", "/etc/passwd", "a/../../b", "..", "a\\b", "x; DROP TABLE topics", "a\nb", "'", "%s"]
)
def test_names_that_try_to_reach_elsewhere_are_refused(db, name):
    with pytest.raises(BadName):
        db.stream(name, "n INT")
    with pytest.raises(evert.EvertError):
        db.topic(name)


def test_a_name_that_differs_in_case_only_is_refused_and_names_the_other(db):
    db.stream("Clicks", "n INT")
    with pytest.raises(TopicExists, match="Clicks"):
        db.stream("clicks", "n INT")
    db.topic("CLICKS").append({"n": 1})
    assert values(db.topic("clicks"))[0]["n"] == 1


def test_columns_that_differ_in_case_only_are_refused(db):
    with pytest.raises((BadName, BadSchema)):
        db.stream("t", "n INT, N INT")


def test_a_row_of_fifty_megabytes_goes_in_and_comes_out(db):
    topic = db.stream("t", "data BINARY, text STRING")
    blob, text = bytes(range(256)) * 100_000, "é" * 12_500_000
    topic.append({"data": blob, "text": text})
    topic.append({"text": "small"})
    db.maintain()
    first, second = values(topic)
    assert first["data"] == blob
    assert first["text"] == text
    assert second["text"] == "small"


def test_deep_nesting_works_to_a_limit_and_is_refused_beyond_it(db):
    deep = "INT"
    for _ in range(20):
        deep = f"STRUCT<x: {deep}>"
    topic = db.stream("t", f"v {deep}")
    value = 7
    for _ in range(20):
        value = {"x": value}
    topic.append({"v": value})
    assert values(topic)[0]["v"] == value
    with pytest.raises(BadSchema):
        db.stream("u", "v " + "ARRAY<" * 5000 + "INT" + ">" * 5000)


def test_numbers_that_are_none_come_back_as_they_were(db):
    topic = db.stream("t", "d DOUBLE, f FLOAT")
    topic.append([{"d": math.nan, "f": math.inf}, {"d": -0.0, "f": -math.inf}, {"d": 5e-324}])
    db.maintain()
    rows = values(topic)
    assert math.isnan(rows[0]["d"])
    assert rows[0]["f"] == math.inf
    assert math.copysign(1, rows[1]["d"]) == -1
    assert rows[2]["d"] == 5e-324


def test_dates_at_both_ends_come_back_and_beyond_them_are_refused(db):
    topic = db.stream("t", "d DATE, at TIMESTAMP, n TIMESTAMP_NTZ")
    ends = [
        {"d": date(1, 1, 1), "at": datetime(1, 1, 1, tzinfo=UTC), "n": datetime(1, 1, 1)},
        {
            "d": date(9999, 12, 31),
            "at": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            "n": datetime(9999, 12, 31, 23, 59, 59, 999999),
        },
    ]
    topic.append(ends)
    db.maintain()
    found = [{name: row[name] for name in ("d", "at", "n")} for row in values(topic)]
    assert found == ends
    beyond = pa.table({"d": pa.array([2**30], pa.int32()).cast(pa.date32())})
    with pytest.raises(BadRow):
        topic.append(beyond)


def test_text_that_is_not_utf8_is_refused_with_its_row(db):
    topic = db.stream("t", "s STRING")
    buffers = [
        None,
        pa.py_buffer(b"\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00"),
        pa.py_buffer(b"a\xff"),
    ]
    broken = pa.Array.from_buffers(pa.string(), 2, buffers)
    with pytest.raises(BadRow) as raised:
        topic.append(pa.table({"s": broken}))
    assert raised.value.details["row"] == 1
    for text in ("\ud800", "ok\udfff"):
        with pytest.raises(BadRow):
            topic.append([{"s": "fine"}, {"s": text}])
    assert values(topic) == []


@pytest.mark.parametrize(
    "rows", [[1, 2], ["text"], [None], 5, [{"m": 1}], [{"n": "one"}], [{"n": 2**70}], [{"n": 1.5}]]
)
def test_rows_of_the_wrong_shape_write_nothing(db, rows):
    topic = db.stream("t", "n BIGINT")
    with pytest.raises(Refused):
        topic.append(rows)
    assert values(topic) == []


def test_a_bad_row_in_a_transaction_keeps_the_whole_transaction_out(db):
    db.stream("t", "n BIGINT")
    db.stream("u", "n BIGINT")

    def transact():
        with db.transaction() as tx:
            tx.append("t", {"n": 1})
            tx.append("u", {"n": "two"})

    with pytest.raises(BadRow):
        transact()
    assert values(db.topic("t")) == []
    assert db.position == 0


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 8 MB."""
    where = tmp_path / "inside"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "evert-test", str(where)]
    skip_unless(None if shutil.which("mount") else "no small disk can be made here: there is no mount")
    mounted = subprocess.run(command, capture_output=True, text=True)
    skip_unless(f"no small disk can be made here: {mounted.stderr.strip()}" if mounted.returncode else None)
    yield where
    subprocess.run(["umount", "--lazy", str(where)], check=True)


def test_a_full_disk_refuses_appends_cleanly_and_takes_them_again_when_there_is_room(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(3_000_000))
    with evert.open(small_disk / "db", direct_rows=1_000, background=False) as db:
        topic = db.stream("t", "n BIGINT, text STRING")
        acknowledged = 0
        for size in (10, 2_000):
            rows = [{"n": n, "text": f"{n:>40}" * 5} for n in range(size)]
            refused = None
            while refused is None:
                try:
                    topic.append(rows)
                    acknowledged += size
                except DiskFull as error:
                    refused = error
            assert refused.hint
            assert sum(batch.num_rows for batch in topic.read()) == acknowledged
        ballast.unlink()
        topic.append({"n": -1})
        assert sum(batch.num_rows for batch in topic.read()) == acknowledged + 1
    with evert.open(small_disk / "db", background=False) as db:
        assert [row["n"] for row in values(db.topic("t"))][-1] == -1

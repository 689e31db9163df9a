"""Values of every type go through chains and kernels unchanged."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
from tests.plan.harness import Running, plain

from evert.plan.planner import Planner

INSTANT = pa.field("element", pa.timestamp("us", tz="UTC"))
SCHEMA = pa.schema(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("real", pa.float32()),
        ("wide", pa.decimal128(38, 10)),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("clock", pa.time64("us")),
        ("instant", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("took", pa.duration("us")),
        (
            "nested",
            pa.struct(
                [("a", pa.int32()), ("b", pa.list_(pa.field("element", pa.timestamp("us", tz="UTC"))))]
            ),
        ),
        ("lookup", pa.map_(pa.string(), pa.struct([("x", pa.float64())]))),
    ]
)
AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
ROWS = [
    (
        True, -1, 300, 1.5, Decimal("12345678901234567890.0123456789"), b"\x00\xff", date(1969, 12, 31),
        time(23, 59, 59, 999999), AT, AT.replace(tzinfo=None), timedelta(days=-1, microseconds=7),
        {"a": 1, "b": [AT, None]}, [("k", {"x": 2.5})],
    ),
    (
        False, 5, -7, -0.0, Decimal(3), b"", date(2026, 1, 1), time(0), AT, None, timedelta(0),
        {"a": None, "b": []}, [],
    ),
    (None,) * len(SCHEMA),
]  # fmt: skip
QUERIES = [
    "select * from odd",
    "select * from odd union all select * from odd where tiny > 0",
    "select * except (lookup), count(*) as n from odd group by all",
    "select day, min(clock) as a, max(local) as b, max(bytes) as c, min(took) as d, max(wide) as e, "
    "min(flag) as f, max(real) as g, min(small) as h from odd group by day",
    "select x.nested, y.lookup, x.took from odd x join odd y on x.nested = y.nested and x.clock = y.clock",
    "select sum(tiny) as a, sum(wide) as b, sum(real) as c, sum(took) as d, avg(small) as e, "
    "avg(wide) as f from odd",
    "select day, e from odd lateral view outer explode(nested.b) as e",
    "select cast(clock as time(3)) as c, count(*) as n from odd group by 1",
    "select took - interval '1' second as t, "
    "took + interval '1' hour as u, clock > time'12:00:00' as late from odd",
]


def test_every_type_comes_back_as_it_went_in(spark, tmp_path):
    planner = Planner(spark)
    planner.relations.register("odd", "stream", SCHEMA, "t1", (), True)
    plans = [planner.plan(query) for query in QUERIES]
    assert [plan.recomputes for plan in plans] == [None] * len(QUERIES)
    running = Running(plans, spark, tmp_path)
    columns = [pa.array([row[at] for row in ROWS], field.type) for at, field in enumerate(SCHEMA)]
    names = [f"c{at}" for at in range(len(SCHEMA))]
    for _ in range(2):
        running.epoch({"t1": pa.table([*columns, pa.array([1] * len(ROWS))], names=[*names, "__w"])})
    odd = pa.table([pa.concat_arrays([column, column]) for column in columns], schema=SCHEMA)
    session = spark.newSession()
    for number, query in enumerate(QUERIES):
        assert running.rows[number] == plain(session, {"odd": odd}, query), query

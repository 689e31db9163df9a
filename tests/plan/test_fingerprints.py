"""Equal state has an equal name, whoever planned it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pyspark.sql import functions as f
from tests.plan import udfs
from tests.plan.queries import INCREMENTAL, RECOMPUTED
from tests.plan.relations import planner as make_planner

NAMES = (
    "sums",
    "three tables",
    "explode twice",
    "lambdas",
    "rollup",
    "values",
    "hopping windows",
    "full join with residual",
    "not in with nulls",
    "two windows",
    "session windows",
    "percentile",
    "latest by key",
    "top with offset",
    "scalar subqueries",
)
CHOSEN = [
    *(INCREMENTAL[name] for name in NAMES),
    *(udfs.projected, udfs.pandas_aggregate),
    RECOMPUTED["a recursive query"],
]


def prints(planner):
    return [[node.fingerprint for node in planner.plan(query).nodes] for query in CHOSEN]


def test_fingerprints_are_equal_across_sessions_and_plannings(planner, spark):
    first = prints(planner)
    assert prints(planner) == first
    assert prints(make_planner(spark.newSession())) == first


def test_fingerprints_are_equal_across_processes(planner):
    code = (
        "import json\n"
        "from evert.epoch.spark import session\n"
        "from tests.plan.relations import planner\n"
        "from tests.plan.test_fingerprints import prints\n"
        "spark = session()\n"
        "spark.range(7).selectExpr('id + 1 as a').count()\n"
        "print(json.dumps(prints(planner(spark))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout.splitlines()[-1]) == prints(planner)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("select price + 1 as a from bid", "select b.price + 1 as other from bid as b"),
        (
            "select channel, sum(price) as s from bid group by channel",
            "with t as (select * from bid) select channel, sum(price) as x from t group by channel",
        ),
        ("select transform(tags, x -> x) as t from bid", "select transform(tags, y -> y) as t from bid"),
        (
            "select id from person union all select seller from auction",
            "select seller from auction union all select id from person",
        ),
    ],
)
def test_names_do_not_matter(planner, one, two):
    assert planner.plan(one).fingerprint == planner.plan(two).fingerprint


DIFFERENT = [
    "select price + 1 as a from bid",
    "select price + 2 as a from bid",
    "select price + 1D as a from bid",
    "select bidder + 1 as a from bid",
    "select try_add(price, 1) as a from bid",
    "select price + 1 as a from bid where price > 1",
    "select price + 1 as a from bid union all select price + 1 from bid",
    "select reserve + 1 as a from auction",
    "select distinct price + 1 as a from bid",
    "select sum(price) as a from bid",
    "select sum(price) as a from bid group by channel",
    "select count(price) as a from bid group by channel",
    "select try_sum(price) as a from bid group by channel",
    "select price in (1,2,3,4,5,6,7,8,9,10,11,12,13) as a from bid",
    "select price in (1,2,3,4,5,6,7,8,9,10,11,12,14) as a from bid",
    "select array_contains(array(1L, 2L), price) as a from bid",
    "select array_contains(array(1L, 3L), price) as a from bid",
    "select array_contains(map_keys(map('x', 1)), channel) as a from bid",
    "select array_contains(map_keys(map('y', 1)), channel) as a from bid",
    "select b.price from bid b join auction a on a.id = b.auction",
    "select b.price from bid b join auction a on a.id <=> b.auction",
    "select b.price from bid b join auction a on a.seller = b.auction",
    "select k from bid join (values (1, 'a')) as v(k, c) on c = channel",
    "select k from bid join (values (2, 'a')) as v(k, c) on c = channel",
    "select price from bid limit 1",
    "select price from bid limit 2",
    "select price from bid limit 1 offset 1",
    "select price from bid order by price limit 1",
    "select price from bid order by price desc limit 1",
    "select price from bid order by price nulls last limit 1",
    "select price from bid qualify row_number() over (partition by auction order by at) = 1",
    "select price from bid qualify rank() over (partition by auction order by at) = 1",
    "select sum(price) over (partition by auction) as a from bid",
    "select sum(price) over (partition by auction order by at) as a from bid",
    "select sum(price) over (partition by bidder) as a from bid",
    "select sum(price) over (partition by auction order by at rows 1 preceding) as a from bid",
    "select percentile(price, 0.5) as a from bid group by auction",
    "select percentile(price, 0.6) as a from bid group by auction",
    "select b.price from bid b left join auction a on a.id = b.auction",
    "select price from bid where auction in (select id from auction)",
    "select price from bid where auction not in (select id from auction)",
    "select price from bid where not exists (select 1 from auction where id = bid.auction)",
    "select count(distinct price) as a from bid group by channel",
    "select date_format(at, 'yyyy') as a from bid",
    "select date_format(at, 'MM') as a from bid",
    "select encode(channel, 'utf-8') as a from bid",
    "select encode(channel, 'utf-16') as a from bid",
]


def test_another_meaning_has_another_fingerprint(planner):
    seen = {}
    for query in DIFFERENT:
        fingerprint = planner.plan(query).fingerprint
        assert fingerprint not in seen, (query, seen[fingerprint])
        seen[fingerprint] = query


def test_the_body_of_a_function_in_python_is_part_of_the_meaning(planner):
    def of(body, *, arrow=False):
        made = f.udf(body, "bigint", useArrow=arrow)
        return planner.plan(lambda spark: spark.table("bid").select(made("price").alias("a"))).fingerprint

    def one(x):
        return x + 1

    def two(x):
        return x + 2

    two.__name__, two.__qualname__ = one.__name__, one.__qualname__
    assert of(one) == of(one)
    assert of(one) != of(two)
    assert of(one) != of(one, arrow=True)


def test_settings_are_part_of_the_meaning(spark, planner):
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    query = "select hour(at) as h from bid"
    assert make_planner(other).plan(query).fingerprint != planner.plan(query).fingerprint


def test_the_key_is_part_of_the_output(planner):
    query = "select id, seller from auction"
    assert planner.plan(query).fingerprint != planner.plan(query, key=["id"]).fingerprint
    assert planner.plan(query).nodes[0].fingerprint == planner.plan(query, key=["id"]).nodes[0].fingerprint


def test_another_session_that_is_active_does_not_matter(spark, planner):
    first = prints(planner)
    other = spark.newSession()
    other.conf.set("spark.sql.ansi.enabled", "false")
    other.createDataFrame([(1,)], "a int")
    assert prints(planner) == first

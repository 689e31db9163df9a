"""Sketches in views: merged where rows only come, computed anew where they change, right within their error."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import evert
from evert import sketches

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
VIEWS = {
    "hll": "SELECT who, hll_sketch_estimate(hll_sketch_agg(id)) AS n, count(*) AS c FROM visits GROUP BY who",
    "everybody": "SELECT hll_sketch_estimate(hll_sketch_agg(id, 10)) AS n, max(id) AS m FROM visits",
    "theta": "SELECT window(at, '1 hour') AS w, theta_sketch_estimate(theta_sketch_agg(id)) AS n FROM visits"
    " GROUP BY 1",
    "kll": "SELECT who, kll_sketch_get_quantile_double(kll_sketch_agg_double(v), 0.5D) AS p, min(v) AS least"
    " FROM visits GROUP BY who",
    "ninety": "SELECT kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(id, 400), 0.9D) AS p FROM visits",
    "most": "SELECT approx_top_k_estimate(approx_top_k_accumulate(who, 100), 2) AS t FROM visits",
    "bits": "SELECT bitmap_bucket_number(id) AS b, bitmap_count(bitmap_construct_agg(bitmap_bit_position(id))) AS n"
    " FROM visits GROUP BY 1",
    "minutes": "SELECT window(at, '10 minutes') AS w, hll_sketch_agg(id) AS s, kll_sketch_agg_double(v) AS q"
    " FROM visits GROUP BY 1",
    "hours": "SELECT window(w.start, '1 hour') AS h, hll_sketch_estimate(hll_union_agg(s, false)) AS n,"
    " kll_sketch_get_quantile_double(kll_merge_agg_double(q), 0.5D) AS p FROM minutes GROUP BY 1",
}


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db") as made:
        made.stream("visits", "id BIGINT, who STRING, at TIMESTAMP, v DOUBLE")
        yield made


def visit(db, count, seed):
    chance = random.Random(seed)
    rows = [
        {
            "id": chance.randrange(20_000),
            "who": chance.choice("aaabbc"),
            "at": NOON + timedelta(seconds=600 * seed + chance.randrange(600)),
            "v": chance.random(),
        }
        for _ in range(count)
    ]
    db.topic("visits").append(rows)
    return rows


def only(db, name):
    (row,) = db.views[name].rows()
    return row


@pytest.mark.timeout(900)
def test_sketches_are_merged_and_right_within_their_error(db):
    for name, query in VIEWS.items():
        db.view(name, query)
    rows = []
    for seed in range(4):
        rows += visit(db, 6_000, seed)
        db.refresh(timeout=300)
    assert [proof.view for proof in db.prove() if not proof.holds] == []
    ids = {row["id"] for row in rows}
    assert only(db, "everybody")["m"] == max(ids)
    assert abs(only(db, "everybody")["n"] / len(ids) - 1) < 3 * 1.04 / 2**5
    for row in db.views["hll"].rows():
        mine = [one["id"] for one in rows if one["who"] == row["who"]]
        assert row["c"] == len(mine)
        assert abs(row["n"] / len(set(mine)) - 1) < 3 * 1.04 / 2**6
    assert abs(only(db, "theta")["n"] / len(ids) - 1) < 3 / 2**6
    for row in db.views["kll"].rows():
        mine = [one["v"] for one in rows if one["who"] == row["who"]]
        assert abs(sum(value <= row["p"] for value in mine) / len(mine) - 0.5) < 0.03
        assert row["least"] == min(mine)
    assert abs(sum(row["id"] <= only(db, "ninety")["p"] for row in rows) / len(rows) - 0.9) < 0.02
    assert [one["item"] for one in only(db, "most")["t"]] == ["a", "b"]
    assert sum(row["n"] for row in db.views["bits"].rows()) == len(ids)
    assert abs(only(db, "hours")["n"] / len(ids) - 1) < 3 * 1.04 / 2**6


def test_what_is_kept_is_the_sketch_and_not_the_rows(db):
    db.view("everybody", VIEWS["everybody"])
    for seed in range(4):
        visit(db, 2_000, seed)
        db.refresh()
    assert "[n1, incremental]" in str(db.explain("everybody"))
    with db.catalog.read() as tx:
        kept = tx.one("SELECT sum(r.rows) FROM runs r JOIN nodes n ON n.id = r.node WHERE n.name <> 'output'")
    assert kept == (1,)


def test_a_view_of_nothing_has_the_row_that_spark_has(db):
    db.view("everybody", VIEWS["everybody"])
    db.refresh()
    assert only(db, "everybody") == {"n": 0, "m": None}


def test_over_rows_that_change_a_sketch_is_computed_anew(db):
    db.table("users", "id BIGINT, country STRING", key="id")
    query = "SELECT country, hll_sketch_estimate(hll_sketch_agg(id)) AS n FROM users GROUP BY country"
    db.view("countries", query)
    assert "per key" in str(db.explain("countries"))
    db.topic("users").upsert([{"id": n, "country": "CH" if n % 3 else "DE"} for n in range(30)])
    db.refresh()
    db.topic("users").delete([{"id": n} for n in range(15)])
    db.refresh()
    assert {row["country"]: row["n"] for row in db.views["countries"].rows()} == {"CH": 10, "DE": 5}


def test_columns_of_sketches_are_not_compared_and_all_others_are(db):
    db.view("hll", VIEWS["hll"])
    db.view(
        "above", "SELECT n + 1 AS more, c FROM (SELECT who, n, c FROM hll) UNION ALL SELECT 1.0D, 2 FROM hll"
    )
    db.view("plain", "SELECT count(*) AS n FROM visits")
    visit(db, 10, 1)
    db.refresh()
    found = {proof.view: proof.estimates for proof in db.prove()}
    assert found == {"hll": ("n",), "above": (), "plain": ()}


def test_membership_and_counts_in_views_of_functions(db):
    @db.view
    def known(spark):
        users = sketches.bloom_filter(expected=1_000, error=0.01)
        return spark.table("visits").groupBy("who").agg(users("id").alias("ids"))

    @db.view
    def asked(spark):
        pairs = spark.table("known").crossJoin(spark.range(0, 40_000, 1_000).withColumnRenamed("id", "x"))
        return pairs.select("who", "x", sketches.may_contain("ids", "x").alias("maybe"))

    @db.view
    def counts(spark):
        made = spark.table("visits").selectExpr("count_min_sketch(id, 0.001D, 0.99D, 7) AS sketch")
        return made.select("sketch", sketches.counted("sketch", _long(spark, 5)).alias("fives"))

    rows = visit(db, 900, 1)
    rows += [{"id": 5, "who": "a", "at": NOON, "v": 0.0}] * 40
    db.topic("visits").append(rows[900:])
    db.refresh(timeout=300)
    for row in db.views["known"].rows():
        mine = {one["id"] for one in rows if one["who"] == row["who"]}
        found = sketches.Bloom.load(row["ids"])
        assert all(found.may_contain(id) for id in mine)
        assert sum(found.may_contain(id) for id in range(30_000, 40_000)) < 300
    assert all(row["maybe"] in (True, False) for row in db.views["asked"].rows())
    right = sum(row["id"] == 5 for row in rows)
    assert right <= only(db, "counts")["fives"] <= right + len(rows) // 500
    assert all(proof.holds for proof in db.prove())


def _long(spark, value):
    from pyspark.sql import functions as f

    return f.lit(value).cast("bigint")

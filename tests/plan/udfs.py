"""Queries with functions in Python, of every kind that Spark has."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType, LongType

twice = f.udf(lambda x: None if x is None else x * 2, LongType())


@f.pandas_udf(LongType())
def pandas_twice(x: pd.Series) -> pd.Series:
    return x * 2


@f.arrow_udf(LongType())
def arrow_twice(x: pa.Array) -> pa.Array:
    return pc.multiply(x, 2)


@f.pandas_udf(DoubleType())
def mean(x: pd.Series) -> float:
    return x.mean()


def projected(spark):
    return spark.table("auction").select("id", twice("reserve").alias("r"))


def filtered(spark):
    return spark.table("auction").where(twice("reserve") > 20)


def filtered_around(spark):
    frame = spark.table("auction").where("reserve > 3").select("id", twice("reserve").alias("r"))
    return frame.where("r > 20")


def joined_by(spark):
    people = spark.table("person").withColumnRenamed("id", "person")
    return spark.table("auction").join(people, twice("seller") == f.col("person") * 2)


def joined_where(spark):
    people = spark.table("person").withColumnRenamed("id", "person")
    over = twice(f.col("reserve") - f.col("person")) > 10
    return spark.table("auction").join(people, (f.col("seller") == f.col("person")) & over)


def joined_left_by(spark):
    people = spark.table("person").withColumnRenamed("id", "person")
    over = (twice("seller") == twice(f.col("person"))) & (twice("reserve") > 20)
    return spark.table("auction").join(people, over, "left")


def joined_anti_by(spark):
    people = spark.table("person").select(f.col("id").alias("person"))
    return spark.table("auction").join(people, twice("seller") == f.col("person") * 2, "anti")


def beside_a_subquery(spark):
    most = spark.table("bid").agg(f.max("price")).scalar()
    return spark.table("auction").select("id", twice(f.col("reserve") - most).alias("r"), most.alias("most"))


def joined_left_where(spark):
    people = spark.table("person").withColumnRenamed("id", "person")
    return spark.table("auction").join(people, twice(f.col("reserve") - f.col("person")) > 10, "left")


def inside_an_aggregate(spark):
    frame = spark.table("auction").groupBy("category")
    return frame.agg(f.sum(twice("reserve")).alias("s"), f.count_distinct(twice("seller")).alias("n"))


def around_an_aggregate(spark):
    return spark.table("auction").groupBy("category").agg(twice(f.sum("reserve")).alias("s"))


def grouped_by(spark):
    return spark.table("auction").groupBy(twice("category").alias("k")).agg(f.count("*").alias("n"))


def inside_an_unusual_aggregate(spark):
    return spark.table("auction").groupBy("category").agg(f.median(twice("reserve")).alias("m"))


def around_an_unusual_aggregate(spark):
    whole = f.median("reserve").cast("bigint")
    return spark.table("auction").groupBy("category").agg(twice(whole).alias("m"))


def with_pandas(spark):
    return spark.table("auction").select("id", pandas_twice(pandas_twice("reserve")).alias("r"))


def with_arrow(spark):
    return spark.table("auction").select("id", arrow_twice("reserve").alias("r"))


def with_both(spark):
    return spark.table("auction").select("id", twice(pandas_twice("reserve")).alias("r"))


def pandas_aggregate(spark):
    return spark.table("auction").groupBy("category").agg(mean("reserve").alias("m"))


def pandas_aggregate_of_all(spark):
    return spark.table("auction").agg(mean("reserve").alias("m"))


def pandas_window(spark):
    over = Window.partitionBy("category")
    return spark.table("auction").select("id", mean("reserve").over(over).alias("m"))


def pandas_window_of_a_range(spark):
    over = Window.partitionBy("category").orderBy("reserve").rangeBetween(-4, 2)
    return spark.table("auction").select("id", mean("reserve").over(over).alias("m"))


def inside_a_window(spark):
    over = Window.partitionBy("category")
    return spark.table("auction").select("id", f.sum(twice("reserve")).over(over).alias("s"))


def around_a_window(spark):
    over = Window.partitionBy("category")
    return spark.table("auction").select("id", twice(f.sum("reserve").over(over)).alias("s"))


def top_by(spark):
    return spark.table("auction").orderBy(twice("reserve").desc(), "id").limit(3).select("id")


def exploded(spark):
    return spark.table("bid").select(f.explode(f.array(twice("price"), "price")).alias("e"))


def in_one_branch(spark):
    frame = spark.table("auction")
    return frame.select(f.when(f.col("reserve") > 5, twice("reserve")).otherwise(0).alias("r"))


def united(spark):
    return spark.table("auction").select(twice("id").alias("e")).union(spark.table("person").select("id"))


KEPT = {
    projected: "upsert",
    filtered: "upsert",
    filtered_around: "upsert",
    joined_by: "upsert join",
    joined_where: "upsert join",
    joined_left_by: "upsert join anti",
    joined_anti_by: "upsert anti",
    beside_a_subquery: "upsert aggregate join",
    inside_an_aggregate: "upsert aggregate aggregate aggregate join",
    around_an_aggregate: "upsert aggregate",
    grouped_by: "upsert aggregate",
    inside_an_unusual_aggregate: "upsert rows swap, per key",
    around_an_unusual_aggregate: "upsert rows swap, per key",
    with_pandas: "upsert",
    with_arrow: "upsert",
    with_both: "upsert",
    pandas_aggregate: "upsert rows swap, per key",
    pandas_aggregate_of_all: "upsert rows swap, whole",
    pandas_window: "upsert rows swap, per key",
    pandas_window_of_a_range: "upsert near swap",
    inside_a_window: "upsert rows swap, per key",
    around_a_window: "upsert rows swap, per key",
    top_by: "upsert top",
    exploded: "",
    in_one_branch: "upsert",
    united: "upsert",
}
"""The queries, with the nodes that keep them."""

"""Queries that cannot be views are refused, in sentences that help."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as f

from evert.errors import BadName, BadQuery, BadSchema, UnknownRelation

CHANGING = {
    "select rand() as r from bid": "rand() gives another answer",
    "select uuid() as u": "uuid() gives another answer",
    "select monotonically_increasing_id() as m from bid": "monotonically_increasing_id() gives",
    "select price from bid where price > (select avg(price) * rand() from bid)": "rand() gives another answer",
    "select * from bid tablesample (10 percent)": "TABLESAMPLE gives another answer",
    "select now() as n from bid": "now() changes without any change of the log",
    "select current_timestamp() - interval 1 hour as h from bid": "current_timestamp() changes",
    "select current_date() as d": "current_date() changes",
    "select unix_timestamp() as d from bid": "current_timestamp() changes",
    "select current_user() as u from bid": "current_user() depends on the session",
    "select current_schema() as u from bid": "current_schema() depends on the session",
    "select reflect('java.lang.System', 'exit', 1) as r from bid": "reflect() calls any Java method",
}


@pytest.mark.parametrize("query", CHANGING)
def test_an_answer_that_does_not_depend_on_the_log_alone_is_refused(planner, query):
    with pytest.raises(BadQuery) as caught:
        planner.plan(query)
    assert CHANGING[query] in caught.value.message


def test_a_name_that_is_not_there_is_told_with_those_close_to_it(planner):
    with pytest.raises(UnknownRelation) as caught:
        planner.plan("select *\nfrom auctions")
    assert caught.value.message == "there is no topic or view 'auctions'"
    assert caught.value.hint == "did you mean 'auction'?"
    assert (caught.value.details["line"], caught.value.details["at"]) == (2, 5)


def test_a_name_like_no_other_gets_the_list(planner):
    with pytest.raises(UnknownRelation) as caught:
        planner.plan("select * from zebra")
    assert caught.value.hint == "the topics and views are auction, bid, person"


def test_an_unknown_column_is_told_in_sparks_words(planner):
    with pytest.raises(BadQuery, match=r"`prices` cannot be resolved\. Did you mean .*`price`") as caught:
        planner.plan("select prices from bid")
    assert caught.value.details["at"] == 7
    assert "SQLSTATE" not in caught.value.message


@pytest.mark.parametrize(
    "text", ["selec 1", "select 1; select 2", "insert into bid select 1", "drop table bid"]
)
def test_only_one_query_is_taken(planner, text):
    with pytest.raises(BadQuery, match=r"Syntax error|empty"):
        planner.plan(text)


def test_files_are_not_read(planner, spark, tmp_path):
    with pytest.raises(UnknownRelation):
        planner.plan(f"select * from parquet.`{tmp_path}`")
    spark.range(3).write.mode("overwrite").parquet(str(tmp_path / "x"))
    with pytest.raises(BadQuery, match="no topic or view of this database"):
        planner.plan(lambda session: session.read.parquet(str(tmp_path / "x")))


def test_two_columns_of_one_name_are_refused(planner):
    with pytest.raises(BadQuery, match="two columns of the view are named 'PRICE'"):
        planner.plan("select price, bidder as PRICE from bid")


@pytest.mark.parametrize("name", ["__w", "_position", ""])
def test_a_column_cannot_take_a_name_of_the_system(planner, name):
    with pytest.raises(BadName):
        planner.plan(f"select price as `{name}` from bid")


@pytest.mark.parametrize("term", ["interval 1 month", "parse_json(channel)"])
def test_a_type_that_arrow_cannot_carry_is_refused(planner, term):
    with pytest.raises(BadSchema, match="the column m cannot be kept"):
        planner.plan(f"select {term} as m from bid")


def test_a_function_must_give_a_frame(planner):
    with pytest.raises(BadQuery, match="gave no DataFrame"):
        planner.plan(lambda session: None)


@pytest.mark.parametrize(
    "function",
    [
        lambda session: session.table("bid").limit(session.table("bid").count()),
        lambda session: session.table("bid").groupBy("auction").pivot("channel").sum("price"),
    ],
)
def test_a_function_may_not_run_a_query_while_it_is_planned(planner, function):
    with pytest.raises(BadQuery, match="runs a query while it is planned"):
        planner.plan(function)


def test_a_nondeterministic_function_of_a_user_is_refused_by_name(planner):
    dice = f.udf(lambda: 4, "int").asNondeterministic()
    with pytest.raises(BadQuery, match="gives another answer each time"):
        planner.plan(lambda session: session.table("bid").select(dice().alias("d")))


def test_a_streaming_frame_is_refused(planner):
    with pytest.raises(BadQuery, match="streaming"):
        planner.plan(lambda session: session.readStream.format("rate").load())


def test_an_error_of_a_function_in_the_analysis_is_ours(planner):
    with pytest.raises(BadQuery, match="cannot be resolved"):
        planner.plan(lambda session: session.table("bid").select("prices"))


@pytest.mark.parametrize("key", [["nope"], []])
def test_a_key_names_columns_of_the_view(planner, key):
    with pytest.raises(BadQuery, match="the key"):
        planner.plan("select price from bid", key=key)

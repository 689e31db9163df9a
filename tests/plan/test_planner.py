"""What becomes a node, what a step of a chain, and what is known of the view."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.plan import udfs
from tests.plan.queries import INCREMENTAL, NODES
from tests.plan.relations import BID

from evert.errors import BadQuery


def kinds(plan):
    return [node.kind for node in plan.nodes]


def kept(plan):
    """The nodes below the output and how they are kept, as `incremental.sql` writes it."""
    ways = sorted({node.how for node in plan.nodes} - {"incremental"})
    return ", ".join([" ".join(kinds(plan)[:-1]), *ways])


@pytest.mark.parametrize("name", NODES)
def test_a_query_has_the_nodes_that_are_written_beside_it(planner, name):
    assert kept(planner.plan(INCREMENTAL[name])) == NODES[name]


@pytest.mark.parametrize("query", udfs.KEPT, ids=lambda query: query.__name__)
def test_a_query_with_functions_in_python_is_kept_like_any_other(planner, query):
    plan = planner.plan(query)
    assert plan.recomputes is None
    assert kept(plan) == udfs.KEPT[query]


def test_what_spark_finds_out_only_when_it_optimises_is_refused_in_its_words(planner):
    with pytest.raises(BadQuery, match="Python UDF in the ON clause of a LEFT OUTER JOIN"):
        planner.plan(udfs.joined_left_where)


def test_a_plan_is_drawn_from_the_output_down(planner):
    plan = planner.plan(
        "select category, count(*) as n from bid b join auction a on a.id = b.auction where price > 3 group by 1"
    )
    assert str(plan).splitlines() == [
        "view of category, n, key category [n3, incremental]",
        "  aggregate count(1) by category [n2, incremental]",
        "    join on (a.id = b.auction) [n1, incremental]",
        "      filter (((b.price IS NOT NULL) AND (b.price > 3L)) AND (b.auction IS NOT NULL))",
        "        stream bid",
        "      filter (a.id IS NOT NULL)",
        "        upsert by id [n0, incremental]",
        "          table auction",
    ]


def test_a_node_that_reads_more_than_what_changed_says_so(planner):
    query = """select id, max(r) over () as m from
        (select id, rank() over (partition by category order by reserve) as r from auction) t"""
    assert str(planner.plan(query)).splitlines() == [
        "view of id, m, key id [n5, incremental]",
        "  window max(t.r) [n4, whole]",
        "    window RANK() by auction.category [n2, per key]",
        "      upsert by id [n0, incremental]",
        "        table auction",
    ]


def test_stateless_work_needs_the_output_node_only(planner):
    plan = planner.plan("select upper(tag) as t from bid lateral view explode(tags) as tag where price > 3")
    assert kinds(plan) == ["output"]
    (chain,) = plan.output.ports[0]
    assert chain.source == "t1"
    assert chain.many


def test_each_branch_of_a_union_is_a_chain(planner):
    plan = planner.plan("select id from person union all select seller from auction union all select 7")
    assert [chain.source for chain in plan.output.ports[0]] == ["vperson", "n0", "k0"]


def test_each_grouping_set_is_a_chain(planner):
    plan = planner.plan("select channel, auction, count(*) as n from bid group by cube (channel, auction)")
    assert kinds(plan) == ["aggregate", "output"]
    assert len(plan.nodes[0].ports[0]) == 4


def test_only_the_columns_that_are_needed_reach_a_join(planner):
    plan = planner.plan("select b.price from bid b join auction a on a.id = b.auction")
    (join,) = [node for node in plan.nodes if node.kind == "join"]
    assert [len(schema) for schema in join.operator.inputs] == [2, 1]


def test_a_table_read_twice_is_upserted_once(planner):
    plan = planner.plan("select x.id, y.id as other from auction x join auction y on x.seller = y.seller")
    assert kinds(plan) == ["upsert", "join", "output"]


def test_equal_parts_of_a_query_are_one_node(planner):
    query = """with t as (select auction, count(*) as c from bid group by auction)
        select x.auction, x.c, y.c as d from t x join t y on x.auction = y.auction"""
    assert kinds(planner.plan(query)) == ["aggregate", "join", "output"]


def test_constants_bring_their_rows(planner):
    plan = planner.plan(
        "select k, count(*) as n from bid join (values (1L, 'a')) as v(k, c) on c = channel group by k"
    )
    (constant,) = [leaf for leaf in plan.leaves if leaf.kind == "constant"]
    assert constant.rows.to_pylist() == [{"c0": 1, "c1": "a", "__w": 1}]
    assert [leaf.name for leaf in plan.reads] == ["bid"]


def test_a_relation_that_gives_no_rows_is_still_read(planner):
    plan = planner.plan("select price from bid where 1 = 0")
    assert [leaf.kind for leaf in plan.leaves] == ["constant"]
    assert [leaf.id for leaf in plan.reads] == ["t1"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select price from bid", True),
        ("select distinct price from bid", True),
        ("select x.price, y.bidder from bid x join bid y on x.auction = y.auction", True),
        ("select price from bid union all select 1", True),
        ("select count(*) as n from bid", False),
        ("select id from auction", False),
        ("select b.price from bid b join auction a on a.id = b.auction", False),
        ("select price from bid x where exists (select 1 from bid y where y.auction = x.bidder)", True),
        ("select price from bid x where not exists (select 1 from bid y where y.auction = x.bidder)", False),
        ("select x.price, y.bidder from bid x left join bid y on x.auction = y.auction", False),
        ("select price from bid order by price limit 3", False),
        ("select price, sum(price) over (partition by auction) as s from bid", False),
    ],
)
def test_a_view_knows_whether_it_ever_retracts(planner, query, expected):
    assert planner.plan(query).append_only is expected


def test_the_columns_have_their_real_names_and_types(planner):
    plan = planner.plan("select sum(price) as S, avg(amount) as m, max(at) as t, count(*) from bid")
    assert plan.columns == pa.schema(
        [
            ("S", pa.int64()),
            ("m", pa.decimal128(14, 6)),
            ("t", pa.timestamp("us", tz="UTC")),
            ("count(1)", pa.int64()),
        ]
    )


def test_sums_that_are_asked_for_twice_are_kept_once(planner):
    plan = planner.plan("select sum(price) as s, avg(price) as a, count(price) as n, count(*) as m from bid")
    assert [(one.kind, one.argument) for one in plan.nodes[0].operator.functions] == [
        ("sum", 0),
        ("count", 1),
        ("count", None),
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select auction from bid where price > 2", "auction price"),
        (
            "select upper(channel) as c, count(*) as n from bid where score is not null group by 1",
            "channel score",
        ),
        (
            "select auction, tag from bid lateral view explode(tags) t as tag where tag <> channel",
            "auction channel tags",
        ),
        ("select transform(tags, tag -> concat(tag, bidder)) as t from bid", "bidder tags"),
        ("select count(*) as n from bid", ""),
        (
            "select auction, sum(price) over (partition by auction order by at) as s from bid",
            "auction at price",
        ),
        ("select * from bid where price > 1", " ".join(BID.names)),
    ],
)
def test_a_chain_says_which_columns_it_reads(planner, query, names):
    plan = planner.plan(query)
    chains = [chain for node in plan.nodes for port in node.ports for chain in port if chain.source == "t1"]
    assert chains
    read = set().union(*(chain.reads for chain in chains))
    assert {BID.names[place] for place in read if place < len(BID.names)} == set(names.split())


def test_a_table_node_reads_all_that_a_change_has(planner):
    chain = planner.plan("select id from auction").nodes[0].ports[0][0]
    assert chain.reads is None


def test_a_relation_registered_again_takes_the_place_of_the_old(spark):
    from evert.plan.planner import Planner

    planner = Planner(spark)
    planner.relations.register("odd name", "stream", pa.schema([("a", pa.int64())]), "t7", (), True)
    planner.relations.register("odd name", "stream", pa.schema([("b", pa.int64())]), "t8", (), True)
    assert [leaf.id for leaf in planner.plan("select b from `odd name`").leaves] == ["t8"]


def test_the_session_of_the_user_is_not_touched(planner, spark):
    assert not spark.catalog.tableExists("bid")

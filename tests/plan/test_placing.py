"""Which nodes find their rows in the shards where they are."""

from __future__ import annotations

import pytest

STAYING = [
    ("select auction, count(*) as n from bid group by auction", ["aggregate"], ["output"]),
    ("select count(*) as n from bid group by auction", ["aggregate"], ["output"]),
    ("select auction + 1 as a, count(*) as n from bid group by auction", ["aggregate"], ["output"]),
    ("select n + 1 as m from (select count(*) as n from bid)", ["aggregate"], ["output"]),
    (
        "select n, auction from (select auction, count(*) as n from bid group by 1) where n > 1",
        ["aggregate"],
        ["output"],
    ),
    (
        "select a.id, max(b.price) as most from auction a join bid b on a.id = b.auction group by a.id, a.category",
        ["upsert", "join"],
        ["aggregate", "output"],
    ),
    (
        "select b.auction, max(b.price) as most from auction a join bid b on a.id = b.auction group by 1",
        ["upsert", "join"],
        ["aggregate", "output"],
    ),
    (
        "select b.auction, p.n from auction a join bid b on a.id = b.auction"
        " join (select bidder, count(*) as n from bid group by 1) p on p.bidder = b.auction",
        ["upsert", "join", "aggregate"],
        ["join", "output"],
    ),
    (
        "select a.category, max(b.price) as m from auction a join bid b on a.id = b.auction group by a.category",
        ["upsert", "join", "aggregate"],
        ["output"],
    ),
    (
        "select * from (select *, row_number() over (partition by auction order by price) as r from bid)"
        " where r < 3",
        ["top"],
        ["output"],
    ),
    ("select auction, price from bid", ["output"], []),
    (
        "select auction from (select auction from bid group by auction) union all select id from person",
        ["aggregate", "output"],
        [],
    ),
    (
        "select upper(channel) as c, n from (select channel, count(*) as n from bid group by 1)",
        ["aggregate"],
        ["output"],
    ),
    (
        "select auction, count(distinct bidder) as b, count(distinct price) as p from bid group by auction",
        ["aggregate"] * 4,
        ["join", "output"],
    ),
    (
        "select x.auction, x.n, y.m from (select auction, count(*) as n from bid group by 1) x"
        " left join (select auction, max(price) as m from bid group by 1) y on x.auction = y.auction",
        ["aggregate", "aggregate", "anti", "output"],
        ["join"],
    ),
    (
        "select x.auction, x.n, y.m from (select auction, count(*) as n from bid group by 1) x"
        " join (select bidder, max(price) as m from bid group by 1) y on x.auction = y.m",
        ["aggregate", "aggregate", "join"],
        ["output"],
    ),
    ("select auction, median(price) as m from bid group by auction", ["rows", "swap", "output"], []),
]


@pytest.mark.parametrize(("query", "exchanged", "staying"), STAYING)
def test_rows_stay_where_the_columns_say_so(planner, query, exchanged, staying):
    plan = planner.plan(query)
    stays = {node.id: all(chain.stays for port in node.ports for chain in port) for node in plan.nodes}
    assert [node.kind for node in plan.nodes if not stays[node.id]] == exchanged
    assert [node.kind for node in plan.nodes if stays[node.id]] == staying


def test_rows_that_are_placed_by_the_whole_key_stay_while_others_come_to_them(planner):
    counted = "(select auction, bidder, count(*) as n from bid group by auction, bidder)"
    query = (
        f"select a.bidder, a.n from {counted} a"
        f" join (select auction, max(n) as most from {counted} group by auction) m"
        " on a.auction = m.auction and a.n < m.most"
    )
    (join,) = [node for node in planner.plan(query).nodes if node.kind == "join"]
    assert [[chain.stays for chain in port] for port in join.ports] == [[False], [True]]

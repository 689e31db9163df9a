"""Which key a view has without being told."""

from __future__ import annotations

import pytest

KEYS = [
    ("select auction, count(*) as n from bid group by auction", ("auction",)),
    ("select count(*) as n, auction as a, channel from bid group by auction, channel", ("a", "channel")),
    ("select count(*) as n from bid group by auction", None),
    ("select upper(channel) as u, count(*) as n from bid group by 1", ("u",)),
    ("select count(*) as n from bid", None),
    ("select id, reserve from auction where reserve > 3", ("id",)),
    ("select reserve, id as number from auction", ("number",)),
    ("select reserve from auction", None),
    ("select id + 1 as id from auction", None),
    ("select name, id from person", ("id",)),
    ("select distinct channel, price from bid", ("channel", "price")),
    ("select price from bid", None),
    (
        "select price, auction from"
        " (select *, row_number() over (partition by auction order by price) as r from bid) where r = 1",
        ("auction",),
    ),
    (
        "select r, price, channel from"
        " (select *, row_number() over (partition by channel order by price) as r from bid) where r < 9",
        ("channel", "r"),
    ),
    (
        "select price, channel from"
        " (select *, rank() over (partition by channel order by price) as r from bid) where r = 1",
        None,
    ),
    ("select a.id, p.name from auction a join person p on p.id = a.seller", ("id",)),
    ("select p.id, a.reserve from auction a join person p on p.id = a.id", ("id",)),
    ("select a.id, p.id as person from auction a join person p on p.name = 'x'", ("id", "person")),
    ("select b.price, a.id from bid b join auction a on a.id = b.auction", None),
    ("select id from auction union all select id from person", None),
    ("select id, k from auction lateral view explode(array(1, 2)) as k", None),
    ("select category, seller, count(*) as n from auction group by cube (category, seller)", None),
    (
        "select auction, n from (select auction, count(*) as n from bid group by auction) where n > 3",
        ("auction",),
    ),
]


@pytest.mark.parametrize(("query", "key"), KEYS)
def test_a_key_is_derived(planner, query, key):
    plan = planner.plan(query)
    assert plan.key == key
    assert not plan.output.operator.declared


def test_a_declared_key_wins(planner):
    plan = planner.plan("select id, seller from auction", key=["SELLER", "id"])
    assert plan.key == ("seller", "id")
    assert plan.output.operator.key == (1, 0)
    assert plan.output.operator.declared

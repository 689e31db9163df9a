"""Tables as of a time: the query is planned like the one that joins with their versions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.plan.queries import read

from evert.delta import Versions
from evert.errors import BadQuery, UnknownRelation
from evert.plan.planner import Planner

TIME = pa.timestamp("us", "UTC")
ORDERS = pa.schema({"id": pa.int64(), "country": pa.string(), "at": TIME})
RATES = pa.schema({"country": pa.string(), "rate": pa.int64()})
AS_OF = read("as_of.sql")


@pytest.fixture(scope="module")
def planner(spark):
    made = Planner(spark)
    made.relations.register("orders", "stream", ORDERS, "t1", (), True)
    for number, name in ((2, "rates"), (3, "shop.fees")):
        made.relations.register(
            name, "table", RATES, f"t{number}", ("country",), False, versions=Versions(RATES, (0,))
        )
    made.relations.register("totals", "view", RATES, "vtotals", ("country",), False)
    return made


@pytest.mark.parametrize("name", [name for name in AS_OF if not name.endswith(": the same")])
def test_a_table_as_of_a_time_is_its_versions_that_are_valid_then(planner, name):
    plan, same = planner.plan(AS_OF[name]), planner.plan(AS_OF[f"{name}: the same"])
    assert plan.recomputes is None
    assert plan.fingerprint == same.fingerprint


def test_the_versions_are_a_node_over_the_table(planner):
    assert str(planner.plan("SELECT rate, _version AS v FROM `rates.versions`")).splitlines() == [
        "view of rate, v, key v [n1, incremental]",
        "  versions by country [n0, incremental]",
        "    table rates",
    ]


@pytest.mark.parametrize(
    ("condition", "searched"),
    [
        ("o.country = r.country", True),
        ("o.country = r.country AND r.rate > o.id", True),
        ("o.country <=> r.country AND r.rate = o.id", True),
        ("o.id = r.rate", False),
        ("upper(r.country) = o.country", False),
    ],
)
@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_an_event_searches_its_version_where_the_whole_key_is_set_equal(planner, kind, condition, searched):
    query = f"SELECT id, rate FROM orders o {kind} JOIN rates FOR SYSTEM_TIME AS OF o.at r ON {condition}"
    (join,) = [node for node in planner.plan(query).nodes if node.kind == "join"]
    assert (join.operator.during is not None) is searched


def test_an_event_meets_one_version_at_most_so_its_key_stays_one(planner):
    for kind in ("", "LEFT"):
        query = f"""SELECT t.country, r.rate FROM totals t
            {kind} JOIN rates FOR SYSTEM_TIME AS OF timestamp_seconds(t.rate) AS r ON t.country = r.country"""
        assert planner.plan(query).key == ("country",)


def test_only_a_query_that_names_versions_has_them(planner):
    planner.plan("SELECT rate FROM `rates.versions`")
    assert "rates.versions" not in [one.name for one in planner.catalyst.session.catalog.listTables()]
    assert planner.plan("SELECT * FROM rates").columns.names == ["country", "rate"]
    with pytest.raises(UnknownRelation) as caught:
        planner.plan("SELECT * FROM rate")
    assert caught.value.hint == "did you mean 'rates'?"


REFUSED = {
    "SELECT * FROM rates FOR SYSTEM_TIME AS OF country": "needs a row of the left side of a join",
    "SELECT id FROM rates FOR SYSTEM_TIME AS OF o.at r JOIN orders o ON true": "needs a row of the left side",
    "SELECT id FROM orders o RIGHT JOIN rates FOR SYSTEM_TIME AS OF o.at r ON true": "RightOuter is no join",
    "SELECT id FROM orders o FULL JOIN rates FOR SYSTEM_TIME AS OF o.at r ON true": "FullOuter is no join",
    "SELECT id FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.at r USING (country)": "a condition with ON",
    "SELECT id FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r (a, b) ON true": "names of its columns",
    "SELECT * FROM rates FOR VERSION AS OF 7": "as of a time, not as of a version",
    "SELECT x.id FROM orders x JOIN orders FOR SYSTEM_TIME AS OF x.at o ON true": "orders is a stream",
    "SELECT o.id FROM orders o JOIN totals FOR SYSTEM_TIME AS OF o.at t ON true": "totals is a view",
    "SELECT o.id FROM orders o JOIN rate FOR SYSTEM_TIME AS OF o.at t ON true": "no topic or view 'rate'",
    "SELECT * FROM rates.versions": "in backquotes",
    "SELECT * FROM rates FOR SYSTEM_TIME AS OF now()": "as of a time that stays",
    "SELECT * FROM rates FOR SYSTEM_TIME AS OF current_date() - 1": "as of a time that stays",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_has_no_meaning_is_refused_in_words_that_help(planner, query):
    with pytest.raises((BadQuery, UnknownRelation)) as caught:
        planner.plan(query)
    assert REFUSED[query] in caught.value.message


def test_a_fault_elsewhere_is_told_where_it_stands(planner):
    with pytest.raises(BadQuery) as caught:
        planner.plan(AS_OF["join"].replace("id,", "id,\n x,"))
    assert (caught.value.details["line"], caught.value.details["at"]) == (2, 1)

"""The 22 queries of TPC-H as views over tables that change: after every round each equals plain Spark SQL."""

from __future__ import annotations

import pytest
from tests.missing import skip_unless
from tests.oracle import Oracle
from tests.tpc import source
from tests.tpc.keeping import build
from tests.tpc.source import TPCH_KEYS

pytestmark = pytest.mark.timeout(900)

SCALE = 0.002
ROUNDS = 2
MANY_ROUNDS = 15
EDITS = {
    "q2": [("p_size = 15", "p_size >= 15")],
    "q7": [("FRANCE", "INDIA"), ("GERMANY", "PERU")],
    "q8": [("BRAZIL", "PERU"), ("p_type = 'ECONOMY ANODIZED STEEL'", "p_type LIKE 'ECONOMY%'")],
    "q11": [("GERMANY", "INDIA")],
    "q17": [("p_container = 'MED BOX'", "p_container LIKE '%BOX'"), ("0.2", "0.4")],
    "q18": [("> 300", "> 250")],
    "q19": [(f"p_brand = 'Brand#{n}'", f"p_brand LIKE 'Brand#{n // 10}%'") for n in (12, 23, 34)]
    + [("l_shipinstruct = 'DELIVER IN PERSON'", "l_shipinstruct LIKE '%E%'")],
    "q20": [("forest%", "%e%"), ("CANADA", "INDIA")],
    "q21": [("SAUDI ARABIA", "PERU")],
}
"""Nations, brands and amounts that are there at this scale."""

QUERIES = [f"q{n}" for n in range(1, 23)]


@pytest.fixture(scope="module")
def data():
    skip_unless(source.missing("tpch"))
    return source.make("tpch", SCALE, EDITS)


@pytest.fixture(scope="module")
def kept(spark, data, tmp_path_factory):
    made = build(tmp_path_factory.mktemp("tpch"), data, TPCH_KEYS, seed=1)
    with made.db:
        made.rounds(ROUNDS)
        yield made


@pytest.fixture(scope="module")
def oracle(spark, kept):
    return Oracle(spark, kept.warehouse.tables())


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_is_what_spark_makes_of_the_present_rows(kept, oracle, name):
    kept.check(name, oracle)
    assert any(value is not None for row in kept.db.views[name].rows() for value in row.values())


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_is_not_recomputed(kept, name):
    assert kept.db.explain(name).recomputes is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_views_stay_right_over_many_rounds(spark, data, tmp_path, seed):
    made = build(tmp_path, data, TPCH_KEYS, seed=seed)
    with made.db:
        made.rounds(MANY_ROUNDS)
        truth = Oracle(spark, made.warehouse.tables())
        for name in QUERIES:
            made.check(name, truth)

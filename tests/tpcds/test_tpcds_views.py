"""The 99 queries of TPC-DS as views over tables that change, and the page that says how they are kept."""

from __future__ import annotations

import pytest
from tests.missing import skip_unless
from tests.oracle import Oracle
from tests.tpc import source
from tests.tpc.keeping import build
from tests.tpcds import report, small

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

ROUNDS = 2
QUERIES = [f"q{n}" for n in range(1, 100)]


@pytest.fixture(scope="module")
def data():
    skip_unless(source.missing("tpcds"))
    return small.make()


@pytest.fixture(scope="module")
def kept(spark, data, tmp_path_factory):
    made = build(tmp_path_factory.mktemp("tpcds"), data, small.keys(data), seed=1)
    with made.db:
        made.rounds(ROUNDS)
        yield made


@pytest.fixture(scope="module")
def oracle(spark, kept):
    return Oracle(spark, kept.warehouse.tables())


def test_the_page_says_how_each_query_is_kept(spark, data):
    assert report.page(report.outcomes(data)) == report.DOCUMENT.read_text()


@pytest.mark.parametrize("name", QUERIES)
def test_a_view_is_what_spark_makes_of_the_present_rows(kept, oracle, name):
    kept.check(name, oracle)


def test_most_views_have_rows(kept):
    assert sum(kept.db.views[name].count() > 0 for name in QUERIES) > len(QUERIES) / 2

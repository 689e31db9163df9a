"""One planner for all tests of this folder."""

from __future__ import annotations

import pytest
from tests.plan.relations import planner as make_planner


@pytest.fixture(scope="session")
def planner(spark):
    return make_planner(spark)

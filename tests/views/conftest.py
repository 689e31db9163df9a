"""A database with a stand-in for the engine."""

from __future__ import annotations

import pytest
from tests.views.engine import Engine, open_database

from evert.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path, clock):
    with open_database(tmp_path / "db", clock=clock) as made:
        yield made


@pytest.fixture
def engine(db):
    return Engine(db)

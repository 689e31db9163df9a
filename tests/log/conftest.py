"""What the tests of the log share."""

from __future__ import annotations

import pytest

import evert
from evert.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path, clock):
    with evert.open(tmp_path / "db", clock=clock, background=False) as made:
        yield made

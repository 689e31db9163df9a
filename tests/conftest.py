"""One Spark session for all tests that need one."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def spark():
    from evert.epoch.spark import session

    made = session()
    yield made
    made.stop()

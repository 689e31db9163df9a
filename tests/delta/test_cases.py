"""For each kind of node: the plan, what goes in, and what comes out, as written in `cases/`."""

from __future__ import annotations

import pytest
from tests.delta.case_files import executed, read_all

CASES = {case.path.stem: case for case in read_all()}


@pytest.fixture(scope="module")
def outcomes(spark, tmp_path_factory):
    """All files, executed in one database."""
    made = executed(list(CASES.values()), tmp_path_factory.mktemp("cases") / "db")
    return {case.path.stem: case for case in made}


@pytest.mark.parametrize("name", CASES)
def test_what_comes_out_is_what_is_written(outcomes, name):
    assert str(outcomes[name]) == str(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_as_it_is_written(name):
    assert str(CASES[name]) == CASES[name].path.read_text()

"""The shop of `evert demo`: what it tells is true, also if the process that keeps its views is killed."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from evert.cli.main import evert
from evert.demo.keeper import definitions
from evert.plan.statements import CreateTopic, CreateView, parse


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "more", [pytest.param([], marks=pytest.mark.slow), ["--crash"]], ids=["plain", "crash"]
)
def test_the_shop_lives_and_is_proved(more):
    result = CliRunner().invoke(evert, ["demo", "--seconds", "12", *more])
    assert result.exit_code == 0, result.output
    said = result.output
    (views,) = re.findall(r"Proved: (\d+) views", said)
    assert int(views) == len([one for one in parse(definitions()) if isinstance(one, CreateView)])
    assert re.search(r"orders in CH, each by the rate of its time: \d+ at 20.0 %, \d+ at 22.5 %", said)
    assert int(re.findall(r"counts (\d+) corrections", said)[0]) > 0
    assert ("kill -9" in said) == bool(more)
    low, high = map(float, re.findall(r"Requests +([\d.]+) a second, never more than ([\d.]+)", said)[0])
    assert high < 2 * low, "a pause of the processor is no spike of the requests"


def test_everything_in_the_shop_says_what_it_is():
    made = parse(definitions())
    assert all(one.comment for one in made if isinstance(one, CreateView))
    assert all(one.options.get("comment") for one in made if isinstance(one, CreateTopic))

"""The law of views: after every epoch, and in whatever epochs, a view is what Spark SQL says over the tables.

Each example is a database of many random views, with changes between refreshes, views defined in the middle and one
replaced. It is run in one of several modes, and then once more as one big epoch: the same log gives the same rows.
A failure prints the SQL, the rows, and a script that runs the case again; `tests/laws/reduce.py` makes it smaller.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from tests.laws.cases import make_case
from tests.laws.law import Mode, at_once, obey

MODES = {
    "epoch by epoch": Mode(),
    "cut into epochs of a few events": Mode(most_events=3),
    "with restarts, hashes that collide, and plans in pieces": Mode(bits=3, reopen=True, copies=1),
    "sealed, compacted, and read by Spark": Mode(spark_reads=True, tidy=True),
    "cut anywhere, with restarts": Mode(most_events=1, reopen=True),
    "kept by a thread while rows are written": Mode(running=True, most_events=5),
}
ONE_EPOCH = Mode()
BIG_EPOCH = Mode(bits=3, spark_reads=True)

seeds = st.integers(0, 2**40)


def check(spark, folder, seed, mode):
    run = obey(spark, make_case(seed), mode, folder / "by steps")
    whole = BIG_EPOCH if seed % 2 else ONE_EPOCH
    obey(spark, at_once(run), whole, folder / "at once", [run.answers[-1]])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", MODES)
def test_views_are_what_spark_says_over_the_tables(spark, tmp_path_factory, name):
    @settings(
        max_examples=1,
        deadline=None,
        phases=[Phase.reuse, Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(seeds)
    def law(seed):
        assume(seed)
        check(spark, tmp_path_factory.mktemp("law"), seed, MODES[name])

    law()


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_views_are_what_spark_says_for_long(spark, tmp_path_factory):
    over = time.monotonic() + float(os.environ.get("EVERT_SOAK_SECONDS", "600"))
    seed = random.SystemRandom().randrange(2**40)
    while time.monotonic() < over:
        for mode in MODES.values():
            seed += 1
            print(f"seed {seed}, {mode}", flush=True)
            check(spark, tmp_path_factory.mktemp("soak"), seed, mode)

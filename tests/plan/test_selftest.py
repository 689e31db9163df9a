"""A Spark that plans otherwise is found at the start."""

from __future__ import annotations

import time

import pytest

from evert.errors import Unsupported
from evert.plan import selftest


def test_this_spark_passes_and_is_asked_once(spark):
    selftest.self_test(spark)
    started = time.perf_counter()
    selftest.self_test(spark)
    assert time.perf_counter() - started < 0.05


def test_another_plan_is_told_with_the_version(spark, monkeypatch):
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setitem(selftest._INCREMENTAL, "select id from self_stream", "join")
    with pytest.raises(Unsupported) as caught:
        selftest.self_test(spark)
    assert caught.value.message == (
        f"Spark {spark.version} is not supported: it makes  of select id from self_stream, not join"
    )


def test_a_class_that_is_gone_is_told_too(spark, monkeypatch):
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setattr(selftest.Catalyst, "scope", lambda self, *_: self._jvm.org.apache.spark.Gone())
    with pytest.raises(Unsupported, match=r"is not supported"):
        selftest.self_test(spark)

"""A Spark that plans otherwise is found at the start."""

from __future__ import annotations

import time

import pytest

import evert
from evert.errors import Unsupported
from evert.plan import selftest


def test_this_spark_passes_and_is_asked_once(spark):
    selftest.self_test(spark)
    started = time.perf_counter()
    selftest.self_test(spark)
    assert time.perf_counter() - started < 0.05


def test_another_plan_is_told_with_the_version(spark, monkeypatch):
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setattr(selftest, "_SHAPES", {"select id from self_stream": "join output"})
    with pytest.raises(Unsupported) as caught:
        selftest.self_test(spark)
    assert caught.value.message == (
        f"Spark {spark.version} is not supported: it makes output of select id from self_stream, not join output"
    )


def test_a_class_that_is_gone_is_told_too(spark, monkeypatch):
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setattr(selftest.Catalyst, "scope", lambda self, *_: self._jvm.org.apache.spark.Gone())
    with pytest.raises(Unsupported, match=r"is not supported"):
        selftest.self_test(spark)


def test_a_plan_of_another_form_is_told_too(spark, monkeypatch):
    monkeypatch.setattr(selftest, "_passed", set())
    monkeypatch.setattr(selftest, "_ANSWERS", {"select id from self_stream limit 1": None})
    with pytest.raises(Unsupported, match=r"is not supported"):
        selftest.self_test(spark)


def test_a_database_asks_once_for_each_spark(spark, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(selftest, "TESTED", frozenset())
    monkeypatch.setattr(selftest, "self_test", lambda session: asked.append(session.version))
    for _ in range(2):
        with evert.open(tmp_path / "db", background=False) as db:
            db.stream("t", "id INT")
            db.explain("SELECT id FROM t")
    assert asked == [spark.version]
    with evert.open(tmp_path / "db", background=False) as db:
        db.catalog.write(lambda tx: tx.run("UPDATE engine SET value = 'another Evert'"))
        db.explain("SELECT id FROM t")
    assert asked == [spark.version] * 2


def test_the_spark_of_these_tests_is_not_tried_again(spark, tmp_path, monkeypatch):
    assert {spark.version} == selftest.TESTED
    monkeypatch.setattr(selftest, "self_test", lambda session: pytest.fail("it was"))
    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("t", "id INT")
        assert db.explain("SELECT id FROM t")

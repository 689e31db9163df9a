"""Bloom filters and count-min sketches, without a view around them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evert.sketches import Bloom, CountMin

values = st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=50)


@settings(deadline=None)
@given(values, values)
def test_a_bloom_filter_never_denies_what_is_in_it(one, two):
    empty = Bloom.sized(100, 0.01)
    merged = empty.with_values(one).union(Bloom.load(empty.with_values(two).dump()))
    assert all(merged.may_contain(value) for value in [*one, *two] if value is not None)
    assert merged.dump() == empty.with_values([*one, *two]).dump()
    assert not merged.may_contain(None)


@pytest.mark.parametrize(("expected", "error"), [(100, 0.1), (5_000, 0.01), (5_000, 0.001)])
def test_a_bloom_filter_errs_as_often_as_it_says(expected, error):
    full = Bloom.sized(expected, error).with_values(range(expected))
    wrong = sum(full.may_contain(value) for value in range(expected, expected + 20_000))
    assert wrong <= 20_000 * error * 2 + 10


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="its error is between 0 and 1"):
        Bloom.sized(10, 1.0)
    with pytest.raises(ValueError, match="made for the same size"):
        Bloom.sized(10, 0.1).union(Bloom.sized(11, 0.1))
    with pytest.raises(ValueError, match="this is no Bloom filter"):
        Bloom.load(b"EVB1" + bytes(40))
    with pytest.raises(ValueError, match="no count-min sketch"):
        CountMin.load(bytes(30))


@pytest.mark.parametrize("kind", ["bigint", "string"])
def test_what_spark_has_counted_is_read(spark, kind):
    numbers = [n * n % 97 for n in range(3_000)]
    frame = spark.createDataFrame([(n,) for n in numbers], "x bigint").selectExpr(f"CAST(x AS {kind}) AS x")
    halves = [frame.where("length(CAST(x AS string)) = 1"), frame.where("length(CAST(x AS string)) > 1")]
    made = [
        CountMin.load(bytes(half.selectExpr("count_min_sketch(x, 0.005D, 0.999D, 3) AS s").first()["s"]))
        for half in halves
    ]
    whole = made[0].union(made[1])
    exact = Counter(numbers)
    assert whole.total == 3_000
    for number, count in exact.items():
        found = whole.count(number if kind == "bigint" else str(number))
        assert count <= found <= count + 15

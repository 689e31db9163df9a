"""Works with a common part give what each of them gives alone."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.delta.harness import canon, rows_of

from evert.delta import panes
from evert.delta.inline import Call, Constant, Expression, Field, Keep, Make, Work
from evert.delta.panes import applied, common

NUMBER = pa.int64()


def call(name: str, *arguments: Expression, kind: pa.DataType = NUMBER) -> Call:
    return Call(name, arguments, kind)


def number(value: int) -> Constant:
    return Constant(value, NUMBER)


def pane(time: Expression, width: int) -> Call:
    return call("Subtract", time, call("Remainder", time, number(width)))


THERE = Keep(call("IsNotNull", Field(1), kind=pa.bool_()))


def hops(count: int, width: int, *before: Keep) -> list[Work]:
    """A column as it is, and the starts of the windows that a time is in."""
    return [
        Work(
            (
                *before,
                Make((Field(0), Field(1))),
                Make((call("Subtract", pane(Field(1), width), number(hop * width)), Field(0))),
                Keep(call("LessThan", Field(0), number(1000), kind=pa.bool_())),
                Make((Field(1), Field(0))),
            )
        )
        for hop in range(count)
    ]


def table(rows: list[tuple[str | None, int | None, int]]) -> pa.Table:
    keys, times, weights = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"c0": pa.array(keys, pa.string()), "c1": pa.array(times, NUMBER)}
    return pa.table(columns | {"__w": pa.array(weights, NUMBER)})


def content(made: pa.Table) -> Counter[object]:
    found: Counter[object] = Counter()
    for row, weight in rows_of(made):
        found[canon(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.one_of(st.none(), st.integers(0, 60)),
        st.sampled_from([1, 1, 2, -1]),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(ROWS, st.integers(1, 4), st.sampled_from([1, 5, 10]), st.booleans(), st.booleans())
def test_rows_are_the_same_multiset(rows, count, width, filtered, repeated):
    works = hops(count, width, *((THERE,) if filtered else ()))
    given_rows = pa.concat_tables([table(rows)] * (3 if repeated else 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panes, "FEW", 0)
        patch.setattr(panes, "SAMPLE", 8)
        together = [content(made) for made in applied(works, given_rows)]
    assert together == [content(work.apply(given_rows)) for work in works]


def test_hops_have_their_pane_in_common():
    shared = common(tuple(hops(3, 10, THERE)))
    assert shared is not None
    assert shared.first.steps[-1] == Make((pane(Field(1), 10), Field(0)))
    rows = table([("a", 11, 1), ("a", 15, 1), ("b", 19, 1), ("a", None, 1)])
    assert content(shared.first.apply(rows)) == {canon((10, "a")): 2, canon((10, "b")): 1}


def test_few_rows_are_left_when_times_become_panes(monkeypatch):
    monkeypatch.setattr(panes, "FEW", 0)
    rows = table([("a", n % 20, 1) for n in range(100)])
    assert [made.num_rows for made in applied(hops(2, 10), rows)] == [2, 2]


@pytest.mark.parametrize(
    "works",
    [
        pytest.param([Work((Make((Field(0),)),)), Work((Keep(THERE.condition),))], id="nothing is computed"),
        pytest.param([Work((Make((Field(0),)),)), Work((Make((Field(1),)),))], id="nothing is common"),
        pytest.param(
            [Work((Make((Field(1), call("Add", pane(Field(1), 5), number(n)))),)) for n in range(2)],
            id="the column itself is needed too",
        ),
        pytest.param([hops(1, 10)[0], hops(1, 20)[0]], id="panes differ"),
        pytest.param([hops(1, 10)[0]] * 2, id="all is common"),
    ],
)
def test_other_works_are_done_one_by_one(works):
    assert common(tuple(works)) is None
    rows = table([("a", 7, 1), (None, 12, 2)])
    assert [content(made) for made in applied(works, rows)] == [content(work.apply(rows)) for work in works]

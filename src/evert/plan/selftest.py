"""Does this Spark plan as Evert expects? Small queries with known plans and answers, checked before the first
view of a database is planned by a version of Spark that not all tests have been run on.

Everything here rests on Catalyst's private classes. A version that moved one of them must be found when it
starts, not in the middle of an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from evert.errors import BadQuery, BadSchema, Unsupported
from evert.plan.catalyst import Catalyst
from evert.plan.graph import Plan
from evert.plan.planner import Planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("word", pa.string()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("amount", pa.decimal128(10, 2)),
    ]
)
_ROW = {"c0": 3, "c1": "x", "c2": ["a", None], "c3": None, "__w": 2}

_ANSWERS: dict[str, object] = {
    "select id + 1 as a, upper(word) as b from self_stream": {"c0": 4, "c1": "X", "__w": 2},
    "select id from self_stream where id > 5": None,
    "select 1 / (id - 3) as d from self_stream where id <> 3": None,
    "select id, tag from self_stream lateral view explode(tags) as tag": [
        {"c0": 3, "c1": "a", "__w": 2},
        {"c0": 3, "c1": None, "__w": 2},
    ],
    "select pos, tag from self_stream lateral view posexplode(tags) as pos, tag where tag is not null": [
        {"c0": 0, "c1": "a", "__w": 2}
    ],
    "select concat(w, w) as b from (select regexp_replace(word, 'x', 'yy') as w from self_stream)": {
        "c0": "yyyy",
        "__w": 2,
    },
    "select transform(tags, t -> coalesce(t, word)) as t from self_stream": {"c0": ["a", "x"], "__w": 2},
    "select k, v from self_stream lateral view stack(1, 'k', id) as k, v": [{"c0": "k", "c1": 3, "__w": 2}],
    "select amount is null as a, cast(id as string) as b from self_stream order by b": {
        "c0": True,
        "c1": "3",
        "__w": 2,
    },
}
"""Stateless queries, and what their chain makes of one row."""

_SHAPES = {
    "select word, count(*) as n, sum(id) as s, avg(amount) as a from self_stream group by word": "aggregate output",
    "select max(id) as m from self_stream": "aggregate output",
    "select distinct word from self_stream": "aggregate output",
    "select word, count(*) as n from self_stream group by rollup (word)": "aggregate output",
    "select x.id from self_stream x join self_table y on x.id = y.id and x.amount > y.amount": "upsert join output",
    "select x.id from self_stream x cross join self_table y": "upsert join output",
    "select id from self_stream union all select id from self_table": "upsert output",
    "with t as (select id, count(*) as n from self_table group by id) select n from t": "upsert aggregate output",
    "select k from self_stream join (values (1, 'x')) as v(k, w) on w = word": "join output",
    "select max(id) as m from self_table": "upsert aggregate output",
    "select x.id, y.word from self_stream x left join self_table y on x.id = y.id": "upsert join anti output",
    "select id from self_stream where id not in (select id from self_table)": (
        "upsert existence aggregate join output"
    ),
    "select id, sum(id) over (partition by word) as n from self_stream": "rows swap output",
    "select id from self_stream order by id limit 3": "top output",
    "select id, (select count(*) from self_table) as n from self_stream": "upsert aggregate join output",
    "select word, percentile(id, 0.5) as n from self_table group by word": "upsert rows swap output",
}
"""Queries, and the kinds of the nodes that they become."""

TESTED = frozenset({"4.2.0"})
"""The version that all tests are run on; to try it once more would make the first view of everybody wait."""
_passed: set[str] = set()


def self_test(session: SparkSession) -> None:
    """Raises Unsupported unless this Spark plans and evaluates as expected; a second call costs nothing."""
    version = str(session.version)
    if version in _passed:
        return
    plain = (AssertionError, AttributeError, KeyError, TypeError, ValueError, BadQuery, BadSchema)
    wrong: tuple[type[Exception], ...] = (*plain, *Catalyst.failures())
    try:
        planner = Planner(session)
        planner.relations.register("self_stream", "stream", _SCHEMA, "t1", (), True)
        planner.relations.register("self_table", "table", _SCHEMA, "t2", ("id",), False)
        for query, kinds in _SHAPES.items():
            _expect(" ".join(node.kind for node in planner.plan(query).nodes), kinds, query)
        plans = {query: planner.plan(query) for query in _ANSWERS}
        for query, answer in _evaluated(session, plans).items():
            _expect(answer, _ANSWERS[query], query)
    except wrong as error:
        raise Unsupported(
            f"Spark {version} is not supported: {str(error).splitlines()[0]}",
            hint="pip install 'evert[spark]' installs a version that is",
        ) from error
    _passed.add(version)


def _evaluated(session: SparkSession, plans: dict[str, Plan]) -> dict[str, object]:
    """What each plan's chain makes of the row, all of them in one projection."""
    catalyst = Catalyst(session)
    kind = pa.struct([*(pa.field(f"c{i}", one.type) for i, one in enumerate(_SCHEMA)), ("__w", pa.int64())])
    wide = session.createDataFrame(pa.table({"s": pa.array([_ROW], kind)}))
    attribute = catalyst.attribute(wide, "s")
    terms = []
    for place, plan in enumerate(plans.values()):
        ((chain,),) = plan.output.ports
        terms.append((f"o{place}", catalyst.guarded(attribute, chain.build(attribute))))
    (answers,) = catalyst.project(wide, terms).toArrow().to_pylist()
    return dict(zip(plans, answers.values(), strict=True))


def _expect(found: object, expected: object, query: str) -> None:
    if found != expected:
        raise AssertionError(f"it makes {found} of {query}, not {expected}")

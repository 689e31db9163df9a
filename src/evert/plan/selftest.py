"""Does this Spark plan as Evert expects? Small queries with known plans and answers, checked once a process.

Everything here rests on Catalyst's private classes. A version that moved one of them must be found when it
starts, not in the middle of an epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.errors import BadQuery, BadSchema, Unsupported
from evert.plan.catalyst import Catalyst
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
    "select id + 1, upper(word), null, null from self_stream": (4, "X", None, None),
    "select id, null, null, null from self_stream where id > 5": None,
    "select id div (id - 3), null, null, null from self_stream where id <> 3": None,
    "select id, tag, null, null from self_stream lateral view explode(tags) as tag": [
        (3, "a", None, None),
        (3, None, None, None),
    ],
    "select pos, tag, null, null from self_stream lateral view posexplode(tags) as pos, tag"
    " where tag is not null": [(0, "a", None, None)],
    "select null, concat(w, w), null, null from (select regexp_replace(word, 'x', 'yy') as w from self_stream)": (
        None,
        "yyyy",
        None,
        None,
    ),
    "select null, null, transform(tags, t -> coalesce(t, word)), null from self_stream": (
        None,
        None,
        ["a", "x"],
        None,
    ),
    "select v, k, null, null from self_stream lateral view stack(1, 'k', id) as k, v": [(3, "k", None, None)],
    "select null, cast(id as string) as s, null, amount is null from self_stream order by s": (
        None,
        "3",
        None,
        True,
    ),
}
"""Stateless queries of the same columns, and what their chain makes of one row."""

_INCREMENTAL = {
    "select word, count(*) as n, sum(id) as s, avg(amount) as a from self_stream group by word": "aggregate",
    "select max(id) as m from self_stream": "aggregate",
    "select distinct word from self_stream": "aggregate",
    "select word, count(*) as n from self_stream group by rollup (word)": "aggregate",
    "select x.id from self_stream x join self_table y on x.id = y.id and x.amount > y.amount": "upsert join",
    "select x.id from self_stream x cross join self_table y": "upsert join",
    "select id from self_stream union all select id from self_table": "upsert",
    "with t as (select id, count(*) as n from self_table group by id) select n from t": "upsert aggregate",
    "select k from self_stream join (values (1, 'x')) as v(k, w) on w = word": "join",
}
"""Queries, and the kinds of the nodes that they become, besides the output."""

_RECOMPUTED = (
    "select max(id) as m from self_table",
    "select x.id from self_stream x left join self_table y on x.id = y.id",
    "select id, row_number() over (order by id) as n from self_stream",
)
"""Queries that are not kept incrementally."""

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
        planner.register("self_stream", "stream", _SCHEMA, "t1", (), True)
        planner.register("self_table", "table", _SCHEMA, "t2", ("id",), False)
        _check_shapes(planner)
        for query, answer in _evaluated(session, planner).items():
            _expect(answer, _ANSWERS[query], query)
    except wrong as error:
        raise Unsupported(
            f"Spark {version} is not supported: {str(error).splitlines()[0]}",
            hint="pip install 'evert[spark]' installs a version that is",
        ) from error
    _passed.add(version)


def _check_shapes(planner: Planner) -> None:
    """Plans the queries as one, which costs a fraction; one by one only to name the one that is wrong."""
    whole = " union all ".join(f"(select to_json(struct(*)) as j from ({query}))" for query in _INCREMENTAL)
    shared = {"upsert"}  # of one table, whoever reads it
    kinds = [kind for kinds in _INCREMENTAL.values() for kind in kinds.split() if kind not in shared]
    if sorted(_kinds(planner, whole)) != sorted([*kinds, *shared]):
        for query, expected in _INCREMENTAL.items():
            _expect(" ".join(_kinds(planner, query)), expected, query)
        raise AssertionError("it plans queries in another way together than alone")
    for query in _RECOMPUTED:
        _expect(planner.plan(query).recomputes is not None, True, query)


def _kinds(planner: Planner, query: str) -> list[str]:
    return [node.kind for node in planner.plan(query).nodes[:-1]]


def _evaluated(session: SparkSession, planner: Planner) -> dict[str, object]:
    """What each query's chain makes of the row, all of them in one plan and one job."""
    catalyst = Catalyst(session)
    kind = pa.struct([*(pa.field(f"c{i}", one.type) for i, one in enumerate(_SCHEMA)), ("__w", pa.int64())])
    wide = session.createDataFrame(pa.table({"s": pa.array([_ROW], kind)}))
    attribute = catalyst.attribute(wide, "s")
    names = " as self_answers(n, s, l, b)"
    (chains,) = planner.plan(
        f"select * from ({' union all '.join(f'({q})' for q in _ANSWERS)}){names}"
    ).output.ports
    terms = [(f"o{i}", catalyst.guarded(attribute, chain.build(attribute))) for i, chain in enumerate(chains)]
    (answers,) = catalyst.project(wide, terms).toArrow().to_pylist()
    return dict(zip(_ANSWERS, map(_plain, answers.values()), strict=True))


def _plain(answer: Any) -> object:
    """A row as a tuple, and its weight checked."""
    if isinstance(answer, list):
        return [_plain(one) for one in answer]
    if answer is None:
        return None
    *values, weight = answer.values()
    _expect(weight, _ROW["__w"], "a weight")
    return tuple(values)


def _expect(found: object, expected: object, query: str) -> None:
    if found != expected:
        raise AssertionError(f"it makes {found} of {query}, not {expected}")

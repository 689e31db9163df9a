"""How far back changes reach, and so what nodes may forget."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evert.plan.planner import Planner

TIME = pa.timestamp("us", "UTC")
EVENTS = pa.schema({"id": pa.int64(), "who": pa.string(), "at": TIME, "seen": TIME})
MINUTE = 60_000_000
HOUR, DAY, SHIFTS = 60 * MINUTE, 24 * 60 * MINUTE, 36 * 60 * MINUTE


@pytest.fixture(scope="module")
def planner(spark):
    made = Planner(spark)
    for number, name in ((1, "a"), (2, "b")):
        made.relations.register(name, "stream", EVENTS, f"t{number}", (), True, event_time="at", forgets=True)
    made.relations.register("plain", "stream", EVENTS, "t3", (), True, event_time="at")
    made.relations.register("untimed", "stream", EVENTS, "t4", (), True)
    made.relations.register("leaves", "stream", EVENTS, "t5", (), False, event_time="at", forgets=True)
    made.relations.register("t", "table", EVENTS, "t6", ("id",), False)
    return made


def rules(plan):
    """What each trace forgets: the type of the column, or the field of a window, and the bound as text."""
    found = {}
    for node in plan.nodes:
        for rule in node.forgets:
            port = 1 if rule.trace == "right" or node.kind == "swap" else 0
            kind = node.operator.inputs[port].field(rule.column).type
            column = str(kind).partition("[")[0] if rule.field is None else kind[rule.field].name
            bound = sorted(clock if not shift else f"{clock}{shift:+}" for clock, shift in rule.before)
            found.setdefault(f"{node.kind} {rule.trace}", {})[column] = bound
    return found


FORGOTTEN = {
    "SELECT window(at, '10 minutes') AS w, count(*) AS n FROM a GROUP BY 1": {
        "aggregate groups": {"start": [f"h1-{10 * MINUTE - 1}"], "end": ["h1+1"]}
    },
    "SELECT window(at, '10 minutes', '5 minutes') AS w, count(*) AS n FROM a GROUP BY 1": {
        "aggregate groups": {
            "start": [f"h1-{10 * MINUTE - 1}"],
            "end": ["h1+1"],
        }
    },
    "SELECT date_trunc('HOUR', at) AS h, count(*) AS n FROM a GROUP BY 1": {
        "aggregate groups": {"timestamp": [f"h1-{HOUR + SHIFTS}"]}
    },
    "SELECT CAST(at AS DATE) AS d, who, count(*) AS n FROM a GROUP BY 1, 2": {
        "aggregate groups": {"date32": [f"h1-{DAY + SHIFTS}"]}
    },
    "SELECT who, session_window(at, '5 minutes') AS w, count(*) AS n FROM a GROUP BY 1, 2": {
        "sessions sessions": {"end": ["h1"]}
    },
    "SELECT a.id, b.id AS x FROM a JOIN b ON a.who = b.who AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR": {
        "join left": {"timestamp": ["h1", f"h2-{HOUR}"]},
        "join right": {"timestamp": ["h1", "h2"]},
    },
    "SELECT a.id, b.id AS x FROM a JOIN b ON a.who = b.who AND b.at >= a.at": {
        "join right": {"timestamp": ["h1", "h2"]}
    },
    "SELECT a.id, b.id AS x FROM a LEFT JOIN b ON a.who = b.who"
    " AND b.at - INTERVAL 1 MINUTE > a.at AND a.at > b.at - INTERVAL 5 MINUTES": {
        "join left": {"timestamp": ["h1", f"h2-{5 * MINUTE}"]},
        "join right": {"timestamp": [f"h1+{MINUTE}", "h2"]},
        "anti left": {"timestamp": ["h1", f"h2-{5 * MINUTE}"]},
        "anti right": {"timestamp": ["h1", f"h2-{5 * MINUTE}"]},
    },
    "SELECT a.at, count(b.id) AS n FROM a LEFT JOIN b ON a.at = b.at GROUP BY 1": {
        "join left": {"timestamp": ["h1", "h2"]},
        "join right": {"timestamp": ["h1", "h2"]},
        "anti left": {"timestamp": ["h1", "h2"]},
        "anti right": {"timestamp": ["h1", "h2"]},
        "aggregate groups": {"timestamp": ["h1", "h2"]},
    },
    "SELECT at, count(*) AS n FROM (SELECT at FROM a UNION ALL SELECT at + INTERVAL 1 MINUTE FROM b) GROUP BY 1": {
        "aggregate groups": {"timestamp": ["h1", f"h2+{MINUTE}"]}
    },
    "SELECT at, max(n) AS m FROM (SELECT at, who, count(*) AS n FROM a GROUP BY 1, 2) GROUP BY at": {
        "aggregate groups": {"timestamp": ["h1"]},
        "aggregate values1": {"timestamp": ["h1"]},
    },
    "SELECT at, id FROM a QUALIFY row_number() OVER (PARTITION BY at ORDER BY id) = 1": {
        "top rows": {"timestamp": ["h1"]}
    },
    "SELECT at, median(id) AS m FROM a GROUP BY at": {
        "rows rows": {"timestamp": ["h1"]},
        "swap rows": {"timestamp": ["h1"]},
    },
    "SELECT who, at, count(*) OVER (PARTITION BY who ORDER BY at"
    " RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND INTERVAL 2 MINUTES FOLLOWING) AS n FROM a": {
        "near rows": {"timestamp": [f"h1-{7 * MINUTE}"]},
        "swap rows": {"timestamp": [f"h1-{2 * MINUTE}"]},
    },
}


@pytest.mark.parametrize("query", FORGOTTEN)
def test_state_is_kept_as_far_back_as_changes_reach(planner, query):
    plan = planner.plan(query)
    assert rules(plan) == FORGOTTEN[query]
    assert "forgets]" in str(plan)


KEPT = [
    "SELECT who, count(*) AS n FROM a GROUP BY who",
    "SELECT seen, count(*) AS n FROM a GROUP BY seen",
    "SELECT at, count(*) AS n FROM untimed GROUP BY at",
    "SELECT at, count(*) AS n FROM leaves GROUP BY at",
    "SELECT at, count(*) AS n FROM t GROUP BY at",
    "SELECT a.id, b.id AS x FROM a JOIN b ON a.who = b.who",
    "SELECT a.id, t.id AS x FROM a JOIN t ON a.who = t.who AND t.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR",
    "SELECT a.at, count(*) AS n FROM a JOIN b ON a.who = b.who GROUP BY 1",
    "SELECT a.id, b.id AS x FROM a JOIN b ON a.who = b.who AND (b.at >= a.at OR b.id = a.id)",
    "SELECT at, count(*) AS n FROM (SELECT at FROM a UNION ALL SELECT at FROM t) GROUP BY 1",
    "SELECT add_months(at, 1) AS m, count(*) AS n FROM a GROUP BY 1",
]


@pytest.mark.parametrize("query", KEPT)
def test_what_changes_may_still_reach_is_kept(planner, query):
    plan = planner.plan(query)
    assert rules(plan) == {}
    assert "forgets" not in str(plan)


def test_what_is_above_a_time_that_is_bounded_is_bounded_too(planner):
    query = "SELECT seen, count(*) AS n FROM a WHERE {} GROUP BY seen"
    assert rules(planner.plan(query.format("seen > at"))) == {"aggregate groups": {"timestamp": ["h1"]}}
    assert rules(planner.plan(query.format("seen + INTERVAL 1 MINUTE >= at"))) == {
        "aggregate groups": {"timestamp": [f"h1-{MINUTE}"]}
    }
    assert rules(planner.plan(query.format("seen < at"))) == {}
    assert rules(planner.plan(query.format("seen > at OR id = 1"))) == {}
    assert rules(planner.plan(query.format("at IS NULL OR seen > at"))) == {}


def test_a_stream_without_a_horizon_is_not_said_to_be_forgotten(planner):
    plan = planner.plan("SELECT at, count(*) AS n FROM plain GROUP BY at")
    assert rules(plan) == {"aggregate groups": {"timestamp": ["h3"]}}
    assert "forgets" not in str(plan)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT window(at, '10 minutes') AS w, count(*) AS n FROM plain GROUP BY 1",
            {"aggregate groups": {"end": ["w3"]}},
        ),
        (
            "SELECT window(at, '10 minutes', '5 minutes') AS w, count(*) AS n FROM plain GROUP BY 1",
            {"aggregate groups": {"end": ["w3"]}},
        ),
        (
            "SELECT session_window(at, '5 minutes') AS w, count(*) AS n FROM plain GROUP BY 1",
            {"sessions sessions": {"end": ["w3"]}},
        ),
    ],
)
def test_windows_that_are_closed_are_forgotten_by_the_watermark(planner, query, expected):
    plan = planner.plan(query, emit="close")
    found = rules(plan)
    for trace, columns in expected.items():
        assert {name: found[trace][name] for name in columns} == columns
    assert "forgets]" in str(plan)


def test_a_join_that_forgets_is_not_one_that_does_not(planner):
    join = "SELECT a.id, b.id AS x FROM a JOIN b ON a.who = b.who"
    always = planner.plan(join + " AND a.at IS NOT NULL AND b.at IS NOT NULL").nodes[0]
    within = planner.plan(join + " AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR").nodes[0]
    assert always.fingerprint != within.fingerprint
    assert (bool(always.forgets), bool(within.forgets)) == (False, True)

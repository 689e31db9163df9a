"""Joins of a stream with a table as it was at the time of the event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import evert
from evert.testing import ManualClock


def at(hours):
    """So many hours after the clock of the tests begins."""
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(spark, tmp_path, clock):
    with evert.open(tmp_path / "db", background=False, clock=clock) as made:
        made.stream("orders", "id INT, country STRING, amount DECIMAL(10,2), at TIMESTAMP")
        made.table("rates", "country STRING, rate INT, since TIMESTAMP", key="country", event_time="since")
        yield made


TAXED = """
    SELECT o.id, r.rate, r._version AS version FROM orders o
    {kind} JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.country = r.country
"""


def taxed(db, kind="", name="taxed", **options):
    return db.view(name, TAXED.format(kind=kind), **options)


def order(db, *orders):
    db.topic("orders").append([{"id": i, "country": c, "amount": 10, "at": at(h)} for i, c, h in orders])


def rate(db, country, value, since):
    since = None if since is None else at(since)
    return db.topic("rates").upsert({"country": country, "rate": value, "since": since})


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def proved(db):
    return [proof.view for proof in db.prove() if not proof.holds] == []


def test_an_event_meets_the_version_that_was_valid_at_its_time(db):
    view, left = taxed(db), taxed(db, "LEFT", "left")
    rate(db, "CH", 7, 0)
    rate(db, "CH", 8, 10)
    order(db, (1, "CH", -1), (2, "CH", 0), (3, "CH", 9), (4, "CH", 10), (5, "CH", 99), (6, "DE", 5))
    db.refresh()
    assert rows(view) == [(2, 7, 0), (3, 7, 0), (4, 8, 1), (5, 8, 1)]
    assert sorted(left.rows(), key=lambda row: row["id"])[::5] == [
        {"id": 1, "rate": None, "version": None},
        {"id": 6, "rate": None, "version": None},
    ]
    assert proved(db)


def test_a_late_change_of_the_table_corrects_what_rests_on_it(db):
    view = taxed(db)
    total = db.view("total", "SELECT sum(rate) AS rates, count(*) AS n FROM taxed")
    rate(db, "CH", 7, 0)
    order(db, (1, "CH", 1), (2, "CH", 6))
    db.refresh()
    assert rows(total) == [(14, 2)]
    seen = view.position
    rate(db, "CH", 9, 5)
    db.refresh()
    assert rows(view) == [(1, 7, 0), (2, 9, 1)]
    assert rows(total) == [(16, 2)]
    (change,) = view.changes(after=seen)
    assert sorted(tuple(row.values()) for row in change.rows.to_pylist()) == [(2, 7, 0, -1), (2, 9, 1, 1)]
    assert proved(db)


def test_a_delete_ends_the_validity_and_a_row_that_comes_back_begins_another(db, clock):
    view = taxed(db)
    rate(db, "CH", 7, -5)
    clock.advance(timedelta(hours=10))
    db.topic("rates").delete("CH")
    rate(db, "CH", 8, 20)
    order(db, (1, "CH", 9), (2, "CH", 10), (3, "CH", 19), (4, "CH", 20))
    db.refresh()
    assert rows(view) == [(1, 7, 0), (4, 8, 2)]
    assert proved(db)


def test_a_row_without_a_time_is_valid_from_when_it_came_in(db, clock):
    view = taxed(db)
    rate(db, "CH", 7, None)
    clock.advance(timedelta(hours=2))
    rate(db, "CH", 8, None)
    order(db, (1, "CH", -1), (2, "CH", 0), (3, "CH", 2))
    db.refresh()
    assert rows(view) == [(2, 7, 0), (3, 8, 1)]
    assert proved(db)


@pytest.mark.parametrize("small", [0, 20_000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_table_without_times_is_as_of_when_its_rows_came_in(db, clock, monkeypatch, small, partitions):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", small)
    stock = db.table("stock", "item INT, n INT", key="item", partitions=partitions)
    sales = db.stream("sales", "item INT, at TIMESTAMP")
    now = db.view(
        "enriched",
        "SELECT s.item, p.n FROM sales s JOIN stock FOR SYSTEM_TIME AS OF s._ingested_at p ON s.item = p.item",
    )
    versions = db.view("versions", "SELECT * FROM `stock.versions`")
    for hour in range(3):
        stock.upsert([{"item": item, "n": 10 * hour + item} for item in range(4)])
        sales.append([{"item": item, "at": None} for item in (1, 3)])
        if hour:
            db.maintain()
        db.refresh()
        clock.advance(timedelta(hours=1))
    assert rows(now) == [(1, 1), (1, 11), (1, 21), (3, 3), (3, 13), (3, 23)]
    kept = versions.arrow()
    assert kept.column_names == ["item", "n", "_version", "_valid_from", "_valid_to"]
    assert len(set(kept.column("_version").to_pylist())) == 12
    assert versions.key == ("_version",)
    assert kept.column("_valid_to").null_count == 4
    assert proved(db)


def test_a_version_has_the_same_number_when_the_view_is_built_anew(db):
    view = taxed(db)
    for hour in (0, 4, 2):
        rate(db, "CH", hour, hour)
        order(db, (hour, "CH", hour + 1))
        db.refresh()
    db.maintain()
    again = taxed(db, name="again")
    db.refresh()
    assert rows(view) == rows(again) == [(0, 0, 0), (2, 2, 2), (4, 4, 1)]
    assert proved(db)


def test_the_present_rows_and_the_versions_are_read_in_one_query(db):
    view = db.view(
        "both",
        """SELECT o.id, r.rate AS then, n.rate AS now FROM orders o
        JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.country = r.country
        JOIN rates n ON n.country = o.country""",
    )
    rate(db, "CH", 7, 0)
    rate(db, "CH", 8, 5)
    order(db, (1, "CH", 1), (2, "CH", 6))
    db.refresh()
    rate(db, "CH", 9, 10)
    db.refresh()
    assert rows(view) == [(1, 7, 9), (2, 8, 9)]
    assert proved(db)


def test_another_key_for_a_row_begins_where_the_old_one_ends(db, clock):
    view = taxed(db)
    rate(db, "CH", 7, 0)
    clock.advance("2 hours")
    with db.transaction() as tx:
        tx.delete("rates", "CH")
        tx.upsert("rates", {"country": "LI", "rate": 7, "since": at(2)})
    order(db, (1, "CH", 1), (2, "CH", 2), (3, "LI", 1), (4, "LI", 2))
    db.refresh()
    assert rows(view) == [(1, 7, 0), (4, 7, 2)]
    assert proved(db)


def test_a_view_that_is_recomputed_says_the_same(db):
    view, full = taxed(db), taxed(db, name="full", refresh="full")
    for hour in (0, 4, 2):
        rate(db, "CH", hour, hour)
        order(db, (hour, "CH", hour + 1))
        db.refresh()
        assert rows(view) == rows(full)
    assert full.count() == 3


def test_a_dataframe_reads_the_versions(db):
    @db.view
    def history(spark):
        return spark.table("`rates.versions`").select("country", "rate", "_valid_from", "_valid_to")

    rate(db, "CH", 7, 0)
    rate(db, "CH", 8, 5)
    db.refresh()
    assert rows(history)[0] == ("CH", 7, at(0), at(5))
    assert proved(db)


def test_compaction_keeps_versions_as_long_as_a_view_reads_them(db, clock):
    view = taxed(db)
    for hour in range(5):
        rate(db, "CH", hour, hour)
    order(db, *((hour, "CH", hour) for hour in range(5)))
    db.refresh()
    clock.advance(timedelta(days=30))
    db.topic("rates").compact()
    assert sum(batch.num_rows for batch in db.topic("rates").read()) == 5
    again = taxed(db, name="again")
    db.refresh()
    assert rows(view) == rows(again)
    assert proved(db)
    db.drop("taxed")
    db.drop("again")
    db.topic("rates").compact()
    assert sum(batch.num_rows for batch in db.topic("rates").read()) == 1


def test_a_view_defined_after_compaction_knows_the_versions_that_are_left(db, clock):
    for hour in range(3):
        rate(db, "CH", hour, hour)
    db.topic("rates").compact()
    order(db, *((hour, "CH", hour) for hour in range(4)))
    view = taxed(db)
    db.refresh()
    assert rows(view) == [(2, 2, 2), (3, 2, 2)]
    assert proved(db)


def test_a_time_that_becomes_a_tables_own_rules_its_versions(db, clock):
    prices = db.table("prices", "item INT, price INT", key="item")
    view = db.view(
        "sold", "SELECT o.id, p.price FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.at p ON o.id = p.item"
    )
    prices.upsert({"item": 1, "price": 5})
    order(db, (1, "CH", -2), (1, "CH", 1))
    db.refresh()
    assert rows(view) == [(1, 5)]
    prices.alter("item INT, price INT, since TIMESTAMP", event_time="since")
    prices.upsert({"item": 1, "price": 6, "since": at(-3)})
    db.refresh()
    assert rows(view) == [(1, 5), (1, 6)]
    assert proved(db)


EDGES = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=UTC)]
TIMES = st.sampled_from([*map(at, range(4)), at(1) - timedelta(microseconds=1), *EDGES, None])
COUNTRY = st.sampled_from(["CH", "DE"])
STEP = st.one_of(
    st.tuples(st.just("order"), COUNTRY, TIMES),
    st.tuples(st.just("order"), COUNTRY, TIMES),
    st.tuples(st.just("rate"), COUNTRY, TIMES),
    st.tuples(st.just("delete"), COUNTRY, st.none()),
    st.tuples(st.just("wait"), st.none(), st.none()),
    st.tuples(st.just("refresh"), st.none(), st.none()),
)
MEETINGS = {
    "by time": ("rates", "o.at"),
    "by arrival": ("stock", "o.at"),
    "when processed": ("stock", "o._ingested_at"),
}


class Reference:
    """What orders and changes say by themselves, in plain Python."""

    def __init__(self):
        self.orders = []
        self.changes = []

    def valid(self, country, moment, *, own):
        """The version of a country's row at a moment: the last that was written of the latest time before it."""
        best = None
        for number, (place, value, time, came) in enumerate(self.changes):
            begin = time if own and time is not None else came
            if (
                place == country
                and moment is not None
                and begin <= moment
                and (best is None or best[0] <= begin)
            ):
                best = begin, number, value
        return None if best is None or best[2] is None else (best[2], best[1])

    def answer(self, table, expression, *, left):
        found = []
        for number, country, moment, came in self.orders:
            time = came if "_ingested_at" in expression else moment
            version = self.valid(country, time, own=table == "rates")
            if version is not None or left:
                found.append((number, *(version or (None, None))))
        return found


def test_any_events_and_changes_in_any_order(spark, tmp_path_factory):
    @settings(max_examples=5, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(STEP, min_size=15, max_size=40), st.booleans())
    def law(steps, cut):
        clock, said = ManualClock(), Reference()
        with evert.open(tmp_path_factory.mktemp("law") / "db", background=False, clock=clock) as db:
            orders = db.stream("orders", "id INT, country STRING, at TIMESTAMP")
            schema = "country STRING, rate INT, since TIMESTAMP"
            rates = db.table("rates", schema, key="country", event_time="since")
            stock = db.table("stock", schema, key="country")
            views = {}
            for left in (False, True):
                for name, (table, time) in MEETINGS.items():
                    query = f"""SELECT o.id, r.rate, r._version AS version FROM orders o {"LEFT" * left}
                        JOIN {table} FOR SYSTEM_TIME AS OF {time} r ON r.country = o.country"""
                    made = db.view(f"{name} {left}".replace(" ", "_"), query)
                    views[made.name] = made, table, time, left
            for number, (kind, country, time) in enumerate(steps):
                came = at(0) + timedelta(microseconds=clock.now() - ManualClock().now())
                if kind == "order":
                    orders.append({"id": number, "country": country, "at": time})
                    said.orders.append((number, country, time, came))
                elif kind == "rate":
                    for topic in (rates, stock):
                        topic.upsert({"country": country, "rate": number, "since": time})
                    said.changes.append((country, number, time, came))
                elif kind == "delete":
                    for topic in (rates, stock):
                        topic.delete(country)
                    said.changes.append((country, None, None, came))
                elif kind == "wait":
                    clock.advance("1 hour")
                elif cut:
                    db.refresh(timeout=120)
            db.refresh(timeout=120)
            for view, table, time, left in views.values():
                found = sorted(tuple(row.values()) for row in view.rows())
                assert found == said.answer(table, time, left=left), view.name
            assert proved(db)

    law()

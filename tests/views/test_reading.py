"""Reading a view: rows, look-ups, counts, answers at one position."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.views.engine import COLUMNS, Engine, counted, open_database

from evert.errors import NotReady, Refused, Stopped, TimedOut, UnknownView

KEYS = (0.0, 1.0, 2.5, float("inf"))


def test_a_view_gives_its_rows_as_often_as_they_are_there(engine):
    view = engine.view("sold")
    engine.epoch(5, {"sold": {("a", 1): 2, ("b", 2): 1, (None, None): 1}})
    engine.epoch(7, {"sold": {("b", 2): -1, ("a", 1): 1}})
    answer = view.answer()
    assert answer.position == view.position == 7
    assert answer.rows.schema == COLUMNS
    assert counted(answer.rows) == {("a", 1): 3, (None, None): 1}
    assert sorted(view.rows(), key=str) == sorted(answer.rows.to_pylist(), key=str)
    assert view.count() == 4


def test_an_empty_view_has_columns_and_no_rows(engine):
    view = engine.view("sold", key=["shop"])
    assert view.arrow() == COLUMNS.empty_table()
    assert (view.rows(), view.count(), view.get("a")) == ([], 0, None)


def test_a_row_is_found_by_its_key_in_whatever_run_it_lies(engine):
    view = engine.view("sold", key=["shop"])
    for position in range(1, 30):
        engine.epoch(position, {"sold": {(f"s{position}", position): 1}})
    engine.epoch(30, {"sold": {("s7", 7): -1, ("s7", 70): 1, ("s8", 8): -1}})
    assert view.get("s7") == {"shop": "s7", "n": 70}
    assert view.get("s29") == {"shop": "s29", "n": 29}
    assert view.get("s8") is None
    assert view.get("nowhere") is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, 2)), max_size=12), st.data()
)
def test_a_look_up_finds_what_the_view_holds_whatever_came_and_went(tmp_path_factory, epochs, data):
    columns = pa.schema([("at", pa.float64()), ("n", pa.int64())])
    with open_database(tmp_path_factory.mktemp("db")) as db:
        engine = Engine(db)
        view = engine.view("sold", key=["at"], columns=columns)
        held: dict[float, int] = {}
        for position, rows in enumerate(epochs, 1):
            delta: Counter[tuple[float, int]] = Counter()
            for key, n in rows.items():
                if key in held:
                    delta[key, held.pop(key)] -= 1
                if n is not None:
                    held[key] = n
                    delta[key, n] += 1
            merge = data.draw(st.booleans())
            engine.epoch(position, {"sold": {row: w for row, w in delta.items() if w}}, merge=merge)
            for key in KEYS:
                found = view.get(key)
                assert (None if found is None else found["n"]) == held.get(key)


def test_zero_and_minus_zero_are_one_key_and_so_are_all_nans(engine):
    columns = pa.schema([("at", pa.float64()), ("n", pa.int64())])
    view = engine.view("sold", key=["at"], columns=columns)
    engine.epoch(1, {"sold": {(-0.0, 1): 1, (float("nan"), 2): 1}})
    assert view.get(0.0) == {"at": 0.0, "n": 1}
    assert view.get(float("nan"))["n"] == 2


def test_a_key_may_have_several_columns_and_nulls(engine):
    columns = pa.schema([("shop", pa.string()), ("day", pa.date32()), ("n", pa.decimal128(10, 2))])
    from datetime import date
    from decimal import Decimal

    view = engine.view("daily", key=["day", "shop"], columns=columns)
    day = date(2026, 1, 2)
    engine.epoch(1, {"daily": {("a", day, Decimal("1.50")): 1, (None, day, Decimal("2.00")): 1}})
    assert view.get(day, "a") == {"shop": "a", "day": day, "n": Decimal("1.50")}
    assert view.get(day, None) == {"shop": None, "day": day, "n": Decimal("2.00")}


def test_the_only_row_of_a_view_without_key_columns_has_the_empty_key(engine):
    view = engine.view("total", key=[])
    engine.epoch(1, {"total": {("all", 3): 1}})
    assert view.get() == {"shop": "all", "n": 3}


def test_a_look_up_is_refused_without_a_key_or_with_a_wrong_one(engine):
    unkeyed, keyed = engine.view("unkeyed"), engine.view("keyed", key=["n"])
    with pytest.raises(Refused, match="the view unkeyed has no key") as refused:
        unkeyed.get("a")
    assert "key=" in refused.value.hint
    with pytest.raises(Refused, match="the key of keyed is n, and 2 values were given"):
        keyed.get(1, 2)
    with pytest.raises(Refused, match="'x' is no value of the key column n"):
        keyed.get("x")


def test_a_view_that_is_being_built_has_no_answer(db, engine):
    view = engine.define("sold")
    assert (view.state, view.columns, view.position) == ("building", None, -1)
    db.stream("clicks", "n INT").append([{"n": 1}])
    engine.plan("sold")
    for ask in (
        view.rows,
        view.arrow,
        view.count,
        view.answer,
        lambda: view.at(0),
        lambda: list(view.changes()),
    ):
        with pytest.raises(NotReady, match=r"the view sold is being built \(at position 0 of 1\)") as error:
            ask()
    assert "refresh" in error.value.hint


def test_a_stopped_view_gives_no_answer_that_is_stale_but_its_history(engine):
    view = engine.view("sold", key=["shop"])
    engine.epoch(4, {"sold": {("a", 1): 1}})
    engine.stop("sold")
    for ask in (
        view.rows,
        view.count,
        lambda: view.get("a"),
        lambda: view.at(5),
        lambda: list(view.changes()),
    ):
        with pytest.raises(Stopped, match="the view sold stopped at 4: the sum is too large") as error:
            ask()
    assert "resume" in error.value.hint
    assert "replace" in error.value.hint
    assert "at(4)" in error.value.hint
    assert (error.value.code, error.value.exit_code) == ("stopped", 13)
    assert view.at(4).rows() == [{"shop": "a", "n": 1}]
    assert view.error["message"] == "the sum is too large"


def test_a_view_that_is_resumed_has_an_answer_when_it_has_caught_up(engine):
    view = engine.view("sold")
    engine.epoch(4, {"sold": {("a", 1): 1}})
    engine.stop("sold")
    view.resume()
    assert (view.state, view.position) == ("resuming", 4)
    with pytest.raises(Stopped):
        view.rows()
    view.resume()
    engine.epoch(6, {"sold": {("b", 1): 1}})
    assert counted(view.arrow()) == {("a", 1): 1, ("b", 1): 1}
    with pytest.raises(Refused, match="is not stopped"):
        view.resume()


def test_several_views_are_answered_from_one_commit(db, engine):
    engine.view("left")
    engine.view("right")
    engine.epoch(3, {"left": {("a", 1): 1}, "right": {("a", 1): 1}})
    answers = db.answers(["left", "right"])
    assert {name: answer.position for name, answer in answers.items()} == {"left": 3, "right": 3}
    assert answers["left"].rows == answers["right"].rows
    assert list(db.answers()) == ["left", "right"]


def test_waiting_ends_when_the_view_has_reached_the_position(engine):
    view = engine.view("sold")
    with pytest.raises(TimedOut, match="is at position 0, not yet at 2"):
        view.wait(2, timeout=0.01)
    thread = threading.Thread(target=lambda: engine.epoch(3, {"sold": {("a", 1): 1}}))
    thread.start()
    assert view.wait(2, timeout=30) == 3
    thread.join()
    engine.stop("sold")
    assert view.wait(3) == 3
    with pytest.raises(Stopped):
        view.wait(4)


def test_an_unknown_view_is_named_with_the_closest_one(db, engine):
    engine.view("orders")
    with pytest.raises(UnknownView, match="there is no view 'order'") as error:
        db.view("order")
    assert error.value.hint == "did you mean orders?"


def test_a_damaged_run_is_answered_from_the_changelog(db, engine):
    view = engine.view("sold", key=["shop"])
    engine.epoch(2, {"sold": {("a", 1): 1, ("b", 2): 1}})
    engine.epoch(3, {"sold": {("b", 2): -1, ("c", 3): 1}})
    for path in (db.path / "state").iterdir():
        path.write_bytes(b"")
    assert counted(view.arrow()) == {("a", 1): 1, ("c", 3): 1}
    assert (view.count(), view.get("c"), view.get("b")) == (2, {"shop": "c", "n": 3}, None)


def test_another_process_would_read_the_same(tmp_path):
    with open_database(tmp_path / "db") as db:
        view = Engine(db).view("sold", key=["shop"])
        Engine(db).epoch(2, {"sold": {("a", 1): 1}})
        with open_database(tmp_path / "db") as other:
            assert other.views["sold"].rows() == view.rows()
            assert other.view("SOLD").get("a") == {"shop": "a", "n": 1}


def test_readers_are_right_while_runs_are_merged_and_their_files_removed(tmp_path):
    """Every row `("a", i)` is replaced by the next in one commit, so a reader sees exactly one number."""
    with open_database(tmp_path / "db") as db:
        engine = Engine(db)
        view = engine.view("sold", key=["shop"])
        shops = [f"s{i}" for i in range(20)]
        engine.epoch(1, {"sold": {(shop, 1): 1 for shop in shops}})
        done = threading.Event()
        troubles: list[BaseException] = []

        def read() -> None:
            last = 0
            try:
                while not done.is_set():
                    answer = view.answer()
                    assert set(answer.rows.column("n").to_pylist()) == {answer.position}
                    assert answer.rows.num_rows == len(shops)
                    found = view.get("s3")
                    assert found is not None
                    assert found["n"] >= answer.position >= last
                    assert view.count() == len(shops)
                    last = answer.position
            except BaseException as error:
                troubles.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for thread in readers:
            thread.start()
        for position in range(2, 60):
            delta = {(shop, position - 1): -1 for shop in shops} | {(shop, position): 1 for shop in shops}
            engine.epoch(position, {"sold": delta}, merge=position % 2 == 0)
            db.log.files.sweep()
        done.set()
        for thread in readers:
            thread.join()
        assert not troubles
        assert len(list((db.path / "state").iterdir())) <= 4

"""What every catalog promises, on every catalog there is."""

from __future__ import annotations

import threading
import time

import pytest

from evert.catalog import SqliteCatalog, acquire, release
from evert.errors import Fenced
from evert.testing import ManualClock, MemoryCatalog


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["sqlite", "memory"])
def catalog(request, tmp_path, clock):
    made = (
        SqliteCatalog(tmp_path / "db", clock=clock)
        if request.param == "sqlite"
        else MemoryCatalog(clock=clock)
    )
    yield made
    made.close()


def producers(tx):
    return [name for (name,) in tx.all("SELECT producer FROM producers ORDER BY producer")]


def insert(name):
    return lambda tx: tx.run("INSERT INTO producers VALUES (?, 0)", name)


def test_a_write_is_seen_by_the_reads_that_follow(catalog):
    catalog.write(insert("a"))
    with catalog.read() as tx:
        assert producers(tx) == ["a"]


def test_work_that_raises_leaves_nothing_and_raises_its_own_error(catalog):
    def work(tx):
        insert("a")(tx)
        raise KeyError("mine")

    version = catalog.version()
    with pytest.raises(KeyError, match="mine"):
        catalog.write(work)
    with catalog.read() as tx:
        assert producers(tx) == []
    assert catalog.version() == version


def test_a_write_returns_what_its_work_returns(catalog):
    assert catalog.write(lambda tx: tx.run("INSERT INTO producers VALUES ('a', 0), ('b', 0)")) == 2
    assert catalog.write(lambda tx: tx.one("SELECT count(*) FROM producers")) == (2,)
    assert catalog.write(lambda tx: tx.one("SELECT 1 FROM producers WHERE producer = ?", "x")) is None


def test_the_version_grows_with_every_commit_that_changes_something(catalog):
    start = catalog.version()
    catalog.write(insert("a"))
    after = catalog.version()
    assert after > start
    catalog.write(lambda tx: tx.all("SELECT * FROM producers"))
    assert catalog.version() == after


def test_a_transaction_has_one_time(catalog, clock):
    times = catalog.write(lambda tx: (tx.now, clock.advance("1 second"), tx.now))
    assert times[0] == times[2]
    with catalog.read() as tx:
        assert tx.now == times[0] + 1_000_000


def test_waiting_ends_when_another_thread_commits(catalog):
    version = catalog.version()
    thread = threading.Thread(target=lambda: (time.sleep(0.05), catalog.write(insert("a"))))
    thread.start()
    assert catalog.wait(version, 10.0)
    thread.join()
    assert catalog.version() > version


def test_waiting_ends_when_the_time_is_over(catalog):
    assert not catalog.wait(catalog.version(), 0.02)


def test_many_threads_write_all_of_their_work_and_one_failure_harms_no_other(catalog):
    failures = []

    def work(number):
        def insert_or_fail(tx):
            insert(f"{number:03}")(tx)
            if number % 7 == 0:
                raise ValueError(number)

        try:
            catalog.write(insert_or_fail)
        except ValueError as error:
            failures.append(error.args[0])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with catalog.read() as tx:
        assert producers(tx) == [f"{n:03}" for n in range(60) if n % 7]
    assert sorted(failures) == list(range(0, 60, 7))


def test_a_lease_has_one_holder_until_it_is_released(catalog):
    lease = acquire(catalog, "keeper", "a", 1_000_000)
    assert lease is not None
    assert acquire(catalog, "keeper", "b", 1_000_000) is None
    release(catalog, lease)
    assert acquire(catalog, "keeper", "b", 1_000_000) is not None


def test_a_holder_renews_its_lease_with_the_same_token(catalog, clock):
    lease = acquire(catalog, "keeper", "a", 1_000_000)
    clock.advance("900 ms")
    assert acquire(catalog, "keeper", "a", 1_000_000) == lease


def test_a_holder_that_slept_through_its_lease_cannot_commit(catalog, clock):
    lease = acquire(catalog, "keeper", "a", 1_000_000)
    clock.advance("2 seconds")
    newer = acquire(catalog, "keeper", "b", 1_000_000)
    assert newer.token > lease.token
    with pytest.raises(Fenced):
        catalog.write(lambda tx: (lease.check(tx), insert("late")(tx)))
    catalog.write(lambda tx: (newer.check(tx), insert("fine")(tx)))
    with catalog.read() as tx:
        assert producers(tx) == ["fine"]


def test_tokens_never_repeat_even_after_a_release(catalog):
    tokens = []
    for owner in ("a", "b", "a"):
        lease = acquire(catalog, "keeper", owner, 1_000_000)
        tokens.append(lease.token)
        release(catalog, lease)
    assert tokens == sorted(set(tokens))

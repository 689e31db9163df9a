"""A process forks while databases are open: parent and child both go on, and lose nothing."""

from __future__ import annotations

import os
import threading
import time

import pytest

import evert


@pytest.fixture
def folder(tmp_path):
    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("t", "n INT")
    return tmp_path / "db"


def in_child(work):
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    return child


def succeeded(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def numbers(folder):
    with evert.open(folder, background=False) as db:
        return sorted(n for batch in db.topic("t").read() for n in batch.column("n").to_pylist())


def test_a_parent_that_closes_takes_nothing_from_its_child(folder):
    db = evert.open(folder, background=False)
    topic = db.topic("t")
    topic.append({"n": 0})
    ready, go = os.pipe()

    def child():
        topic.append({"n": 1})
        os.read(ready, 1)
        for n in range(2, 6):
            topic.append({"n": n})

    process = in_child(child)
    time.sleep(0.1)
    db.close()
    os.write(go, b"!")
    assert succeeded(process)
    assert numbers(folder) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 20_000])
def test_a_fork_in_the_middle_of_other_threads_writing_leaves_the_child_able_to_write(folder, size):
    with evert.open(folder, spill_bytes=1_000) as db:
        topic = db.topic("t")
        stop = threading.Event()

        def busy():
            while not stop.is_set():
                topic.append([{"n": -1}] * size)
                list(topic.read(upto=1))

        threads = [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        children = []
        for n in range(5):
            time.sleep(0.03)
            children.append(in_child(lambda n=n: (topic.append({"n": n}), db.maintain())))
        assert all(succeeded(child) for child in children)
        stop.set()
        for thread in threads:
            thread.join()
    assert [n for n in numbers(folder) if n >= 0] == [0, 1, 2, 3, 4]


def test_closing_while_threads_write_and_read_waits_for_them_and_refuses_the_rest(folder):
    for _ in range(5):
        db = evert.open(folder, background=False)
        topic = db.topic("t")
        acknowledged, errors = [], []

        def busy(start, topic=topic, acknowledged=acknowledged, errors=errors):
            try:
                for n in range(start, start + 100_000):
                    topic.append({"n": n})
                    acknowledged.append(n)
                    next(topic.read(upto=1), None)
            except evert.EvertError as error:
                errors.append(error)

        threads = [threading.Thread(target=busy, args=(10**6 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        db.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert len(errors) == 4
        assert set(acknowledged) <= set(numbers(folder))

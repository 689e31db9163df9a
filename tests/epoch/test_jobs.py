"""Which prepared jobs are kept."""

from __future__ import annotations

from evert.epoch import jobs
from evert.epoch.jobs import Jobs


def made(kept: Jobs, key: str, nodes: int, calls: list[str]) -> object:
    return kept.get(key, nodes, lambda: calls.append(key) or object())


def test_a_job_is_made_once_and_again_after_it_was_forgotten():
    kept, calls = Jobs(), []
    assert made(kept, "a", 1, calls) is made(kept, "a", 1, calls)
    kept.forget("a")
    made(kept, "a", 1, calls)
    assert calls == ["a", "a"]


def test_jobs_that_were_not_used_for_longest_make_room_for_a_large_one():
    kept, calls = Jobs(), []
    for key in "abc":
        made(kept, key, jobs.MOST_NODES // 3, calls)
    made(kept, "a", jobs.MOST_NODES // 3, calls)
    made(kept, "d", jobs.MOST_NODES // 3, calls)
    for key in "acdb":
        made(kept, key, jobs.MOST_NODES // 3, calls)
    assert calls == [*"abcd", "b"]


def test_room_is_made_before_a_job_is():
    kept, seen = Jobs(), []
    made(kept, "a", jobs.MOST_NODES, [])
    kept.get("b", jobs.MOST_NODES + 1, lambda: seen.append(len(kept)))
    assert seen == [0]
    assert len(kept) == 1


def test_there_are_only_so_many():
    kept = Jobs()
    for number in range(jobs.MOST_JOBS + 10):
        made(kept, str(number), 1, [])
    assert len(kept) == jobs.MOST_JOBS

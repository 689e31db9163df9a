from __future__ import annotations

import pytest
from tests.cli.evert_cli import Shell


@pytest.fixture
def jobs(shell: Shell) -> Shell:
    shell.run("topics", "create", "jobs", "id BIGINT, at TIMESTAMP", "--key", "id")
    shell.run("append", "jobs", given='{"id": 1, "at": "2026-01-01T00:00:00Z"}\n{"id": 2}\n{"id": 3}\n')
    return shell


def consumed(shell: Shell, *words: object) -> list[int]:
    return [row["id"] for row in shell.lines("groups", "consume", "g", "jobs", "--wait", "0s", *words)]


def test_a_group_reads_on_from_its_last_commit(jobs: Shell) -> None:
    assert consumed(jobs, "--max-rows", 2) == [1, 2]
    assert consumed(jobs, "--max-rows", 2, "--commit") == [1, 2]
    assert consumed(jobs, "--commit") == [3]
    assert consumed(jobs) == []


def test_lag_counts_rows_and_knows_its_groups(jobs: Shell) -> None:
    consumed(jobs, "--max-rows", 1, "--commit")
    (lag,) = jobs.lines("lag")
    assert (lag["group"], lag["topic"], lag["events"]) == ("g", "jobs", 2)
    assert "rows behind" in jobs.run("lag", "jobs", "--group", "g", "--warn").stdout
    assert jobs.error("lag", "--group", "nobody", code=3)["error"] == "not_found"


def test_lag_warns_by_its_exit_code(jobs: Shell) -> None:
    consumed(jobs)
    jobs.run("topics", "alter", "jobs", "--retain", "1 millisecond")
    assert "retention" in jobs.run("lag", "--warn", code=7).stdout
    jobs.run("lag")


def test_groups_are_listed_and_reset(jobs: Shell) -> None:
    consumed(jobs, "--commit")
    assert [one["group"] for one in jobs.lines("groups")] == ["g"]
    assert "g" in jobs.run("groups").stdout
    for place, expected in (
        ("earliest", [1, 2, 3]),
        ("latest", []),
        ("0", [1, 2, 3]),
        ("1 hour ago", [1, 2, 3]),
    ):
        jobs.run("groups", "reset", "g", "--to", place, "--yes")
        assert consumed(jobs) == expected
    jobs.run("groups", "reset", "g", "--to", "earliest", code=4)
    jobs.run("groups", "reset", "nobody", "--to", "earliest", "--yes", code=3)


def test_a_message_is_taken_and_acknowledged_by_its_receipt(jobs: Shell) -> None:
    first, second = jobs.lines("queue", "take", "jobs", "-n", 2)
    assert first["row"] == {"id": 1, "at": "2026-01-01T00:00:00Z"}
    jobs.run("queue", "ack", "jobs", first["receipt"])
    assert jobs.error("queue", "ack", "jobs", first["receipt"], code=6)["error"] == "fenced"
    jobs.run("queue", "refuse", "jobs", second["receipt"], "--reason", "not now")
    (stats,) = jobs.lines("queue", "stats", "jobs")
    assert (stats["ready"], stats["in_flight"], stats["dead"]) == (2, 0, 0)
    assert "ready" in jobs.run("queue", "stats", "jobs").stdout


def test_dead_letters_are_shown_replayed_and_discarded(jobs: Shell) -> None:
    for one in jobs.lines("queue", "take", "jobs", "-n", 3):
        jobs.run("queue", "refuse", "jobs", one["receipt"], "--reason", "broken", "--max-attempts", 1)
    dead = jobs.lines("queue", "dead", "jobs")
    assert [(one["offset"], one["reason"], one["row"]["id"]) for one in dead] == [
        (0, "broken", 1),
        (1, "broken", 2),
        (2, "broken", 3),
    ]
    assert jobs.lines("queue", "replay", "jobs", "0:1")[0]["replayed"] == 1
    assert jobs.lines("queue", "replay", "jobs", "2", "--discard")[0]["discarded"] == 1
    assert jobs.lines("queue", "replay", "jobs")[0]["replayed"] == 1
    assert jobs.lines("queue", "dead", "jobs") == []
    jobs.run("queue", "replay", "jobs", "x", code=4)


def test_an_ordered_queue_is_known_again(jobs: Shell) -> None:
    jobs.run("append", "jobs", given='{"id": 1}\n')
    taken = jobs.lines("queue", "take", "jobs", "-n", 9, "--ordered")
    assert [one["row"]["id"] for one in taken] == [1, 2, 3]
    jobs.run("queue", "ack", "jobs", taken[0]["receipt"])
    assert [one["row"]["id"] for one in jobs.lines("queue", "take", "jobs", "-n", 9)] == [1]


def test_asking_about_a_queue_does_not_make_it(jobs: Shell) -> None:
    jobs.run("queue", "stats", "jobs", "--group", "nobody", code=3)
    assert jobs.lines("groups") == []

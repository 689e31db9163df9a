from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest
from tests.cli.evert_cli import PROGRAM, Shell


@pytest.fixture
def topic(shell: Shell) -> Shell:
    shell.run("topics", "create", "t", "id BIGINT")
    return shell


def until(holds: Callable[[], bool], seconds: float = 20.0) -> float:
    """Wait for something to be so; how long it took."""
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < seconds, "it did not happen in time"
        time.sleep(0.01)
    return time.monotonic() - started


def test_rows_that_trickle_through_a_pipe_are_committed_as_they_come(topic: Shell) -> None:
    for form, header, row in (("json", "", '{{"id": {}}}\n'), ("csv", "id\n", "{}\n")):
        rows = len(topic.lines("log", "t"))
        with topic.start("append", "t", "-", "--format", form) as process:
            assert process.stdin
            process.stdin.write(header)
            for number in range(3):
                process.stdin.write(row.format(number))
                process.stdin.flush()
                rows += 1
                took = until(lambda rows=rows: len(topic.lines("log", "t")) == rows)  # type: ignore[misc]
                assert number == 0 or took < 2.0
            process.stdin.close()
            assert process.wait(20) == 0


def test_a_follower_prints_rows_as_they_come_and_ends_when_interrupted(topic: Shell) -> None:
    with topic.start("log", "t", "--follow", "--json") as process:
        assert process.stdout
        topic.run("append", "t", given='{"id": 1}')
        assert json.loads(process.stdout.readline())["id"] == 1
        topic.run("append", "t", given='{"id": 2}')
        assert json.loads(process.stdout.readline())["id"] == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr
        assert process.stderr.read().strip() == ""


def test_a_follower_may_be_killed_at_any_time(topic: Shell) -> None:
    with topic.start("log", "t", "--follow") as process:
        topic.run("append", "t", given='{"id": 1}')
        assert process.stdout
        process.stdout.readline()
        process.kill()
        process.wait(20)
    topic.run("doctor", "--deep")


def test_a_reader_that_stops_reading_is_no_error(topic: Shell) -> None:
    topic.run("append", "t", given='{"id": 1}\n' * 20_000)
    with topic.start("log", "t", "--json") as process:
        assert process.stdout
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr
        assert process.stderr.read().strip() == ""


def test_a_quiet_follower_notices_that_its_reader_has_gone(topic: Shell) -> None:
    with topic.start("log", "t", "--follow") as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(20) == 141


def test_log_and_append_make_a_pipeline(topic: Shell) -> None:
    topic.run("topics", "create", "copy", "id BIGINT")
    topic.run("append", "t", given="".join(f'{{"id": {i}}}\n' for i in range(1000)))
    with (
        topic.start("log", "t", "--json", "--bare") as source,
        topic.start("append", "copy", stdin=source.stdout) as target,
    ):
        assert source.stdout
        source.stdout.close()
        assert target.wait(20) == 0
    assert [row["id"] for row in topic.lines("log", "copy")] == list(range(1000))


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(topic: Shell, shell_name: str) -> None:
    assert "_EVERT_COMPLETE" in topic.run("completion", shell_name).stdout


def completed(words: str, folder: str) -> list[str]:
    given = {
        "_EVERT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        PROGRAM, capture_output=True, text=True, timeout=60, env={**os.environ, **given, "EVERT_DB": folder}
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_the_shell_completes_commands_and_topics(topic: Shell) -> None:
    topic.run("topics", "create", "clicks", "id INT")
    assert completed("evert main", str(topic.db)) == ["maintain"]
    assert completed("evert log cl", str(topic.db)) == ["clicks"]
    assert completed("evert topics show ", str(topic.db)) == ["clicks", "t"]


def test_completion_makes_no_database(topic: Shell) -> None:
    nowhere = topic.folder / "nowhere"
    assert completed("evert log ", str(nowhere)) == []
    assert not nowhere.exists()


def test_a_command_starts_without_spark(topic: Shell) -> None:
    code = (
        "import sys\nfrom evert.cli.main import evert\n"
        "try: evert.main(['topics'])\nexcept SystemExit: pass\n"
        "assert 'pyspark' not in sys.modules and 'pandas' not in sys.modules"
    )
    environment = {**os.environ, "EVERT_DB": str(topic.db)}
    subprocess.run(
        [PROGRAM[0], "-c", code], check=True, env=environment, stdout=subprocess.DEVNULL, timeout=60
    )

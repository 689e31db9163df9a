from __future__ import annotations

from tests.cli.evert_cli import Shell


def test_the_time_of_streams_is_shown_and_rising_stragglers_are_told(shell: Shell) -> None:
    assert shell.run("status", "--time").stderr.startswith("no stream has event time")
    shell.run(
        *("topics", "create", "clicks", "phone STRING, at TIMESTAMP", "--event-time", "at"),
        *("--lateness", "10 minutes", "--source", "phone", "--late", "drop", "--idle-after", "1 hour"),
    )
    (shown,) = shell.lines("topics", "show", "clicks")
    assert (shown["options"]["lateness"], shown["options"]["late"]) == ("10 minutes", "drop")
    shell.run("append", "clicks", given='{"phone": "a", "at": "2026-05-04T12:00:00Z"}')
    assert shell.run("status").stderr == "there are no views yet\n"
    shell.run("append", "clicks", given='{"phone": "a", "at": "2026-05-04T11:00:00Z"}')
    (told,) = shell.lines("status", "--time")
    assert (told["topic"], told["sources"], told["idle"], told["events"]) == ("clicks", 1, 0, 2)
    assert (told["late"], told["dropped"], told["recently"], told["rising"]) == (1, 1, 1, True)
    assert told["watermark"].startswith("2026-05-04T11:50:00")
    said = shell.run("status", "--time")
    assert "clicks: 1 events came too late in the last hour, and are in clicks.late" in said.stderr
    assert said.stdout.splitlines()[1].split()[:1] == ["clicks"]
    assert "came too late" in shell.run("status").stderr
    assert [line["phone"] for line in shell.lines("log", "clicks.late")] == ["a"]


def test_options_of_time_can_be_changed_and_taken_away(shell: Shell) -> None:
    shell.run("topics", "create", "clicks", "at TIMESTAMP", "--event-time", "at", "--forget-after", "1 day")
    shell.run("topics", "alter", "clicks", "--forget-after", "none", "--lateness", "1 minute")
    (shown,) = shell.lines("topics", "show", "clicks")
    assert (shown["options"]["forget_after"], shown["options"]["lateness"]) == (None, "1 minute")
    said = shell.error("topics", "alter", "clicks", "--source", "at", code=4)
    assert said["error"] == "bad_option"

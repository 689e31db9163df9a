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


def test_clocks_of_devices_are_shown(shell: Shell) -> None:
    assert shell.run("status", "--clocks").stderr.startswith("no stream says what the clocks")
    shell.run(
        *("topics", "create", "telemetry", "device STRING, at TIMESTAMP, sent TIMESTAMP, received TIMESTAMP"),
        *("--source", "device", "--occurred", "at", "--sent", "sent", "--received", "received"),
        *("--min-delay", "20ms"),
    )
    (shown,) = shell.lines("topics", "show", "telemetry")
    assert shown["schema"].endswith("corrected_time TIMESTAMP, clock_error DOUBLE")
    assert shown["options"]["min_delay"] == "20 milliseconds"
    assert "no device has sent anything yet" in shell.run("status", "--clocks").stderr
    first = '{"device": "a", "at": "2026-05-04T13:00:30Z", "sent": "2026-05-04T13:00:31Z"'
    shell.run("append", "telemetry", given=first + ', "received": "2026-05-04T12:00:31.010Z"}')
    cells = "a,2026-05-04T13:01:30Z,2026-05-04T13:01:31Z,2026-05-04T12:01:31.010Z\n"
    shell.run("append", "telemetry", "--format", "csv", given="device,at,sent,received\n" + cells)
    shell.run("append", "telemetry", "--format", "csv", "--no-header", given=cells.replace(":01:", ":02:"))
    (told,) = shell.lines("status", "--clocks")
    assert (told["topic"], told["device"], told["jumps"], told["events"]) == ("telemetry", "a", 0, 3)
    assert abs(told["offset"] - 3600) < 0.1
    assert told["error"] < 5
    assert told["seen"] == "2026-05-04T12:02:31.010000+00:00"
    rows = shell.lines("log", "telemetry")
    assert [row["corrected_time"][:17] for row in rows] == [f"2026-05-04T12:0{n}:" for n in range(3)]
    assert [row["clock_error"] for row in rows] == sorted((row["clock_error"] for row in rows), reverse=True)
    said = shell.error("append", "telemetry", given='{"clock_error": 1.0}', code=4)
    assert said["column"] == "clock_error"
    assert shell.run("status", "--clocks").stdout.splitlines()[1].split()[:2] == ["telemetry", "a"]

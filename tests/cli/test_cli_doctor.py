from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.evert_cli import Shell

import evert
from evert.catalog.bell import Bell
from evert.doctor import examine_disk, file_system


@pytest.fixture
def sealed(shell: Shell) -> Shell:
    """Four rows in a segment, two in the tail."""
    shell.run("topics", "create", "t", "id BIGINT")
    shell.run("append", "t", "--batch", 2, given="".join(f'{{"id": {i}}}\n' for i in range(4)))
    shell.run("maintain")
    shell.run("append", "t", given='{"id": 4}\n{"id": 5}\n')
    return shell


def errors(shell: Shell, *words: str, code: int = 9) -> list[str]:
    return [one["what"] for one in shell.lines("doctor", *words, code=code) if one["level"] == "error"]


def segment(shell: Shell) -> Path:
    (file,) = (shell.db / "log").rglob("*.parquet")
    return file


def change(shell: Shell, sql: str) -> None:
    with closing(sqlite3.connect(shell.db / "catalog.sqlite")) as catalog, catalog:
        catalog.execute(sql)


def test_a_sound_database_is_ok(sealed: Shell) -> None:
    checks = sealed.lines("doctor", "--deep")
    assert {one["level"] for one in checks} <= {"ok", "warning"}
    assert "ok" in sealed.run("doctor").stdout


def test_a_missing_segment_is_found(sealed: Shell) -> None:
    segment(sealed).unlink()
    assert "is missing" in errors(sealed)[0]


def test_a_shortened_segment_is_found(sealed: Shell) -> None:
    file = segment(sealed)
    file.write_bytes(file.read_bytes()[:-1])
    assert "bytes" in errors(sealed)[0]


def test_a_flipped_bit_is_found_by_the_deep_check(sealed: Shell) -> None:
    file = segment(sealed)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert errors(sealed, code=0) == []
    assert "checksum" in errors(sealed, "--deep")[0]


def test_a_changed_tail_entry_is_found(sealed: Shell) -> None:
    change(sealed, "UPDATE tail SET data = zeroblob(length(data))")
    assert any("position 3" in what for what in errors(sealed))


def test_a_changed_segment_entry_is_found(sealed: Shell) -> None:
    change(sealed, "UPDATE segments SET rows = rows + 1")
    assert any("checksum" in what for what in errors(sealed))


def test_a_gap_in_the_offsets_is_found(sealed: Shell) -> None:
    change(sealed, "DELETE FROM segments")
    assert "offsets 0 to 3 of partition 0 of t are missing" in errors(sealed)
    change(sealed, "DELETE FROM tail")
    assert "offsets 0 to 5 of partition 0 of t are missing" in errors(sealed)


def test_rows_of_no_topic_are_found(sealed: Shell) -> None:
    change(sealed, "UPDATE tail SET topic = 99")
    assert any("belong to no topic" in what for what in errors(sealed))


def test_files_and_announcements_left_over_are_warnings(sealed: Shell) -> None:
    (segment(sealed).parent / "stray.parquet").write_bytes(b"?")
    change(sealed, "INSERT INTO announcements VALUES ('log/1/gone.parquet', 'me', 0)")
    change(sealed, "INSERT INTO garbage VALUES ('log/1/old.parquet', 0)")
    found = [one["what"] for one in sealed.lines("doctor") if one["level"] == "warning"]
    for name in ("stray", "gone", "old"):
        assert any(name in what for what in found)


def test_a_loss_is_corruption_until_it_is_accepted(sealed: Shell) -> None:
    bell = Bell(sealed.db / "head")
    bell.ring(10**6)
    bell.close()
    sealed.run("topics", code=9)
    assert "had been acknowledged" in errors(sealed)[0]
    sealed.run("doctor", "--accept-loss")
    sealed.run("topics")
    sealed.run("doctor")


def test_a_damaged_catalog_is_corruption(shell: Shell) -> None:
    for name in ("catalog.sqlite-wal", "catalog.sqlite-shm"):
        (shell.db / name).unlink(missing_ok=True)
    (shell.db / "catalog.sqlite").write_bytes(b"not a database at all, " * 500)
    assert len(errors(shell)) == 1


def test_no_database_is_a_warning_and_a_wrong_one_an_error(shell: Shell) -> None:
    shell.db = shell.folder / "nowhere"
    assert shell.error("doctor", code=3)["error"] == "not_a_database"
    assert not shell.db.exists()


@pytest.mark.parametrize(
    ("kind", "level"),
    [("nfs4", "error"), ("cifs", "error"), ("fuse.sshfs", "error"), ("9p", "warning"), ("ext4", "ok")],
)
def test_network_file_systems_are_refused(tmp_path: Path, kind: str, level: str) -> None:
    mounts = f"/dev/sda / xfs rw 0 0\nserver:/x {str(tmp_path).replace(' ', chr(92) + '040')} {kind} rw 0 0\n"
    assert file_system(tmp_path / "db", mounts) == kind
    assert next(examine_disk(tmp_path, mounts)).level == level
    assert file_system(Path("/"), mounts) == "xfs"


def test_a_spark_that_was_tried_by_this_version_is_told(shell: Shell) -> None:
    with evert.open(shell.db, background=False) as db:
        rows = [("spark 9.1.0", evert.__version__), ("spark 9.0.0", "an older Evert")]
        db.catalog.write(lambda tx: [tx.run("INSERT INTO engine VALUES (?, ?)", *row) for row in rows])
    said = shell.run("doctor").stdout
    assert "Spark 9.1.0 plans views as expected" in said
    assert "9.0.0" not in said

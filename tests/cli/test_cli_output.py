from __future__ import annotations

import pytest

from evert.cli.output import Sheet, columns


def written(sheet: Sheet, rows: list[list[object]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    sheet.write(rows)
    return capsys.readouterr().out.splitlines()


def test_numbers_stand_right_and_texts_left(capsys: pytest.CaptureFixture[str]) -> None:
    lines = written(Sheet(["n", "text"]), [[1, "a"], [100, None]], capsys)
    assert lines == ["  n  text", "  1  a", "100  NULL"]


def test_wide_cells_are_cut_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = written(Sheet(["id", "a", "b"], width=40), [[7, "x" * 100, "short"]], capsys)
    assert max(map(columns, lines)) <= 40
    assert lines[1].endswith("…  short")


def test_wide_letters_keep_the_columns_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    _, one, two = written(Sheet(["a", "b"]), [["日本", "x"], ["abcd", "y"]], capsys)
    assert columns(one.removesuffix("x")) == columns(two.removesuffix("y"))


def test_the_header_is_written_once_and_columns_only_widen(capsys: pytest.CaptureFixture[str]) -> None:
    sheet = Sheet(["a", "b"])
    written(sheet, [["1", "x"]], capsys)
    assert written(sheet, [["long", "y"]], capsys) == ["long  y"]
    assert written(sheet, [["1", "z"]], capsys) == ["1     z"]

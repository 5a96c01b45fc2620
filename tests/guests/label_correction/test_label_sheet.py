"""Sheets for people to grade: what stands in their cells, and labels that are read back."""
import csv
import json

import pytest
from each_case import each

from ragbed.documents import RunError
from ragbed.experiments.guests.exports.record_tables import escape_formula
from ragbed.experiments.guests.label_correction.sheets import read_labels, write_sheet
from ragbed.experiments.guests.rescoring.rejudge import Material
from ragbed.experiments.judges import GradingInput


@each(("cell", "expected"), [
    *((f"{before}=1", f"'{before}=1") for before in (
        " ", "\n", "\r\n ", "\u200b", "\ufeff", "\u00a0\u3000", "\u2060\u00ad", "\u3164", "\ufe0f", "\U000e0041")),
    ("\uff1d1", "'\uff1d1"), (" \uff0b1", "' \uff0b1"), (" a =1", " a =1"), ("\u200b", "\u200b"),
    ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\tx", "'\tx"), ("'x", "''x"), ("a=1", "a=1"),
    ("", "")])
def test_no_cell_of_a_sheet_is_a_formula(cell, expected):
    assert escape_formula(cell) == expected


def test_sheets_of_steps_show_steps_and_reasoning_and_ids_that_look_like_formulas_are_read_back(tmp_path):
    items = {("c", id): GradingInput("steps", "=who()", ("B",), "B", "-It was him.\nSure." * 20_000,
                                     ("He ran.", "He hid."))
             for id in ("=1", "'=1", "-2", "plain")}
    material, path = Material("steps", items, {}), tmp_path / "sheet.csv"
    write_sheet(path, material)
    usual = csv.field_size_limit(10**9)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    csv.field_size_limit(usual)
    names = ["'=1", "''=1", "'-2", "plain"]
    rows[1:] = sorted(rows[1:], key=lambda row: names.index(row[1]))  # they are in random order
    assert [row[1] for row in rows[1:]] == names
    assert rows[1][2:4] == ["'=who()", "0. He ran.\n1. He hid."]
    assert rows[1][4].startswith("'-It was him.")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([rows[0], *([*row[:5], grade] for row, grade in
                                               zip(rows[1:], ["0, 1", "none", "[1]", ""], strict=True))])
    labelled = read_labels(path, material).verdicts
    assert {item[1]: verdict.steps for item, verdict in labelled.items()} == {"=1": (0, 1), "'=1": (), "-2": (1,)}


ONE = Material("points", {("c", name): GradingInput("points", "?", ("a",), "b") for name in "qr"}, {})


def test_a_sheet_that_cannot_be_written_whole_is_not_there(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "sheet.csv"
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, usual[1]))
    try:
        with pytest.raises(RunError, match=r"sheet.csv: cannot be written: File too large"):
            write_sheet(path, ONE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert list(tmp_path.iterdir()) == []
    write_sheet(path, ONE)
    with pytest.raises(RunError, match="the file exists"):
        write_sheet(path, ONE)


@pytest.mark.parametrize(("content", "says"), [
    ("cell,question,grade\nc,q,7\nc,r,7,8\n", "sheet.csv, line 3: expected 3 cells, found 4"),
    ("cell,question,grade,grade\nc,q,7,8\n", "sheet.csv, line 1: expected one column grade, found 2"),
    ("\n\n", "sheet.csv, line 1: expected the columns cell, question and grade"),
    ("", "sheet.csv, line 1: expected the columns cell, question and grade")])
def test_a_sheet_with_cells_that_belong_to_no_column_or_two_is_refused_with_its_line(tmp_path, content, says):
    path = tmp_path / "sheet.csv"
    path.write_text(content)
    with pytest.raises(RunError, match=says):
        read_labels(path, ONE)


@pytest.mark.parametrize(("label", "points"), [(7, 7), ("10", 10), ("7/10", 7)])
def test_points_are_labels(tmp_path, label, points):
    material = Material("points", {("c", "q"): GradingInput("points", "?", ("a",), "b")}, {})
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"cell": "c", "question": "q", "grade": label}))
    assert read_labels(path, material).verdicts["c", "q"].points == points

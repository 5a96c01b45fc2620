"""Keep the result of a pairwise comparison in the run's folder, and show it in the report and in `ragbed compare`.

A result belongs to the answers that were compared: of others, it is not shown.
"""
from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from ragbed.experiments.analysis.view import View, make_figure
from ragbed.experiments.formatting import format_p
from ragbed.experiments.guests.run_comparison.compare import Match
from ragbed.experiments.guests.run_comparison.compared_run import ComparedRun
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import read_run_file, write_text

_FILE, _MOST = "pairwise.json", 5  # sentences in a comparison


class _Rate(BaseModel):
    mean: float | None
    low: float | None
    high: float | None
    n: int


class _Row(BaseModel):
    cell: str
    win_rate: _Rate
    pairs: int
    wins: int
    ties: int
    losses: int
    flips: int
    unread: int
    p: float
    p_holm: float


class _Stored(BaseModel):
    results: str  # a hash of the compared answers
    against: str
    judge: str
    cells: list[_Row]


def keep_pairs(run: Finished, against: str, judge: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store the rows of a comparison with one cell, in place of an earlier one with this cell and judge. Raises
    RunError if the file cannot be written."""
    results = run.summary["results"]
    kept = [one for one in _read(run.path, results) if (one["against"], one["judge"]) != (against, judge)]
    write_text(run.path / _FILE, json.dumps(
        [*kept, {"results": results, "against": against, "judge": judge, "cells": rows}], ensure_ascii=False))


def _read(path: Path, results: str) -> list[Mapping[str, Any]]:
    with contextlib.suppress(OSError, ValueError):  # there is no such file, or it is damaged
        found = TypeAdapter(list[_Stored]).validate_json(read_run_file(path / _FILE))
        return [one.model_dump() for one in found if one.results == results]
    return []


def pair_views(run: Finished) -> list[View]:
    """Return the tables of the stored comparisons, for the report."""
    return [view_pairs(one["cells"], one["against"], one["judge"]) for one in _read(run.path, run.summary["results"])]


def view_pairs(rows: Sequence[Mapping[str, Any]], base: str, judge: str) -> View:
    """Return a table of how often each cell won against one."""
    shown = tuple((row["cell"], row["pairs"], make_figure(row["win_rate"]["mean"], row["win_rate"]["low"],
                                                          row["win_rate"]["high"], row["win_rate"]["n"]),
                   row["wins"], row["ties"], row["losses"], row["flips"], row["unread"], row["p_holm"]) for row in rows)
    return View("pairwise", f"Wins against {base}, judged by {judge}", (
        "cell", "pairs", "win rate", "wins", "ties", "losses", "flips", "unread", "p"), shown, notes=(
        "Each pair was judged in both orders. A flip is a pair whose winner changed with the order; it is a tie.",
        "win rate: ties count half. p: exact sign test of wins and losses, Holm-corrected."), p=("p",))


def note_pairs(first: ComparedRun, second: ComparedRun, matches: Sequence[Match]) -> list[str]:
    """Return a sentence on each pair of compared cells whose answers a judge has compared."""
    stored = _read(first.path, first.results) if first is second else []
    found = [_describe(row, one, row["cell"] == match.baseline) for match in matches for one in stored
             for row in one["cells"] if {row["cell"], one["against"]} == {match.cell, match.baseline}]
    return found[:_MOST]


def _describe(row: Mapping[str, Any], one: Mapping[str, Any], exchanged: bool) -> str:
    cell, other = (one["against"], row["cell"]) if exchanged else (row["cell"], one["against"])
    wins, losses = (row["losses"], row["wins"]) if exchanged else (row["wins"], row["losses"])
    return (f"Judged side by side by {one['judge']}, {cell} wins {wins}, ties {row['ties']} and loses {losses} of "
            f"{row['pairs'] - row['unread']} judged pairs with {other} (sign test, p {format_p(row['p'])}).")

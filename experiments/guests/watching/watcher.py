"""Read how far a run is: answers, figures, rate and cost, from its folder or those of its shards."""
from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ragbed.documents.errors import RunError
from ragbed.documents.shards import parts
from ragbed.experiments.cells import label_rows
from ragbed.experiments.guests.watching.control import find_control
from ragbed.experiments.guests.watching.partial import is_running
from ragbed.experiments.metrics import ScoredQuestion, aggregate, may_refuse
from ragbed.experiments.report.cell_table import FAILED
from ragbed.experiments.runs.run_manifest import Made, parse_config, read_config, read_manifest
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.statistics import cluster_questions

_NEW = ("SELECT rowid, cell, question, json_extract(result, '$.answerable', '$.outcome', '$.scores'), timing"
        " FROM records WHERE rowid > ? AND question IN (SELECT id FROM questions)")
_WINDOW, _FEW, _LONGEST = 60.0, 10, 600.0  # the rate covers the last minute, or the last ten answers of ten minutes


@dataclass(slots=True)
class _Read:
    """What was read of one folder. `file` and `last` tell whether it was replaced since."""

    file: int = 0
    last: int = 0
    seed: int = 0
    clusters: dict[str, str] = field(default_factory=dict)  # by question
    answers: dict[tuple[str, str], tuple[ScoredQuestion, float | None, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellProgress:
    """One cell: its label, answers, those expected and those failed, and the headline figure so far."""

    name: str
    answers: int
    expected: int
    failed: int
    figure: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        state: `finished`, `running`, `paused`, `preparing`, or `stopped`.
        metric: the headline metric.
        rate: recent answers per second; None if there are none, or the run is not running.
        paid: dollars paid so far; None if a price is unknown.
        problem: why its control file is ignored; empty if it is not.
    """

    state: str
    cells: Sequence[CellProgress]
    metric: str
    rate: float | None
    paid: float | None
    problem: str = ""

    @property
    def answers(self) -> int:
        return sum(cell.answers for cell in self.cells)

    @property
    def expected(self) -> int:
        return sum(cell.expected for cell in self.cells)

    @property
    def seconds_left(self) -> float | None:
        """Estimate the remaining seconds; None if the rate is unknown."""
        return (self.expected - self.answers) / self.rate if self.rate else None

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {"state": self.state, "complete": self.state == "finished", "answers": self.answers,
                "expected": self.expected, "rate": self.rate and round(self.rate, 3), "metric": self.metric,
                "seconds_left": None if self.seconds_left is None else round(self.seconds_left), "paid": self.paid,
                "problem": self.problem,
                "cells": [{"name": cell.name, "answers": cell.answers, "expected": cell.expected, "failed": cell.failed,
                           "figure": cell.figure} for cell in self.cells]}


def run_folders(run: Path) -> list[Path]:
    """Return the folder of a run, or those of its shards. Raises RunError if there is neither."""
    found = [run] if (run / "records.sqlite").is_file() else parts(run) or (
        parts(run.with_suffix("")) if run.suffix == ".shards" else [])
    if not found:
        raise RunError(f"{run} holds no run and no shards; start one with `ragbed run`")
    return found


class Watcher:
    """Reads a run again and again, each time only its new records."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._read: dict[Path, _Read] = defaultdict(_Read)
        self._figures: dict[str, tuple[int, Mapping[str, Any] | None]] = {}

    def look(self) -> Progress:
        """Return the present state. Raises RunError if the run is damaged or gone."""
        folders = run_folders(self._run)
        running = [folder for folder in folders if is_running(folder)]  # before the records, which may be complete next
        made = [self._update(folder) for folder in folders if (folder / "manifest.json").is_file()]
        finished = (self._run / "summary.json").is_file()
        state = ("finished" if finished and not running else "stopped" if not running else
                 "preparing" if not made else "running")
        controls = [find_control(folder) for folder in running]
        if state == "running" and all(control.paused for control, _ in controls):
            state = "paused"
        found = replace(self._progress(state, made[0] if made else None),
                        problem=next((problem for _, problem in controls if problem), ""))
        sharded = state == "stopped" and made and made[0].shard and found.answers >= found.expected
        return replace(found, state="finished") if sharded else found  # only merged shards have a summary

    def _update(self, folder: Path) -> Made:
        read, file = self._read[folder], (folder / "records.sqlite").stat().st_ino
        with closing(RunFolder.existing(folder)) as opened, opened.database.snapshot():
            (count, last), = opened.database.read("SELECT count(*), coalesce(max(rowid), 0) FROM records")
            if file != read.file or last < read.last:
                read = self._read[folder] = _Read(file)
            if read.clusters.keys() != {*opened.question_ids()}:
                made = read_manifest(folder)
                read.clusters = dict(cluster_questions(opened.questions().values(), made.scheme.unit).of)
                read.seed = int(parse_config(read_config(folder) or "").get("seed", 0))
            for number, cell, question, scored, timing in opened.database.rows(_NEW, (read.last,)):
                answerable, outcome, scores = json.loads(scored)
                took = json.loads(timing)
                read.answers[cell, question] = (ScoredQuestion(bool(answerable), outcome, scores), took["paid"],
                                                datetime.fromisoformat(took["finished"]).timestamp())
                read.last = max(read.last, number)
            if count < len(read.answers):  # some were removed
                done = opened.done()
                read.answers = {pair: one for pair, one in read.answers.items() if pair in done}
        return read_manifest(folder)

    def _progress(self, state: str, made: Made | None) -> Progress:
        if made is None:
            return Progress(state, (), "", None, 0.0)
        rows: dict[str, list[tuple[str, ScoredQuestion]]] = {str(cell["id"]): [] for cell in made.cells}
        paid, times = [], []
        for read in self._read.values():
            for (cell, question), (scored, price, finished) in read.answers.items():
                if cell in rows:
                    rows[cell].append((question, scored))
                    paid.append(price)
                    times.append(finished)
        questions, metric = sum(len(read.clusters) for read in self._read.values()), made.scheme.headline
        cells = [CellProgress(name, len(rows[str(row["id"])]), questions, sum(
            one.outcome in FAILED for _, one in rows[str(row["id"])]), self._figure(row, rows[str(row["id"])], made))
            for row, name in zip(made.cells, label_rows(made.cells), strict=True)]
        total = None if None in paid else sum(price or 0.0 for price in paid)
        return Progress(state, cells, metric, recent_rate(times, time.time()) if state == "running" else None, total)

    def _figure(self, row: Mapping[str, Any], answers: Sequence[tuple[str, ScoredQuestion]],
                made: Made) -> Mapping[str, Any] | None:
        known = self._figures.get(row["id"])
        if not answers:
            return None
        if known is None or known[0] != len(answers):
            read = next(iter(self._read.values()))
            clusters = {name: one for part in self._read.values() for name, one in part.clusters.items()}
            found = aggregate([one for _, one in answers], made.scoring, read.seed, refusing=may_refuse(row["rules"]),
                              clusters=[clusters[name] for name, _ in answers]).get(made.scheme.headline)
            known = self._figures[row["id"]] = len(answers), dict(found) if found else None
        return known[1]


def recent_rate(times: Sequence[float], now: float) -> float | None:
    """Return the answers per second of the last minute or, if these are few, of the last ten answers."""
    recent = sorted(one for one in times if now - one <= _LONGEST)
    taken = [one for one in recent if now - one <= _WINDOW]
    taken = taken if len(taken) >= _FEW else recent[-_FEW:]
    return len(taken) / (now - taken[0]) if len(taken) > 1 and now > taken[0] else None

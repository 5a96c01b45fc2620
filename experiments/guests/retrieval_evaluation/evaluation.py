"""Run `ragbed evaluate-retrieval`, and show scores, speed and significant differences."""
from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any

import typer

from ragbed.documents.errors import SettingsError
from ragbed.documents.shards import Shard
from ragbed.experiments.analysis.pairs import difference_view
from ragbed.experiments.cells import Cell
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.datasets.qrels import judged_questions, read_qrels
from ragbed.experiments.guests.retrieval_evaluation import trec_runs
from ragbed.experiments.guests.retrieval_evaluation.statistics import (
    Measured,
    SearchStatistics,
    SearchTiming,
    measure_searches,
)
from ragbed.experiments.question import RANKED
from ragbed.experiments.record import Result
from ragbed.experiments.report.page import report_run
from ragbed.experiments.running.fingerprint import IndexKey
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.retrievers import search_scheme
from ragbed.experiments.terminal.display import note, print_json, print_table, print_text, say, stoppable
from ragbed.experiments.terminal.execution import show_shard
from ragbed.experiments.terminal.progress import RunView
from ragbed.experiments.terminal.run_tables import all_failed, on_failures, print_views
from ragbed.retrieval.types import Progress

_MAX_FILE_NAME = 80  # maximum characters of a file name: at three bytes each, they fit into the usual 255 bytes


@dataclass(slots=True)
class StageTimer:
    """Measures the seconds of each stage of building, and forwards the progress."""

    on: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=perf_counter)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        now = perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + now - self._at
        self.on(stage, done, total)
        self._at = perf_counter()


Found = Mapping[IndexKey, Measured]


def evaluate_retrieval(settings: RunSettings, foreign: Sequence[Path], runs: Path | None, fresh: bool,
                       json: bool, shard: Shard | None = None) -> None:
    """Search for every question in every cell, as a run that can be continued, and show the scores.

    Args:
        foreign: TREC runs of other programs, to score and compare.
        runs: folder for a TREC run of each cell.
        shard: write only the records of this shard.
    """
    rankings, found = read_rankings(foreign), dict[IndexKey, Measured]()
    with stoppable("finished searches are kept; rerun the command to continue"):
        with RunView() as view:
            stages = StageTimer(view.stage)
            watch = RunCallbacks(stages, view.begun, view.record, view.note,
                          lambda resources: found.update(measure_searches(resources)))
            folder = asyncio.run(run(settings, watch, fresh=fresh, shard=shard))
        try:
            if shard is not None:
                show_shard(folder, shard, print_json if json else None)
            else:
                show_evaluation(folder, rankings, runs, json, found, stages.seconds)
        finally:
            folder.close()


def show_evaluation(folder: RunFolder, rankings: Mapping[str, trec_runs.Rankings], runs: Path | None, json: bool,
                    found: Found = MappingProxyType({}), seconds: Mapping[str, float] = MappingProxyType({})) -> None:
    """Write the report of a finished evaluation and show its scores with those of other programs' rankings.

    Merged shards have no statistics and no build times. Exit status 1: every search failed.
    """
    finished = Finished.of(folder)
    report = report_run(finished)
    evaluation = trec_runs.evaluate_run(folder.path, rankings, finished.summary["notes"])
    written, qrels = _write(finished, runs) if runs is not None else ([], None)
    if json:
        print_json({"run": str(folder.path), **_plain(evaluation, found), "built": dict(seconds),
                    "runs": [str(file) for file in written], "qrels": str(qrels) if qrels else None,
                    "results": finished.summary["results"]})
    else:
        _show(evaluation, found, finished.name)
        if found and all(timing.first is None for _, timing in found.values()):
            print_text("The searches were stored earlier, so recall of exact search and speed are not shown; --fresh "
                       "searches again and measures them.")
        say(f"report: {report}")
    built = ", ".join(f"{stage} {took:.1f} s" for stage, took in seconds.items() if took >= 0.05)
    for text in [*on_failures(folder, "the same command with --fresh"), *([f"built: {built}"] if built else []),
                 *(f"TREC run: {file}" for file in written), *([f"TREC qrels: {qrels}"] if qrels else [])]:
        note(text)
    if all_failed(folder):
        raise typer.Exit(1)


def score_runs(qrels: Path, foreign: Sequence[Path], json: bool) -> None:
    """Score TREC runs by judgements and compare them. Raises UserError if a file cannot be read or has another
    format."""
    judged = read_qrels(qrels)
    questions = judged_questions(judged, {query: query for query in judged}, qrels)
    columns = search_scheme(questions, RANKED).columns
    evaluation = trec_runs.evaluate_rankings(read_rankings(foreign), questions, columns)
    if json:
        print_json(_plain(evaluation, {}))
    else:
        _show(evaluation, {}, qrels.name)


def read_rankings(files: Sequence[Path]) -> dict[str, trec_runs.Rankings]:
    """Read TREC runs by file name. Raises UserError if one cannot be read, or two have the same name."""
    names = [file.name.removesuffix(".gz").removesuffix(".run").removesuffix(".trec") or file.name for file in files]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SettingsError(f"--run: two files are called {twice}; rename one, because names label the rows")
    return {name: trec_runs.read_run(file) for name, file in zip(names, files, strict=True)}


def _write(finished: Finished, folder: Path) -> tuple[list[Path], Path | None]:
    questions = list(finished.questions.values())
    found: dict[str, list[Result]] = {cell.id: [] for cell in finished.cells}
    for result in finished.folder.results():
        if result.cell in found:
            found[result.cell].append(result)
    labels = [trec_runs.ranker_name(finished.labels[cell.id], cell.levels) for cell in finished.cells]
    written = [folder / f"{name}.run" for name in _file_names(labels)]
    for file, label, own in zip(written, labels, found.values(), strict=True):
        trec_runs.write_run(file, trec_runs.extract_rankings(own, questions), label)
    judged = folder / "qrels.txt"
    return written, judged if trec_runs.write_qrels(judged, questions) else None


def _file_names(labels: Sequence[str]) -> list[str]:
    names: list[str] = []
    taken: set[str] = set()
    for label in labels:
        plain = re.sub(r"[^\w.@+-]+", "-", label).strip("-.")[:_MAX_FILE_NAME] or "run"
        name = next(one for one in chain([plain], (f"{plain}-{number}" for number in count(2)))
                    if one.casefold() not in taken)  # because some file systems ignore case
        taken.add(name.casefold())
        names.append(name)
    return names


def _measured(line: trec_runs.Ranker, found: Found) -> Measured:
    cell = Cell.of(line.row) if line.row is not None else None
    unknown = SearchStatistics(), SearchTiming()
    return unknown if cell is None else found.get((cell.finder, cell.format), unknown)


def _plain(evaluation: trec_runs.Evaluation, found: Found) -> dict[str, Any]:
    made = evaluation.as_json()
    lines = [{**plain, "searching": asdict(sizes), "timing": asdict(timing)}
             for plain, (sizes, timing) in zip(made["lines"], (_measured(line, found) for line in evaluation.lines),
                                               strict=True)]
    return {**made, "lines": lines}


def _show(evaluation: trec_runs.Evaluation, found: Found, name: str) -> None:
    rows = [[line.name, str(len(line.answers)), *(
        "-" if (one := line.metrics.get(column)) is None else
        estimate(one["mean"], one["low"], one["high"], "z.3f") for column in evaluation.columns)]
        for line in evaluation.lines]
    print_table(["retriever", "n", *(column.replace("_", " ") for column in evaluation.columns)], rows,
                title=f"{name}: retrieval scores")
    if sizes := _columns_of([_measured(line, found) for line in evaluation.lines]):
        say("")
        print_table(["retriever", *(title for title, _ in sizes)], [
            [line.name, *(shown[place] for _, shown in sizes)] for place, line in enumerate(evaluation.lines)],
            title=f"{name}: size and speed")
    if evaluation.pairs:
        say("")
        print_views([difference_view("pairs", f"{evaluation.pairs[0][2].metric}, paired by question", ("compared",), [
            ((f"{first.name} → {second.name}",), found) for first, second, found in evaluation.pairs])])
    for text in evaluation.notes:
        print_text(text)


def _columns_of(measured: Sequence[Measured]) -> list[tuple[str, list[str]]]:
    """Return the title and the values of each column that has any value."""
    columns = [
        ("chunks", [_number(sizes.chunks) for sizes, _ in measured]),
        ("characters per chunk", [_number(sizes.characters) for sizes, _ in measured]),
        ("precision omega", ["-" if sizes.omega is None else f"{sizes.omega:.2f}" for sizes, _ in measured]),
        ("recall of exact", ["-" if sizes.exact_recall is None else f"{sizes.exact_recall:.3f} @{sizes.cut}"
                             for sizes, _ in measured]),
        ("memory, MB", [_megabytes(sizes.memory) for sizes, _ in measured]),
        ("disk, MB", [_megabytes(sizes.disk) for sizes, _ in measured]),
        ("build, s", ["-" if timing.build is None else f"{timing.build:.3f}" for _, timing in measured]),
        ("first search, s", ["-" if timing.first is None else f"{timing.first:.2f}" for _, timing in measured]),
        ("queries/s", [_number(timing.rate) for _, timing in measured]),
        ("vectors only", [_number(timing.vector_rate) for _, timing in measured])]
    return [(title, shown) for title, shown in columns if set(shown) != {"-"}]


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:,.2f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 or isinstance(value, int) else f"{value:.1f}"

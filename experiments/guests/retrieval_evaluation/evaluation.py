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

from ragbed.agents.search import Searcher
from ragbed.documents.errors import SettingsError
from ragbed.documents.shards import Shard
from ragbed.documents.types import Chunk
from ragbed.experiments.analysis.pairs import difference_view
from ragbed.experiments.benchmarks.qrels import judged_questions, read_qrels
from ragbed.experiments.cells import Cell
from ragbed.experiments.formatting import estimate
from ragbed.experiments.guests.retrieval_evaluation import trec
from ragbed.experiments.metrics import Extent, precision_omega
from ragbed.experiments.question import RANKED, Question
from ragbed.experiments.record import Result
from ragbed.experiments.report.page import report_run
from ragbed.experiments.running.fingerprint import IndexKey
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.running.runner import RunCallbacks, run
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.store import RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.retrievers import search_scheme
from ragbed.experiments.terminal.display import note, print_json, print_table, say, stoppable
from ragbed.experiments.terminal.progress import RunView
from ragbed.experiments.terminal.run import show_shard
from ragbed.experiments.terminal.tables import all_failed, on_failures, print_views
from ragbed.retrieval.types import Progress

_MAX_FILE_NAME = 80  # maximum characters of a file name: some take three bytes, and file systems allow 255 bytes


@dataclass(frozen=True, slots=True)
class SearchStatistics:
    """Size and speed of a cell's searches. They are not in the summary, because times differ between runs."""

    chunks: int | None = None  # number of searched chunks; None if a replay did not open them
    characters: float | None = None  # mean characters of a chunk, without a repeated header
    omega: float | None = None  # mean precision over characters if exactly the chunks with gold were found
    first: float | None = None  # seconds of the first search, which loads models and builds indexes
    rate: float | None = None  # queries per second after the first search, or of the only search


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


def search_statistics(resources: Resources) -> dict[IndexKey, SearchStatistics]:
    """Return statistics by the name of the retriever and by format. A question's own chunks have no format."""
    questions = resources.benchmark.questions
    indexed = {key: _statistics(resources.indexes[key].chunks if key in resources.indexes else (), questions, searcher)
               for key, searcher in resources.searchers.items()}
    return indexed | {(name, None): _statistics(pool.pool.chunks if pool.pool else (), questions, pool.searcher)
                      for name, pool in resources.pools.items()}


def _statistics(chunks: Sequence[Chunk], questions: Sequence[Question], searcher: Searcher[Any]) -> SearchStatistics:
    first, rate = searcher.times.first, searcher.times.rate
    if not chunks:
        return SearchStatistics(first=first, rate=rate)
    lengths = [chunk.end - chunk.start for chunk in chunks]
    return SearchStatistics(len(chunks), sum(lengths) / len(lengths), _omega(chunks, questions), first, rate)


def _omega(chunks: Sequence[Chunk], questions: Sequence[Question]) -> float | None:
    extents: dict[tuple[str, str], list[Extent]] = {}
    for chunk in chunks:
        extents.setdefault((chunk.document, chunk.format), []).append(
            Extent(chunk.document, chunk.format, chunk.start, chunk.end))
    found = []
    for question in questions:
        spans = [Extent(item.document, item.format, item.start, item.end) for item in question.gold
                 if item.chunk is None and item.format is not None and item.start is not None and item.end is not None]
        if spans:
            places = {(span.document, span.format) for span in spans}
            found.append(precision_omega([one for place in places for one in extents.get(place, ())], spans))
    return sum(found) / len(found) if found else None


Found = Mapping[IndexKey, SearchStatistics]


def evaluate_retrieval(settings: RunSettings, foreign: Sequence[Path], runs: Path | None, fresh: bool,
                       json: bool, shard: Shard | None = None) -> None:
    """Search for every question in every cell, as a run that can be continued, and show the scores.

    Args:
        foreign: TREC runs of other programs, to score and compare.
        runs: folder for a TREC run of each cell.
        shard: write only the records of this shard.
    """
    rankings, found = read_rankings(foreign), dict[IndexKey, SearchStatistics]()
    with stoppable("finished searches are kept; rerun the command to continue"):
        with RunView() as view:
            stages = StageTimer(view.stage)
            watch = RunCallbacks(stages, view.begun, view.record, view.note,
                          lambda resources: found.update(search_statistics(resources)))
            folder = asyncio.run(run(settings, watch, fresh=fresh, shard=shard))
        try:
            if shard is not None:
                show_shard(folder, shard, print_json if json else None)
            else:
                show_evaluation(folder, rankings, runs, json, found, stages.seconds)
        finally:
            folder.close()


def show_evaluation(folder: RunFolder, rankings: Mapping[str, trec.Rankings], runs: Path | None, json: bool,
                    found: Found = MappingProxyType({}), seconds: Mapping[str, float] = MappingProxyType({})) -> None:
    """Write the report of a finished evaluation and show its scores with those of other programs' rankings.

    Statistics and seconds of building are unknown if shards were merged. Exit status 1: every search failed.
    """
    finished = Finished.of(folder)
    report = report_run(finished)
    evaluation = trec.evaluate_run(folder.path, rankings, finished.summary["notes"])
    written = _write(finished, runs) if runs is not None else []
    if json:
        print_json({"run": str(folder.path), **_plain(evaluation, found), "built": dict(seconds),
                    "runs": [str(file) for file in written], "results": finished.summary["results"]})
    else:
        _show(evaluation, found, finished.name)
        say(f"report: {report}")
    built = ", ".join(f"{stage} {took:.1f} s" for stage, took in seconds.items() if took >= 0.05)
    for text in [*on_failures(folder, "the same command with --fresh"), *([f"built: {built}"] if built else []),
                 *(f"TREC run: {file}" for file in written)]:
        note(text)
    if all_failed(folder):
        raise typer.Exit(1)


def score_runs(qrels: Path, foreign: Sequence[Path], json: bool) -> None:
    """Score TREC runs by judgements and compare them. Raises UserError: a file cannot be read or has another format."""
    judged = read_qrels(qrels)
    questions = judged_questions(judged, {query: query for query in judged}, qrels)
    evaluation = trec.evaluate_rankings(read_rankings(foreign), questions, search_scheme(questions, RANKED).columns)
    if json:
        print_json(_plain(evaluation, {}))
    else:
        _show(evaluation, {}, qrels.name)


def read_rankings(files: Sequence[Path]) -> dict[str, trec.Rankings]:
    """Read TREC runs by file name. Raises UserError: one cannot be read, or two have the same name."""
    names = [file.name.removesuffix(".gz").removesuffix(".run").removesuffix(".trec") or file.name for file in files]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SettingsError(f"--run: two files are called {twice}; rename one, because names label the rows")
    return {name: trec.read_run(file) for name, file in zip(names, files, strict=True)}


def _write(finished: Finished, folder: Path) -> list[Path]:
    questions = list(finished.questions.values())
    found: dict[str, list[Result]] = {cell.id: [] for cell in finished.cells}
    for result in finished.folder.results():
        if result.cell in found:
            found[result.cell].append(result)
    labels = [trec.ranker_name(finished.labels[cell.id], cell.levels) for cell in finished.cells]
    written = [folder / f"{name}.run" for name in _file_names(labels)]
    for file, label, own in zip(written, labels, found.values(), strict=True):
        trec.write_run(file, trec.extract_rankings(own, questions), label)
    return written


def _file_names(labels: Sequence[str]) -> list[str]:
    names: list[str] = []
    taken: set[str] = set()
    for label in labels:
        plain = re.sub(r"[^\w.@+-]+", "-", label).strip("-.")[:_MAX_FILE_NAME] or "run"
        name = next(one for one in chain([plain], (f"{plain}-{number}" for number in count(2)))
                    if one.casefold() not in taken)  # some file systems ignore case
        taken.add(name.casefold())
        names.append(name)
    return names


def _statistics_of(line: trec.Ranker, found: Found) -> SearchStatistics:
    cell = Cell.of(line.row) if line.row is not None else None
    return SearchStatistics() if cell is None else found.get((cell.finder, cell.format), SearchStatistics())


def _plain(evaluation: trec.Evaluation, found: Found) -> dict[str, Any]:
    made = evaluation.as_json()
    lines = [{**plain, "searching": asdict(_statistics_of(line, found))}
             for plain, line in zip(made["lines"], evaluation.lines, strict=True)]
    return {**made, "lines": lines}


def _show(evaluation: trec.Evaluation, found: Found, name: str) -> None:
    searching = [_statistics_of(line, found) for line in evaluation.lines]
    extra = [(title, shown) for title, shown in (
        ("chunks", [_number(one.chunks) for one in searching]),
        ("characters per chunk", [_number(one.characters) for one in searching]),
        ("precision omega", ["-" if one.omega is None else f"{one.omega:.2f}" for one in searching]),
        ("first search, s", ["-" if one.first is None else f"{one.first:.2f}" for one in searching]),
        ("queries/s", [_number(one.rate) for one in searching])) if set(shown) != {"-"}]
    rows = [[line.name, str(len(line.answers)), *(
        "-" if (one := line.metrics.get(column)) is None else
        estimate(one["mean"], one["low"], one["high"], "z.3f") for column in evaluation.columns),
        *(shown[place] for _, shown in extra)] for place, line in enumerate(evaluation.lines)]
    print_table(["retriever", "n", *(column.replace("_", " ") for column in evaluation.columns),
                 *(title for title, _ in extra)], rows, title=f"{name}: retrieval scores")
    if evaluation.pairs:
        say("")
        print_views([difference_view("pairs", f"{evaluation.pairs[0][2].metric}, paired by question", ("compared",), [
            ((f"{first.name} → {second.name}",), found) for first, second, found in evaluation.pairs])])
    for text in evaluation.notes:
        say(text)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 or isinstance(value, int) else f"{value:.1f}"

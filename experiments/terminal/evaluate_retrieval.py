"""`ragbed evaluate-retrieval` at work: searches, and shows what was found, how fast, and which differences are real."""
from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import typer

from documents.errors import SettingsError
from experiments.analysis.trec import Evaluation, Ranker, evaluated, evaluated_alone, line_name, rankings_of
from experiments.analysis.trec_files import Rankings, read_run, write_run
from experiments.benchmarks.qrels import read_qrels
from experiments.cells import Cell
from experiments.question import RANKED, Gold, Question
from experiments.record import Result
from experiments.report.page import report_run
from experiments.running.recording import IndexKey
from experiments.running.runner import Watch, run
from experiments.runs.finished import Finished
from experiments.settings import RunSettings
from experiments.terminal.display import note, print_json, print_table, say, stoppable
from experiments.terminal.live import RunView
from experiments.terminal.run import all_failed, on_failures
from experiments.terminal.searching import Searching, Stages, searching_of, seconds_said
from experiments.words import difference, figure, probability, verdict

_TOLD = 12  # comparisons above which those that are not real are not told one by one
_NO_SEARCH = Searching()
_LONGEST = 80  # characters of a file's name: in UTF-8 some have three bytes, and 255 bytes are the most

Found = Mapping[IndexKey, Searching]


def evaluate_retrieval(settings: RunSettings, foreign: Sequence[Path], runs: Path | None, fresh: bool,
                       json: bool) -> None:
    """Search for every question in every cell, as a run that can be stopped and continued, and show it.

    Args:
        foreign: TREC runs of other programs, to be scored beside.
        runs: a folder for a TREC run of each cell.

    Raises:
        UserError: what the user can mend.
    """
    rankings, found = rankings_in(foreign), dict[IndexKey, Searching]()
    with stoppable("what was found is kept, and the same command continues"):
        with RunView() as view:
            stages = Stages(view.stage)
            watch = Watch(stages, view.begun, view.record, view.note,
                          lambda resources: found.update(searching_of(resources)))
            folder = asyncio.run(run(settings, watch, fresh=fresh))
        try:
            finished = Finished.of(folder)
            report = report_run(finished)
            evaluation = evaluated(folder.path, rankings, finished.summary["notes"])
            written = _write(finished, runs) if runs is not None else []
            if json:
                print_json({"run": str(folder.path), **_plain(evaluation, found), "built": stages.seconds,
                            "runs": [str(file) for file in written], "results": finished.summary["results"]})
            else:
                _show(evaluation, found, finished.name)
                say(f"report: {report}")
            built = seconds_said(stages.seconds)
            for text in [*on_failures(folder, "the same command with --fresh"), *([f"built: {built}"] if built else []),
                         *(f"TREC run: {file}" for file in written)]:
                note(text)
            if all_failed(folder):
                raise typer.Exit(1)
        finally:
            folder.close()


def score_runs(qrels: Path, foreign: Sequence[Path], json: bool) -> None:
    """Score TREC runs against judgements, with each other.

    Raises:
        UserError: a file cannot be read, or does not fit.
    """
    questions = [Question(query, query, (), True, gold=tuple(
        Gold(document, relevance=grade) for document, grade in judged.items() if grade > 0))
        for query, judged in read_qrels(qrels).items()]
    evaluation = evaluated_alone(rankings_in(foreign), questions, RANKED.columns)
    if json:
        print_json(_plain(evaluation, {}))
    else:
        _show(evaluation, {}, qrels.name)


def rankings_in(files: Sequence[Path]) -> dict[str, Rankings]:
    """TREC runs, by the names of their files.

    Raises:
        UserError: one cannot be read, or two have one name.
    """
    names = [file.name.removesuffix(".gz").removesuffix(".run").removesuffix(".trec") or file.name for file in files]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SettingsError(f"--run: two files are called {twice}; rename one, since it names the row")
    return {name: read_run(file) for name, file in zip(names, files, strict=True)}


def _write(finished: Finished, folder: Path) -> list[Path]:
    """A TREC run for each cell, `LABEL.run`, after one pass over the records."""
    questions = list(finished.questions.values())
    found: dict[str, list[Result]] = {cell.id: [] for cell in finished.cells}
    for result in finished.folder.results():
        if result.cell in found:
            found[result.cell].append(result)
    labels = [line_name(finished.labels[cell.id], cell.levels) for cell in finished.cells]
    written = [folder / f"{name}.run" for name in _file_names(labels)]
    for file, label, own in zip(written, labels, found.values(), strict=True):
        write_run(file, rankings_of(own, questions), label)
    return written


def _file_names(labels: Sequence[str]) -> list[str]:
    """A name for the file of each label, in letters of whatever script; those that would be one are numbered."""
    names: list[str] = []
    taken: set[str] = set()
    for label in labels:
        plain = re.sub(r"[^\w.@+-]+", "-", label).strip("-.")[:_LONGEST] or "run"
        name = next(one for one in chain([plain], (f"{plain}-{number}" for number in count(2)))
                    if one.casefold() not in taken)  # some file systems do not tell case apart
        taken.add(name.casefold())
        names.append(name)
    return names


def _searching(line: Ranker, found: Found) -> Searching:
    if line.row is None:
        return _NO_SEARCH
    cell = Cell.of(line.row)
    return found.get((cell.finder, cell.format), _NO_SEARCH)


def _plain(evaluation: Evaluation, found: Found) -> dict[str, Any]:
    made = evaluation.as_json()
    lines = [{**plain, "searching": _searching(line, found).plain()}
             for plain, line in zip(made["lines"], evaluation.lines, strict=True)]
    return {**made, "lines": lines}


def _show(evaluation: Evaluation, found: Found, name: str) -> None:
    searching = [_searching(line, found) for line in evaluation.lines]
    extra = [(title, shown) for title, shown in (
        ("chunks", [_number(one.chunks) for one in searching]),
        ("characters of one", [_number(one.characters) for one in searching]),
        ("precision omega", ["-" if one.omega is None else f"{one.omega:.2f}" for one in searching]),
        ("first search, s", ["-" if one.first is None else f"{one.first:.2f}" for one in searching]),
        ("queries/s", [_number(one.rate) for one in searching])) if set(shown) != {"-"}]
    rows = [[line.name, str(len(line.answers)), *(_figure(line, column) for column in evaluation.columns),
             *(shown[place] for _, shown in extra)] for place, line in enumerate(evaluation.lines)]
    print_table(["retriever", "n", *(column.replace("_", " ") for column in evaluation.columns),
                 *(title for title, _ in extra)], rows, title=f"{name}: what was found")
    if evaluation.pairs:
        _show_pairs(evaluation)
    for text in evaluation.notes:
        say(text)


def _show_pairs(evaluation: Evaluation) -> None:
    told = [one for one in evaluation.pairs if one[2].real or len(evaluation.pairs) <= _TOLD]
    metric = evaluation.pairs[0][2].metric
    say("")
    if told:
        print_table(["compared", "n", "difference [95 %]", "up", "down", "p", "p (Holm)", ""], [
            [f"{first.name} → {second.name}", str(found.n), difference(found), str(found.gained), str(found.lost),
             probability(found.p), probability(found.p_holm), verdict(found)] for first, second, found in told],
            title=f"{metric}, question by question")
    if len(told) < len(evaluation.pairs):
        say(f"No difference can be shown in {'the other ' if told else ''}{len(evaluation.pairs) - len(told)} of "
            f"{len(evaluation.pairs)} comparisons.")


def _figure(line: Ranker, column: str) -> str:
    found = line.metrics.get(column)
    return "-" if found is None else figure(found["mean"], found["low"], found["high"], "z.3f")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 or isinstance(value, int) else f"{value:.1f}"

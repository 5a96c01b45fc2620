"""Scoring a run again from its records: its replies read anew, its answers judged anew, and no question asked."""
from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from documents.errors import SettingsError, UserError
from experiments.analysis.agreement import JudgedAnswer
from experiments.cells import Cell
from experiments.judges import Graded, Lexical, graded_of
from experiments.metrics import GROUPS, Scoring, metric_named, scored_result
from experiments.question import Question, Scheme
from experiments.record import Result, Verdict
from experiments.running.plan import Plan
from experiments.running.rejudge import Material, judges_named, rejudge
from experiments.running.reread import Rereader
from experiments.runs.finished import Finished
from experiments.runs.store import RunFolder, hold
from experiments.settings import RunSettings
from retrieval.types import Progress


def rescore(folder: RunFolder, cells: Sequence[Cell], scheme: Scheme, scoring: Scoring) -> Iterator[Result]:
    """Yield the results of the cells with their scores computed anew, in the order of the records, without their
    traces.

    Answers are as they were read, and verdicts as they were given: where as-published scoring asks a judge otherwise,
    it is not asked again.
    """
    questions = folder.questions()
    known = {cell.id: cell for cell in cells}
    for result in folder.results(traces=True):
        if cell := known.get(result.cell):
            yield _scored(result, cell, questions[result.question], scheme, scoring)


@dataclass(slots=True)
class Read:
    """How many answers were read again, how many of them otherwise than in the run, and how many could not be."""

    same: int = 0
    otherwise: int = 0
    not_again: int = 0


@dataclass(slots=True)
class Again:
    """A run scored anew.

    Attributes:
        scheme: the run's, with the groups of the metrics that were asked for, and these as its columns.
        judge: whose verdicts the scores rest on; None where the benchmark asks none.
        notes: what a reader has to know of it.
        asked: the verdicts that were given for it, where a judge was asked.
    """

    scheme: Scheme
    scoring: Scoring
    judge: str | None
    seed: int
    results: list[Result] = field(default_factory=list)
    read: Read = field(default_factory=Read)
    notes: list[str] = field(default_factory=list)
    asked: Mapping[JudgedAnswer, Verdict] = field(default_factory=dict)


def score_anew(run: Finished, scoring: Scoring, judge: str | None, progress: Progress,
               metrics: Sequence[str] = (), plugins: Collection[str] = ()) -> Again:
    """Read every reply as this ragbed reads it, judge where that is due, and score.

    Sub-questions keep the answers that were read. Without a judge, answers that are read as before keep their verdict;
    others are judged again by the lexical judge where it is the run's, and count as unjudged where a model is.

    Args:
        judge: asked of every answer, through the run's journal.
        metrics: in the place of the columns of the run's table; of any group that needs no other judge.
        plugins: strategies of files that may be executed to read their replies again, as the settings name them.

    Raises:
        UserError: the judge or a metric is unknown, or another process works on the run.
    """
    plan, scheme = Plan.of_finished(run), _measuring(run.scheme, metrics)
    settings = plan.settings
    work = _Work(run, plan, scoring, scheme, plugins)
    asked = judge if scheme.rubric else None
    again = Again(scheme, scoring, (asked or settings.judge.name) if scheme.rubric else None, settings.seed)
    again.results = list(work.results({}))
    due = work.graded if asked else work.changed
    if due and (asked or isinstance(settings.judge, Lexical)):
        again.asked = _judged(run, settings, due, asked or "lexical", progress)
        again.results = list(work.results(again.asked))
    again.read, again.notes = work.read, list(_notes(work, again, settings))
    return again


def _measuring(scheme: Scheme, metrics: Sequence[str]) -> Scheme:
    """The scheme with these metrics as its columns, and with the groups that have them."""
    groups = list(scheme.groups)
    for name in metrics:
        metric = metric_named(name)
        having = [group for group, one in GROUPS.items() if metric.name in {other.name for other in one.metrics}]
        if not set(having) & set(groups):
            if metric.judged:
                raise SettingsError(f"{name} rests on what a judge is asked of other benchmarks; the records of this "
                                    "run hold no such verdict")
            groups.append(having[0])
    return replace(scheme, groups=tuple(groups), columns=tuple(dict.fromkeys(metrics))) if metrics else scheme


class _Work:
    """Reads and scores the records of a run, one at a time: ten thousand traces are not held at once."""

    def __init__(self, run: Finished, plan: Plan, scoring: Scoring, scheme: Scheme, plugins: Collection[str]) -> None:
        self.run, self.plan, self.scoring, self.scheme, self.plugins = run, plan, scoring, scheme, plugins
        self.cells = {cell.id: cell for cell in run.cells}
        self.graded: dict[JudgedAnswer, Graded] = {}
        self.changed: dict[JudgedAnswer, Graded] = {}
        self.read = Read()
        self.hindered: dict[str, None] = {}

    def results(self, verdicts: Mapping[JudgedAnswer, Verdict]) -> Iterator[Result]:
        """Yield every result, with these verdicts on those that they are of."""
        reader, self.read = self._reader(), Read()
        for stored in self.run.folder.results(traces=True):
            question = self.run.questions[stored.question]
            result = reader.read(stored, question) if reader else None
            self.read.same += result == stored
            self.read.otherwise += result is not None and result != stored
            self.read.not_again += result is None
            judged = self._judged(stored, result or stored, question, verdicts)
            yield _scored(judged, self.cells[stored.cell], question, self.scheme, self.scoring)

    def _reader(self) -> Rereader | None:
        try:
            plan = self.plan.showing_exemplars()
        except UserError as error:
            self.hindered = {f"no reply was read again: {error}": None}
            return None
        reader = Rereader(self.run.folder, plan, self.plugins)
        self.hindered = {f"not read again: {why}": None for why in reader.hindered.values()}
        return reader

    def _judged(self, stored: Result, result: Result, question: Question,
                verdicts: Mapping[JudgedAnswer, Verdict]) -> Result:
        item = (stored.cell, stored.question)
        due = graded_of(result, question, self.run.scheme, self.scoring)
        if due is not None:
            self.graded[item] = due
        same = result is stored or due == graded_of(stored, question, self.run.scheme, self.scoring)
        if due is not None and not same:
            self.changed[item] = due
        if item in verdicts:
            return result.model_copy(update={"verdict": verdicts[item]})
        if same:
            return result
        unasked = None if due is None else Verdict(judge=self.run.judge,
                                                    note="read otherwise than it was when it was judged")
        return result.model_copy(update={"verdict": unasked})


def _judged(run: Finished, settings: RunSettings, due: Mapping[JudgedAnswer, Graded], judge: str,
            progress: Progress) -> Mapping[JudgedAnswer, Verdict]:
    assert run.scheme.rubric is not None
    judges, material = judges_named([judge], settings), Material(run.scheme.rubric, due, {})
    with ExitStack() as held:
        if not isinstance(judges[0], Lexical):
            held.callback(hold(run.path).release)
        raters, _ = asyncio.run(rejudge(run.folder, settings, material, judges, 1, progress))
    return raters[0].verdicts


def _notes(work: _Work, again: Again, settings: RunSettings) -> Iterator[str]:
    read = work.read
    yield from work.hindered
    if read.not_again and not work.hindered:
        yield (f"{read.not_again} of {len(again.results)} replies were not read again: their strategy asks otherwise "
               "now than it did; their answers are those of the run")
    if read.otherwise:
        yield f"{read.otherwise} of {len(again.results)} replies are read otherwise than in the run"
    if work.changed and again.judge == settings.judge.name and again.judge != "lexical":
        yield (f"{len(work.changed)} of these were judged as they were read then and count as unjudged; "
               f"--judge {again.judge} asks again")
    elif again.judge == settings.judge.name and again.scoring != settings.scoring:
        yield "the verdicts are those of the run, whose judge was asked for its own scoring and is not asked again"


def _scored(result: Result, cell: Cell, question: Question, scheme: Scheme, scoring: Scoring) -> Result:
    scored = scored_result(result, question, scheme, scoring, cell.rules, cell.separators, cell.searched)
    return scored.model_copy(update={"trace": ()})  # most of a record

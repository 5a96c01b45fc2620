"""Scoring a run again from its records: its replies read anew, its answers judged anew, and no question asked.

Strategies that are none of ragbed's are played where the user allows it and their source is the recorded one, since
reading a run executes no code that came with it; and those with worked examples, while the file of these is unchanged.
"""
from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ragbed.agents.database import text_hash
from ragbed.agents.replies import parse_object
from ragbed.agents.scripted import drive
from ragbed.agents.types import Answer, CallOutcome
from ragbed.documents.errors import RecipeMismatch, SettingsError, UserError
from ragbed.documents.types import Chunk
from ragbed.experiments.analysis.agreement import JudgedAnswer
from ragbed.experiments.analysis.notes import note_support
from ragbed.experiments.cells import Cell
from ragbed.experiments.judges import Graded, Lexical, ModelSupport, SupportCheck, claims_of, graded_of
from ragbed.experiments.metrics import GROUPS, Scoring, find_metric, score_result
from ragbed.experiments.query_variations import NOT_PARAPHRASED
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result, StoredStep, Verdict
from ragbed.experiments.running.gold import PLACING
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.rejudge import Material, check_support, judges_named, rejudge
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.manifest import manifest_of
from ragbed.experiments.runs.store import RunFolder, hold
from ragbed.experiments.settings import RunSettings
from ragbed.retrieval.types import Progress
from ragbed.strategies.reading import refused_as_published
from ragbed.strategies.settings.choosing import Strategy
from ragbed.strategies.settings.plugins import FAMILIES, file_of
from ragbed.strategies.settings.source import hash_of
from ragbed.strategies.types import Failure, Generate, Reply, Search


def rescore(folder: RunFolder, cells: Sequence[Cell], scheme: Scheme, scoring: Scoring) -> Iterator[Result]:
    """Yield the cells' results, without their traces, scored anew in the order of the records. Answers are as they were
    read, and verdicts as they were given."""
    questions = folder.questions()
    known = {cell.id: cell for cell in cells}
    for result in folder.results(traces=True):
        if cell := known.get(result.cell):
            yield _scored(result, cell, questions[result.question], scheme, scoring)


def hindrance(strategy: Strategy, recorded: Mapping[str, str], allowed: Collection[str]) -> str:
    """Say why a strategy of a run is not played; empty where it may be. The hashes of sources are `recorded` in the
    run's manifest, by how settings name them, and so are the files named that the user says may be executed."""
    for kind in strategy.files:
        place = file_of(kind)
        assert place is not None
        if kind not in allowed:
            return f"{kind} is code that came with the run; read it, then give --plugin {kind} to execute it"
        try:
            if hash_of(place[0]) != recorded.get(kind):
                return f"{kind} is not the file that the run was made with"
        except SettingsError as error:
            return str(error)
    try:
        changed = [kind for kind, content in strategy.loaded().sources.items() if content != recorded.get(kind)]
    except SettingsError as error:
        return str(error)
    return f"{changed[0]} is not what the run was made with" if changed else ""


class Rereader:
    """Plays the recipes of a run over what their actions brought, as the records have it; of plugins, the files that
    the user says may be executed, as settings name them. `hindered` says why replies of a cell, by id, are not read
    again."""

    def __init__(self, folder: RunFolder, plan: Plan, plugins: Collection[str] = ()) -> None:
        self._text = folder.database.text
        self._limits = plan.settings.limits
        recorded = manifest_of(folder.path).sources
        self.hindered = {cell.id: why for cell in plan.cells if (why := next(filter(None, (
            hindrance(one, recorded, plugins) for one in plan.tasks(cell).strategies)), ""))}
        played = [cell for cell in plan.cells if cell.id not in self.hindered]
        plan = plan.loading({family: {getattr(cell, family) for cell in played} for family in FAMILIES})
        self._tasks = {cell.id: plan.tasks(cell) for cell in played}

    def read(self, result: Result, question: Question) -> Result | None:
        """Return the result, which has its trace, as its replies are read now; None where the strategy would have asked
        something else."""
        if result.outcome == "budget" and result.cell not in self.hindered:
            return result  # whatever the replies say; and what was left of its cell's limits is not recorded
        answer = None if result.cell in self.hindered else self._answer(result, question)
        if answer is None:
            return None
        placed = tuple(note for note in result.notes if note.partition(":")[0] in (*PLACING, NOT_PARAPHRASED))
        return result.model_copy(update={
            "outcome": answer.outcome, "text": answer.text, "refused": answer.refused,
            "refused_as_published": refused_as_published(answer.text), "cited": answer.cited,
            "invalid_citations": answer.invalid_citations, "tagged": answer.tagged,
            "notes": (*answer.notes, *placed), "failure": answer.failure, "figures": dict(answer.figures)})

    def _answer(self, result: Result, question: Question) -> Answer | None:
        tasks = self._tasks[result.cell]
        chunks = {passage.number: Chunk(passage.chunk, passage.document, passage.format, passage.start, passage.end,
                                        self._text(passage.text), pages=passage.pages) for passage in result.evidence}
        steps = (step for step in result.trace if step.kind != "decision")  # which the recipe makes anew

        def found(search: Search) -> Sequence[Chunk] | Failure:
            step = next(steps, None)
            if step is None or step.query != search.query:
                raise RecipeMismatch("another search is recorded")
            return step.failure or [chunks[number] for number in step.found]

        def replied(call: Generate) -> CallOutcome:
            step = next(steps, None)
            if step is None or not _same(call, step):
                raise RecipeMismatch("another call is recorded")
            parsed = parse_object(step.text) if call.schema is not None else None
            reply = Reply(step.text, step.reasoning, step.tool_calls, parsed, step.usage, step.finish_reason)
            return CallOutcome(step.key or "", step.failure or reply, replayed=True)

        try:
            asked = replace(question, text=result.asked or question.text)
            return drive(tasks.reasoning, tasks.whole(asked), lambda calls: list(map(replied, calls)),
                         lambda searches: list(map(found, searches)), self._limits)
        except RecipeMismatch:
            return None


def _same(call: Generate, step: StoredStep) -> bool:
    return [(message.role, tuple(map(text_hash, message.parts)), message.call_id, *map(dict, message.tool_calls))
            for message in call.messages] == [
        (message.role, message.parts, message.call_id, *message.tool_calls) for message in step.messages]


@dataclass(slots=True)
class Read:
    """How many answers were read again, how many of them otherwise than in the run, and how many could not be."""

    same: int = 0
    otherwise: int = 0
    not_again: int = 0


@dataclass(slots=True)
class Again:
    """A run scored anew."""

    scheme: Scheme  # the run's, with the groups of the metrics that were asked for, and these as its columns
    scoring: Scoring
    judge: str | None  # whose verdicts the scores rest on; None where the benchmark asks none
    seed: int
    results: list[Result] = field(default_factory=list)
    read: Read = field(default_factory=Read)
    notes: list[str] = field(default_factory=list)  # what a reader has to know of it
    asked: Mapping[JudgedAnswer, Verdict] = field(default_factory=dict)  # given for it, where a judge was asked


def score_anew(run: Finished, scoring: Scoring, judge: str | None, progress: Progress, metrics: Sequence[str] = (),
               plugins: Collection[str] = (), support: SupportCheck | None = None) -> Again:
    """Read every reply as this ragbed reads it, judge where that is due, and score. Sub-questions keep the answers that
    were read. Without a judge, answers that are read as before keep their verdict; others are judged again by the
    lexical judge where it is the run's, and count as unjudged where a model is. A judge is asked of every answer,
    through the run's journal. Metrics, of any group that needs no other judge, take the place of the columns of the
    run's table. A check of support labels sentences and nuggets anew. Plugins are strategies of files that may be
    executed to read their replies again, as settings name them. Raises UserError where the judge or a metric is
    unknown, or another process works on the run."""
    plan = Plan.of_finished(run)
    settings = plan.settings
    measured = run.scheme if support is None else support.scheme_of(run.scheme, run.questions.values())
    scheme = _measuring(measured, metrics)
    work = _Work(run, plan, scoring, scheme, plugins)
    again = Again(scheme, scoring, (judge or settings.judge.name) if scheme.rubric else None, settings.seed)
    again.results = list(work.results({}))
    due = work.graded if judge else work.changed
    if due and scheme.rubric and (judge or isinstance(settings.judge, Lexical)):
        judges = judges_named([judge or "lexical"], settings)
        with ExitStack() as held:
            if not isinstance(judges[0], Lexical):
                held.callback(hold(run.path).release)
            material = Material(scheme.rubric, due, {})
            (rater,), _ = asyncio.run(rejudge(run.folder, settings, material, judges, 1, progress))
        again.asked = rater.verdicts
        again.results = list(work.results(again.asked))
    again.read, again.notes = work.read, list(_notes(work, again, settings))
    if support is not None:
        _check(again, work, support, progress)
    return again


def _check(again: Again, work: _Work, check: SupportCheck, progress: Progress) -> None:
    run, text = work.run, work.run.folder.database.text
    claims = {(one.cell, one.question): due for one in again.results if (due := claims_of(
        one, run.questions[one.question], work.cells[one.cell],
        {passage.number: text(passage.text) for passage in one.evidence}, check))}
    with ExitStack() as held:
        if isinstance(check, ModelSupport):
            held.callback(hold(run.path).release)
        found = asyncio.run(check_support(run.folder, work.plan.settings, check, claims, progress))
    again.results = [_scored(one.model_copy(update={"support": found.get((one.cell, one.question))}),
                             work.cells[one.cell], run.questions[one.question], work.scheme, work.scoring)
                     for one in again.results]
    again.notes += note_support(check.name, found.values())


def _measuring(scheme: Scheme, metrics: Sequence[str]) -> Scheme:
    groups = list(scheme.groups)
    for name in metrics:
        metric = find_metric(name)
        having = [group for group, one in GROUPS.items() if metric.name in {other.name for other in one.metrics}]
        if not set(having) & set(groups):
            if having[0] in ("sentences", "nuggets"):
                raise SettingsError(f"{name} rests on a check of support, which this run was made without; give "
                                    "--support")
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
        item, verdict = (stored.cell, stored.question), result.verdict
        due = graded_of(result, question, self.run.scheme, self.scoring)
        same = result is stored or due == graded_of(stored, question, self.run.scheme, self.scoring)
        if due is not None:
            self.graded[item] = due
        if not same:
            verdict = None if due is None else Verdict(judge=self.run.judge,
                                                       note="read otherwise than it was when it was judged")
            self.changed |= {} if due is None else {item: due}
        kept = result.support if result.text == stored.text and result.cited == stored.cited else None
        return result.model_copy(update={"verdict": verdicts.get(item, verdict), "support": kept})


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
    scored = score_result(result, question, scheme, scoring, cell.rules, cell.separators, cell.ranked)
    return scored.model_copy(update={"trace": ()})  # most of a record

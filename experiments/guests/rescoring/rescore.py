"""Rescore a run from its records: parse its replies and judge its answers again, without asking the questions again.

Reading a run executes no code that came with it. Plug-in strategies run only if the user allows it and their source is
unchanged. Strategies with worked examples run only if the examples' file is unchanged."""
from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from ragbed.agents.database import text_hash
from ragbed.agents.replies import parse_object
from ragbed.agents.scripted import drive
from ragbed.agents.search import SearchStore
from ragbed.agents.tools import TOOL_FAILED, StoredTools, ToolOutput, tools_name
from ragbed.agents.types import Answer, CallOutcome
from ragbed.agents.watchdog import watchdog
from ragbed.documents.errors import RecipeMismatch, SettingsError, UserError
from ragbed.documents.types import Chunk
from ragbed.experiments.cells import Cell
from ragbed.experiments.guests.answer_support.support_checks import ModelSupport, SupportCheck, extract_claims
from ragbed.experiments.guests.own_metrics.measuring import Measuring, read_metrics
from ragbed.experiments.guests.refusals.decision import DECIDED, settle_words
from ragbed.experiments.guests.rescoring.rejudge import JudgedAnswer, Material, check_support, find_judges, rejudge
from ragbed.experiments.judges import GradingInput, Lexical, grading_input
from ragbed.experiments.metrics import GROUPS, Scoring, find_metric, score_result
from ragbed.experiments.metrics.scoring import DECLARED
from ragbed.experiments.query_variations import NOT_PARAPHRASED
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import Result, StoredStep, Verdict
from ragbed.experiments.running.fingerprint import content_name
from ragbed.experiments.running.gold import PLACING
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.finished import Finished
from ragbed.experiments.runs.run_manifest import read_manifest
from ragbed.experiments.runs.store import RunFolder, lock_run
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.texts import parse_spec
from ragbed.retrieval.types import Progress
from ragbed.strategies.reading import REWORDED, is_published_refusal
from ragbed.strategies.settings.plugins import parse_file_kind
from ragbed.strategies.settings.source import hash_file
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import FAMILIES, Failure, Generate, Reply, Search, ToolCall


def rescore(folder: RunFolder, cells: Sequence[Cell], scheme: Scheme, scoring: Scoring) -> Iterator[Result]:
    """Yield the cells' results with new scores, without traces, in the order of the records. Answers and verdicts do
    not change."""
    questions = folder.questions()
    known = {cell.id: cell for cell in cells}
    for result in folder.results(traces=True):
        if cell := known.get(result.cell):
            yield _score_again(result, cell, questions[result.question], scheme, scoring)


def explain_hindrance(strategy: Strategy, recorded: Mapping[str, str], allowed: Collection[str]) -> str:
    """Return why a strategy of a run cannot be played; empty if it can. `recorded` has the source hashes in the run's
    manifest. `allowed` has the files that may be executed. The keys of both are the names in the settings."""
    for kind in strategy.files:
        place = parse_file_kind(kind)
        assert place is not None
        if kind not in allowed:
            return f"{kind} is code that came with the run; read it, then give --plugin {kind} to execute it"
        try:
            if hash_file(place[0]) != recorded.get(kind):
                return f"{kind} has changed since the run"
        except SettingsError as error:
            return str(error)
    try:
        changed = [kind for kind, content in strategy.loaded().sources.items() if content != recorded.get(kind)]
    except SettingsError as error:
        return str(error)
    return f"{changed[0]} has changed since the run" if changed else ""


class Rereader:
    """Play the recipes of a run over the recorded replies and searches.

    Args:
        plugins: files that the user allows to execute, as settings name them.

    Attributes:
        hindered: reasons why replies are not read again, by cell id.
    """

    def __init__(self, folder: RunFolder, plan: Plan, plugins: Collection[str] = ()) -> None:
        self._text = folder.database.text
        self._limits = plan.settings.limits
        recorded = read_manifest(folder.path).sources
        self.hindered = {cell.id: why for cell in plan.cells if (why := next(filter(None, (
            explain_hindrance(one, recorded, plugins) for one in plan.tasks(cell).strategies)), ""))}
        played = [cell for cell in plan.cells if cell.id not in self.hindered]
        plan = plan.loading({family: {getattr(cell, family) for cell in played} for family in FAMILIES})
        self._tasks = {cell.id: plan.tasks(cell) for cell in played}
        pins, store = folder.pins(), SearchStore()
        store.begin(folder.database, "record")
        self._tools = {id: StoredTools(tasks.tools, None, store, pins.get(
            content_name("tools", tools_name(tasks.tools)), "")).specs for id, tasks in self._tasks.items()}

    def read(self, result: Result, question: Question) -> Result | None:
        """Parse the replies of a result with this version of ragbed. Return None if the strategy would now send other
        requests. The result must have its trace.
        """
        if result.outcome == "budget" and result.cell not in self.hindered:
            return result  # the same for every reply, because the run does not record the cell's other limits
        answer = None if result.cell in self.hindered else self._answer(result, question)
        if answer is None:
            return None
        decided = answer.text == result.text and answer.outcome == "answered" and any(
            note.startswith(DECIDED) for note in result.notes)
        if not decided:
            answer = settle_words(answer, question)
        placed = tuple(note for note in result.notes if note.partition(":")[0] in (
            *PLACING, NOT_PARAPHRASED, *[DECIDED, REWORDED] * decided))
        if decided:
            answer = replace(answer, outcome=result.outcome, refused=result.refused)
        return result.model_copy(update={
            "outcome": answer.outcome, "text": answer.text, "refused": answer.refused,
            "refused_as_published": is_published_refusal(answer.text), "cited": answer.cited,
            "invalid_citations": answer.invalid_citations, "tagged": answer.tagged,
            "notes": (*answer.notes, *placed), "failure": answer.failure, "figures": dict(answer.figures)})

    def _answer(self, result: Result, question: Question) -> Answer | None:
        tasks = self._tasks[result.cell]
        chunks = {passage.number: Chunk(passage.chunk, passage.document, passage.format, passage.start, passage.end,
                                        self._text(passage.text), pages=passage.pages) for passage in result.evidence}
        steps = (step for step in result.trace if step.kind != "decision")  # the recipe repeats decisions

        def found(search: Search) -> Sequence[Chunk] | Failure:
            step = next(steps, None)
            if step is None or step.query != search.query:
                raise RecipeMismatch("the strategy now sends different searches from those recorded")
            return step.failure or [chunks[number] for number in step.found]

        def called(call: ToolCall) -> ToolOutput | Failure:
            step = next(steps, None)
            if step is None or (step.purpose, step.arguments) != (call.tool, call.arguments):
                raise RecipeMismatch("the strategy now calls other tools than those recorded")
            if step.failure and step.failure.kind != TOOL_FAILED:
                return step.failure
            return ToolOutput(tuple(self._text(part) if isinstance(part, str) else chunks[part] for part in step.parts),
                              step.failure.message if step.failure else "")

        def replied(call: Generate) -> CallOutcome:
            step = next(steps, None)
            if step is None or not _is_same_request(call, step):
                raise RecipeMismatch("the strategy now sends different calls from those recorded")
            parsed = None if call.schema is None else parse_object(step.text, call.schema)
            reply = Reply(step.text, step.reasoning, step.tool_calls, parsed, step.usage, step.finish_reason)
            return CallOutcome(step.key or "", step.failure or reply, replayed=True)

        try:
            asked = replace(question, text=result.asked or question.text)
            task = replace(tasks.whole(asked), tools=self._tools[result.cell])
            return drive(tasks.reasoning, task, lambda calls: list(map(replied, calls)),
                         lambda searches: list(map(found, searches)), self._limits,
                         lambda calls: list(map(called, calls)))
        except RecipeMismatch:
            return None


def _is_same_request(call: Generate, step: StoredStep) -> bool:
    return [(message.role, tuple(map(text_hash, message.parts)), message.call_id, *map(dict, message.tool_calls))
            for message in call.messages] == [
        (message.role, message.parts, message.call_id, *message.tool_calls) for message in step.messages]


@dataclass(slots=True)
class Read:
    """Numbers of answers that were parsed as before, parsed differently, or not parsed again."""

    same: int = 0
    changed: int = 0
    skipped: int = 0


@dataclass(slots=True)
class Again:
    """The result of rescoring a run.

    Attributes:
        scheme: the run's scheme, with the requested metrics as columns and their groups added.
        judge: the judge whose verdicts the scores use; None if the benchmark needs no judge.
        notes: notes for the reader.
        asked: new verdicts if a judge was called, or None.
    """

    scheme: Scheme
    scoring: Scoring
    judge: str | None
    seed: int
    results: list[Result] = field(default_factory=list)
    read: Read = field(default_factory=Read)
    notes: list[str] = field(default_factory=list)
    asked: Mapping[JudgedAnswer, Verdict] = field(default_factory=dict)


def score_anew(run: Finished, scoring: Scoring, judge: str | None, progress: Progress, metrics: Sequence[str] = (),
               plugins: Collection[str] = (), support: SupportCheck | None = None) -> Again:
    """Read every reply with this version of ragbed, judge if needed, and score.

    Sub-questions keep their answers. Without `judge`, an answer that is parsed as before keeps its verdict. The lexical
    judge judges other answers again. If the run's judge is a model, they count as unjudged.

    Args:
        judge: judges every answer, using the run's journal.
        metrics: metrics that replace the columns of the run's table. Their groups must need no other judge. A
            function is named as in the setting `metrics`, and executed.
        plugins: strategy files that may be executed to read their replies, as settings name them.
        support: support check that labels sentences and nuggets again.

    Raises:
        UserError: the judge or a metric is unknown, or another process works on the run.
    """
    plan = Plan.of_finished(run)
    settings = plan.settings
    shown = replace(run.scheme, columns=tuple(run.summary["columns"]))
    measured = shown if support is None else support.scheme_of(shown, run.questions.values())
    code = [name for name in metrics if ":" in name]
    own = read_metrics([parse_spec(name, "--metric") for name in code]) if code else None
    scheme = _add_columns(measured, [*(name for name in metrics if name not in code), *(own.names if own else ())])
    work = _Work(run, plan, scoring, scheme, plugins, own.open() if own else None)
    again = Again(scheme, scoring, (judge or settings.judge.name) if scheme.rubric else None, settings.seed)
    with watchdog():
        again.results = list(work.results({}))
    due = work.graded if judge else work.changed
    if due and scheme.rubric and (judge or isinstance(settings.judge, Lexical)):
        judges = find_judges([judge or "lexical"], settings)
        with ExitStack() as held:
            if not isinstance(judges[0], Lexical):
                held.callback(lock_run(run.path).release)
            material = Material(scheme.rubric, due, {})
            (rater,), _ = asyncio.run(rejudge(run.folder, settings, material, judges, 1, progress))
        again.asked = rater.verdicts
        with watchdog():
            again.results = list(work.results(again.asked))
    again.read, again.notes = work.read, list(_notes(work, again, settings))
    if support is not None:
        _check(again, work, support, progress)
    if own:
        again.notes += dict.fromkeys(own.review(again.results).values())
        columns = [one for one in scheme.columns if one not in own.names]
        again.scheme = replace(scheme, columns=(*columns, *own.returned(again.results)))
    return again


def _check(again: Again, work: _Work, check: SupportCheck, progress: Progress) -> None:
    run, text = work.run, work.run.folder.database.text
    claims = {(one.cell, one.question): due for one in again.results if (due := extract_claims(
        one, run.questions[one.question], work.cells[one.cell],
        {passage.number: text(passage.text) for passage in one.evidence}, check))}
    with ExitStack() as held:
        if isinstance(check, ModelSupport):
            held.callback(lock_run(run.path).release)
        found = asyncio.run(check_support(run.folder, work.plan.settings, check, claims, progress))
    again.results = [_score_again(one.model_copy(update={"support": found.get((one.cell, one.question))}),
                                  work.cells[one.cell], run.questions[one.question], work.scheme, work.scoring)
                     for one in again.results]
    again.notes.append(check.note(found.values()))


def _add_columns(scheme: Scheme, metrics: Sequence[str]) -> Scheme:
    groups = list(scheme.groups)
    for name in metrics:
        metric = find_metric(name)
        if metric.name in DECLARED:
            continue
        having = [group for group, one in GROUPS.items() if metric.name in {other.name for other in one.metrics}]
        if not set(having) & set(groups):
            if having[0] in ("sentences", "nuggets"):
                raise SettingsError(f"{name} needs a support check, which this run did not have; give --support"
                                    "")
            if metric.judged:
                raise SettingsError(f"{name} needs verdicts by a rubric that this run does not use; choose "
                                    "another metric")
            groups.append(having[0])
    return replace(scheme, groups=tuple(groups), columns=tuple(dict.fromkeys(metrics))) if metrics else scheme


class _Work:
    """Read and score the records of a run one at a time: ten thousand traces do not fit in memory."""

    def __init__(self, run: Finished, plan: Plan, scoring: Scoring, scheme: Scheme, plugins: Collection[str],
                 own: Measuring | None = None) -> None:
        self.run, self.plan, self.scoring, self.scheme, self.plugins = run, plan, scoring, scheme, plugins
        self.cells, self.own = {cell.id: cell for cell in run.cells}, own
        self.graded: dict[JudgedAnswer, GradingInput] = {}
        self.changed: dict[JudgedAnswer, GradingInput] = {}
        self.read = Read()
        self.hindered: dict[str, None] = {}

    def results(self, verdicts: Mapping[JudgedAnswer, Verdict]) -> Iterator[Result]:
        """Yield every result, with new verdicts where there are any."""
        reader, self.read = self._reader(), Read()
        for stored in self.run.folder.results(traces=True):
            question = self.run.questions[stored.question]
            result = reader.read(stored, question) if reader else None
            self.read.same += result == stored
            self.read.changed += result is not None and result != stored
            self.read.skipped += result is None
            judged = self._attach_verdict(stored, result or stored, question, verdicts)
            cell = self.cells[stored.cell]
            if self.own:
                judged = self.own.measure(judged, question, cell, self.run.folder.database.text)
            yield _score_again(judged, cell, question, self.scheme, self.scoring)

    def _reader(self) -> Rereader | None:
        try:
            plan = self.plan.with_prompt_files()
        except UserError as error:
            self.hindered = {f"no reply was read again: {error}": None}
            return None
        reader = Rereader(self.run.folder, plan, self.plugins)
        self.hindered = {f"not read again: {why}": None for why in reader.hindered.values()}
        return reader

    def _attach_verdict(self, stored: Result, result: Result, question: Question,
                        verdicts: Mapping[JudgedAnswer, Verdict]) -> Result:
        item, verdict = (stored.cell, stored.question), result.verdict
        due = grading_input(result, question, self.run.scheme, self.scoring)
        same = result is stored or due == grading_input(stored, question, self.run.scheme, self.scoring)
        if due is not None:
            self.graded[item] = due
        if not same:
            verdict = None if due is None else Verdict(judge=self.run.judge,
                                                       note="parsed differently now than when it was judged")
            self.changed |= {} if due is None else {item: due}
        alike = result.text == stored.text and result.cited == stored.cited
        return result.model_copy(update={
            "verdict": verdicts.get(item, verdict), "support": result.support if alike else None,
            "measured": stored.measured if alike else dict.fromkeys(
                stored.measured, "the answer is parsed differently now; rerun the run")})


def _notes(work: _Work, again: Again, settings: RunSettings) -> Iterator[str]:
    read = work.read
    yield from work.hindered
    if read.skipped and not work.hindered:
        yield (f"{read.skipped} of {len(again.results)} replies were not read again, because their strategy now "
               "sends different requests; their answers are those of the run")
    if read.changed:
        yield f"{read.changed} of {len(again.results)} replies are parsed differently than in the run"
    if work.changed and again.judge == settings.judge.name and again.judge != "lexical":
        yield (f"{len(work.changed)} of these were judged before with another parsed answer and count as unjudged; "
               f"give --judge {again.judge} to judge them")
    elif again.judge == settings.judge.name and again.scoring != settings.scoring:
        yield "the verdicts are those of the run, given for the run's scoring; its judge is not called again"


def _score_again(result: Result, cell: Cell, question: Question, scheme: Scheme, scoring: Scoring) -> Result:
    scored = score_result(result, question, scheme, scoring, cell.rules, cell.separators, cell.ranked)
    return scored.model_copy(update={"trace": ()})  # drop the trace, which is most of a record

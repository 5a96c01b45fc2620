"""A dry run: the cells of a run, bounds on the calls, tokens and cost of each, and the smallest difference that the run
can detect. It calls no model and writes nothing."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from ragbed.agents.models import describe_model
from ragbed.agents.scripted import numbered_questions
from ragbed.agents.settings import Context
from ragbed.documents.chunkers import CrestSizes, Sections
from ragbed.documents.types import Chunk, Format
from ragbed.experiments.analysis.notes import note_skipped
from ragbed.experiments.analysis.pairs import count_pairs
from ragbed.experiments.cells import PIPELINE, Cell, label_rows
from ragbed.experiments.judges import GradingInput, ModelJudge, ModelSupport
from ragbed.experiments.metrics import Scored, score
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Benchmark, Question, Rubric, unique_gold
from ragbed.experiments.running.bounds import Bounds, Use, estimate_bounds
from ragbed.experiments.running.budget import check_prices, estimate_prompt_tokens
from ragbed.experiments.running.cell_matrix import has_index
from ragbed.experiments.running.fingerprint import describe_settings, identities
from ragbed.experiments.running.jobs import SAMPLE, prefix_notes, sample_evenly
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.runs.manifest import read_config
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.retrievers import RetrieverFactor
from ragbed.experiments.settings.spending import format_amount
from ragbed.experiments.statistics import Clusters, cluster_questions, describe_assumptions, planned_difference
from ragbed.strategies.types import Reply

_SEEDS = 4  # a dry run plays at most this many seeds, in turn
_FILLER = "The records of the town say who built the bridge, and when it was opened to the public. "
_INDEX_SAMPLE = 200  # chunks that are sampled to represent an index
_DOCUMENT_CHUNKS = 10  # assumed number of chunks of a document of unknown size


@dataclass(frozen=True, slots=True)
class CellPlan:
    """The bounds of one cell. Prices are in US dollars, without the judge, and None if unknown."""

    cell: Cell
    bounds: Bounds
    judge: Use
    least: float | None
    most: float | None


def plan_run(settings: RunSettings) -> dict[str, Any]:
    """Return the run's planned questions, calls, tokens and cost, as `ragbed run --dry-run --json` prints them. Raises
    UserError if the run could not begin."""
    plan = Plan.of(settings)
    benchmark, cells = plan.benchmark, plan.cells
    check_prices(settings, plan.models)
    identities(plan, {})
    planner = _Planner(plan, Resources(plan))
    plans = [planner.plan(cell) for cell in cells]
    summary = [{"id": cell.id, **cell.levels} for cell in cells]
    names, grouped = label_rows(summary), cluster_questions(benchmark.questions)
    rows = [{"cell": plan.cell.id, "name": name, "questions": len(benchmark.questions),
             **_figures(plan.bounds, plan.least, plan.most)} for name, plan in zip(names, plans, strict=True)]
    total = sum((plan.bounds for plan in plans), Bounds())
    return {"run": str(settings.folder), "questions": len(benchmark.questions), "cells": rows,
            "total": _figures(total, _sum([plan.least for plan in plans]), _sum([plan.most for plan in plans])),
            "judge": planner.judge(sum((plan.judge for plan in plans), Use())),
            "detectable": detectable_difference(benchmark, cells, grouped, count_pairs(summary)),
            "notes": [*(["With --race this is an upper bound: cells stop early."] if plan.schedule else []),
                      *_notes(plan, planner, plans), *([grouped.note] if grouped.note else [])]}


class PlannedEvidence:
    """Stand-ins for the chunks that searches will return.

    Placed chunks are the real ones. A search returns chunks drawn at random from what it searches. If an index is not
    built yet, its chunks are filler text of its chunker's size.
    """

    def __init__(self, plan: Plan, resources: Resources) -> None:
        self._settings, self._resources = plan.settings, resources
        self._finders = plan.finders
        self._samples: dict[tuple[str | None, str | None], list[Chunk]] = {}
        self.guessed = False

    def chunks(self, cell: Cell, question: Question, k: int | None = None, turn: int = 0) -> Sequence[Chunk]:
        """Return the chunks that a search for `k` chunks finds under the cell's condition. Each turn finds new chunks
        as long as there are any."""
        if cell.retriever is None:
            return self._resources.placed(cell, question).chunks
        retriever = self._finders[cell.finder or ""].retriever
        opened = cell.format is None or self._open(retriever, cell.format)
        if cell.searched:
            count = (k or retriever.k) + cell.change.negatives
            if not opened:
                return [_filler(_chunk_size(retriever), f"{question.id}:{count * turn + place}")
                        for place in range(count)]
            chunks = self._searched(cell, question, retriever)
            return Random(question.id).sample(chunks, min(len(chunks), count * (turn + 1)))[-count:]
        if opened:
            return self._resources.placed(cell, question).chunks
        sizes = self._sizes(cell, question, retriever)
        return [_filler(size, f"{question.id}:{place}") for place, size in enumerate(sizes)]

    def _searched(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> Sequence[Chunk]:
        if has_index(retriever, self._resources.benchmark):
            return self._samples.get((cell.finder, cell.format), ())
        return self._everything if retriever.over == "all" else self._resources.own(question)

    @cached_property
    def _everything(self) -> Sequence[Chunk]:
        return self._resources.benchmark.searchable

    def _open(self, retriever: RetrieverFactor, format: Format) -> bool:
        """Open the index, if it exists, to read its chunks only."""
        key, folder = (retriever.name, format), index_folder(self._settings, retriever, format)
        if key not in self._resources.indexes and (retriever.index is not None or folder.exists()):
            index = self._resources.indexes[key] = self._resources.index(folder)
            step = max(1, len(index.chunks) // _INDEX_SAMPLE)
            self._samples[key] = [index.chunks[row] for row in range(0, len(index.chunks), step)]
        self.guessed |= key not in self._resources.indexes
        return key in self._resources.indexes

    def _sizes(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> list[int]:
        """Return the size of each chunk that a condition will show, in characters. For a whole document it is the file
        size in bytes.
        """
        gold = unique_gold(question.gold)
        if cell.condition != "full":
            return [_chunk_size(retriever)] * len(gold)
        corpus = Path(self._resources.benchmark.corpus or ".")
        files = [corpus / name for name in dict.fromkeys(item.document for item in gold)]
        return [file.stat().st_size if file.is_file() else _DOCUMENT_CHUNKS * _chunk_size(retriever) for file in files]


def _chunk_size(retriever: RetrieverFactor) -> int:
    chunker = retriever.build.chunker
    if isinstance(chunker, CrestSizes):
        return (chunker.smallest + chunker.largest) // 2
    return chunker.target if isinstance(chunker, Sections) else chunker.size


def _filler(size: int, id: str) -> Chunk:
    return Chunk(id, "not known yet", "plain", 0, size, (_FILLER * (size // len(_FILLER) + 1))[:size])


class _Planner:
    """Plan cells. Cells with equal prompts are played once, and a few seeds represent all."""

    def __init__(self, plan: Plan, resources: Resources) -> None:
        settings = plan.settings
        self.run, self.settings, self.resources = plan, settings, resources
        self.evidence = PlannedEvidence(plan, resources)
        self._models = {name: describe_model(name, settings.calls) for name in plan.models}
        self._seeds: dict[int | None, int] = {seed: settings.seeds[place % _SEEDS]
                                              for place, seed in enumerate(settings.seeds)}
        self._played: dict[tuple[Cell, Context | None], tuple[Bounds, Use]] = {}

    def plan(self, cell: Cell) -> CellPlan:
        context, price = self._models[cell.model]
        alike = replace(cell, model="", repeat=0, seed=self._seeds.get(cell.seed, cell.seed))
        key = (alike, context)
        if key not in self._played:
            self._played[key] = self._play(replace(alike, model=cell.model), context)
        bounds, judge = self._played[key]
        if cell.reasoning == PIPELINE:  # ragbed does not see the pipeline's own model calls
            calls = replace(bounds, least=Use(bounds.least.calls), most=Use(bounds.most.calls))
            return CellPlan(cell, calls, judge, None, None)
        return CellPlan(cell, bounds, judge, replace(bounds.least, completion=0).priced(price),
                        bounds.most.priced(price))

    def _play(self, cell: Cell, context: Context | None) -> tuple[Bounds, Use]:
        resources, benchmark = self.resources, self.resources.benchmark
        tasks, variation = self.run.tasks(cell), QueryVariation.parse(cell.variation or "as_asked")
        bounds, judge, sample = Bounds(), Use(), sample_evenly(benchmark.questions)
        for question in sample:
            def search(k: int | None, turn: int, asked: Question = question) -> Sequence[Any]:
                return self.evidence.chunks(cell, asked, k, turn)

            bounds += estimate_bounds(tasks, replace(question, text=variation.apply(question.text)), search, context)
            judge += max_judge_use(self.settings, benchmark.scheme.rubric, question,
                                   resources.answerable(cell, question))
        factor = len(benchmark.questions) / len(sample)
        return bounds.times(factor), judge.times(factor)

    def judge(self, use: Use) -> dict[str, Any] | None:
        """Return the judge's largest use; None if no model judges."""
        if not isinstance(self.settings.judge, ModelJudge):
            return None
        name = self.settings.judge.model
        _, price = describe_model(name, self.settings.calls)
        return {"model": name, "calls": round(use.calls), "prompt_tokens": round(use.prompt),
                "completion_tokens": round(use.completion), "price": use.priced(price)}


def max_judge_use(settings: RunSettings, rubric: Rubric | None, question: Question, answerable: bool) -> Use:
    """Return the judge's largest use for one question: the answer has maximum length, and no reply of the judge can be
    parsed. `answerable`: whether the question is answerable in the cell."""
    due = question.steps if rubric == "steps" else answerable and question.answers
    if rubric is None or not due:
        return Use()
    answer = numbered_questions(settings.limits.max_tokens)
    graded = GradingInput(rubric, question.text, question.answers, answer, answer,
                    tuple(step.text for step in question.steps), settings.scoring, reasoned=True)
    judging, use = settings.judge.judge(graded), Use()
    sent: Reply | None = None
    while True:
        try:
            call = next(judging) if sent is None else judging.send(sent)
        except StopIteration:
            return use
        use += Use(1, estimate_prompt_tokens(call), call.max_tokens or 0)
        sent = Reply("What of it?")


def detectable_difference(benchmark: Benchmark, cells: Sequence[Cell], clusters: Clusters,
                          pairs: int) -> dict[str, Any]:
    """Return the smallest detectable difference in the main metric, for one pair of cells, and for all `pairs` that the
    run's summary will compare. `clusters` are the clusters of the run's tests."""
    metric = benchmark.scheme.columns[0].split(" / ")[0]
    ways = sorted({(cell.rules, cell.ranked) for cell in cells})
    asked = [question for question in benchmark.questions if any(score(
        Scored("answered", question.answerable, answers=question.answers, options=question.options,
               gold_total=len(question.gold), rules=rules, searched=searched),
        groups=benchmark.scheme.groups).get(metric) is not None for rules, searched in ways)]
    found: dict[str, Counter[bool]] = defaultdict(Counter)  # answerable and unanswerable questions of each cluster
    for question in asked:
        found[clusters.of[question.id]][question.answerable] += 1
    sizes = [(one[True], one[False]) for one in found.values()]
    counts = sum(first for first, _ in sizes), sum(second for _, second in sizes)
    return {"metric": metric, "pairs": pairs, "questions": len(asked), "clusters": len(sizes),
            "assumed": describe_assumptions(metric, len(sizes) < len(asked)),
            "of_one_pair": planned_difference(metric, *counts, clusters=sizes),
            "of_all_pairs": planned_difference(metric, *counts, comparisons=max(1, pairs), clusters=sizes)}


def _sum(prices: Sequence[float | None]) -> float | None:
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def _figures(bounds: Bounds, least: float | None, most: float | None) -> dict[str, Any]:
    return {"calls": {"least": round(bounds.least.calls), "most": round(bounds.most.calls)},
            "prompt_tokens": {"least": round(bounds.least.prompt), "most": round(bounds.most.prompt)},
            "completion_tokens": {"most": round(bounds.most.completion)}, "price": {"least": least, "most": most},
            "too_long": round(bounds.too_long)}


def _notes(plan: Plan, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    settings, benchmark = plan.settings, plan.benchmark
    yield ("Tokens are estimated from the strategies' prompts without the model's tokeniser, within a quarter for "
           "English. The upper bound assumes that every reply is as long as it may be.")
    if len(benchmark.questions) > SAMPLE:
        yield f"The estimate uses {SAMPLE} of the {len(benchmark.questions)} questions, evenly spread."
    if len({plan.cell.seed for plan in plans if plan.cell.seed is not None}) > _SEEDS:
        yield f"The estimate uses {_SEEDS} of the {len(settings.seeds)} seeds."
    if planner.evidence.guessed:
        yield "The index is not built yet: its chunks are assumed to have the chunker's size."
    if unpriced := dict.fromkeys(plan.cell.model for plan in plans if plan.most is None):
        yield f"The price of {', '.join(unpriced)} is unknown."
    if isinstance(settings.support, ModelSupport):
        yield (f"The support check asks {settings.support.model} once for every sentence with a citation, and once "
               "more if the reply cannot be read; these calls are not counted here.")
    if any(plan.bounds.too_long for plan in plans):
        yield "Some prompts cannot fit the context and are not sent: see the column too_long."
    if any(one.cell.variation == "paraphrase" for one in plans):
        yield (f"{settings.paraphrasing_model} writes paraphrases with up to {2 * len(benchmark.questions)} calls, one "
               "or two per question; these calls are not counted here.")
    yield from note_skipped(benchmark.skipped)
    yield from prefix_notes(plan, planner.resources)
    bounds = sum((plan.bounds for plan in plans), Bounds())
    if bounds.ended:
        cells = sum(plan.bounds.ended > 0 for plan in plans)
        yield (f"`limits` may end up to {round(bounds.ended)} of {len(plans) * len(benchmark.questions)} questions, in "
               f"{cells} of {len(plans)} cells, before they have an answer: {'; '.join(bounds.limits)}.")
    voting = [label for label, one in plan.strategies["reasoning"].items() if any(
        part.kind == "self_consistency" for part in one.parts)]
    if voting and not settings.brief and not all(question.options for question in benchmark.questions):
        yield (f"{', '.join(voting)}: answers are voted on word by word, and whole sentences are hardly ever equal; "
               "`brief: true` asks for short answers.")
    if bounds.probes and plan.follow_up is not None:
        yield (f"Up to {round(bounds.probes):,} of the calls are probes: each answer is asked again without each "
               f"passage that it was shown, and {plan.follow_up.repeats(0)} times more. Refusals are not probed.")
    yield from _folder_notes(plan, planner, plans)


def _folder_notes(plan: Plan, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    """Yield notes on what the run's folder already holds, and on whether the budget suffices for the rest."""
    settings = plan.settings
    folder, known = settings.folder, read_config(settings.folder)
    changes = known and describe_settings(folder, known, settings.to_yaml(), plan.questions_hash)
    probed = settings.probe is None or f"probe: {settings.probe}" in str(known)
    if (folder / "summary.json").exists() and not changes and probed:
        yield f"{folder} holds this run, finished: nothing that is counted here is asked again."
        return
    yield from _budget_notes(settings, planner, plans)
    if (folder / "records.sqlite").exists():
        yield (f"{folder} holds a run with {changes}; if it has made a call, this run needs another --name, or --fresh."
               if changes else
               f"{folder} holds calls or records already; they are counted here, but not asked again.")


def _budget_notes(settings: RunSettings, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    """Compare the bounds with the budget. The judge counts only in the upper bound, since it may not be called at all.
    """
    bounds, use = sum((plan.bounds for plan in plans), Bounds()), sum((plan.judge for plan in plans), Use())
    judge = planner.judge(use)
    most = [*(plan.most for plan in plans), *([judge["price"]] if judge else [])]
    asked = {"dollars": (_sum([plan.least for plan in plans]), _sum(most)),
             "tokens": (bounds.least.prompt, sum(one.prompt + one.completion for one in (bounds.most, use)))}
    for name, (least, at_most) in asked.items():
        limit = getattr(settings.budget, name)
        if limit is None:
            continue
        budget = f"The budget of {format_amount(name, limit)}"
        if least is not None and least > limit:
            yield f"{budget} will stop the run before its end: the run needs at least {format_amount(name, least)}."
        elif at_most is not None and at_most > limit:
            yield f"{budget} may stop the run before its end: the run needs up to {format_amount(name, at_most)}."
        elif at_most is not None:
            yield f"{budget} is enough: the run needs up to {format_amount(name, at_most)}."
    if settings.budget.seconds is not None:
        amount = format_amount("seconds", settings.budget.seconds)
        yield f"The budget of {amount} may stop the run: its speed is unknown."

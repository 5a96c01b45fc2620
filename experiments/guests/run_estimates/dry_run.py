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

from ragbed.agents.model_settings import Context
from ragbed.agents.models import describe_model
from ragbed.agents.scripted import numbered_questions
from ragbed.agents.tools import describe_tools, tools_name
from ragbed.documents.chunkers import CrestSizes, Sections
from ragbed.documents.types import Chunk, Format
from ragbed.experiments.analysis.notes import note_skipped, note_whole_gold
from ragbed.experiments.analysis.pairs import select_pairs
from ragbed.experiments.analysis.replicates import group_replicates
from ragbed.experiments.cells import PIPELINE, Cell, label_rows
from ragbed.experiments.guests.run_estimates.bounds import Bounds, Use, estimate_bounds
from ragbed.experiments.judges import GradingInput, model_of
from ragbed.experiments.metrics import Scored, score
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Benchmark, Question, Rubric, unique_gold
from ragbed.experiments.running.budget import check_prices
from ragbed.experiments.running.cell_matrix import has_index
from ragbed.experiments.running.fingerprint import describe_settings, identities
from ragbed.experiments.running.jobs import SAMPLE, prefix_notes, sample_evenly
from ragbed.experiments.running.open_resources import index_folder
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.runs.run_manifest import read_config
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.retrievers import RetrieverFactor
from ragbed.experiments.settings.spending import format_amount
from ragbed.experiments.statistics import Clusters, cluster_questions, describe_assumptions, planned_difference
from ragbed.experiments.statistics.units import MIN_CLUSTERS
from ragbed.strategies.token_estimates import estimate_prompt_tokens
from ragbed.strategies.types import Reply, ToolSpec

_SEEDS = 4  # a dry run plays at most this many of the seeds
_FILLER = "The records of the town say who built the bridge, and when it was opened to the public. "
_INDEX_SAMPLE = 200  # number of chunks that represent an index
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
    names, grouped = label_rows(summary), cluster_questions(benchmark.questions, benchmark.scheme.unit)
    pairs = len(select_pairs(group_replicates(summary, {}))[0])
    rows = [{"cell": plan.cell.id, "name": name, "questions": len(benchmark.questions),
             **_figures(plan.bounds, plan.least, plan.most)} for name, plan in zip(names, plans, strict=True)]
    total = sum((plan.bounds for plan in plans), Bounds())
    return {"run": str(settings.folder), "questions": len(benchmark.questions), "cells": rows,
            "total": _figures(total, _sum([plan.least for plan in plans]), _sum([plan.most for plan in plans])),
            "judge": planner.judge(sum((plan.judge for plan in plans), Use())),
            "detectable": detectable_difference(benchmark, cells, grouped, pairs),
            "notes": [*(["With --race this is an upper bound: cells stop early."] if plan.schedule else []),
                      *_notes(plan, planner, plans), *grouped.notes(pairs)]}


class PlannedEvidence:
    """Supplies sample chunks in place of those that searches will return.

    If the condition places chunks without a search, the real chunks are used. A search returns random chunks of its
    index or pool. If an index is not built yet, its chunks are filler text with the size of the chunker's chunks.
    """

    def __init__(self, plan: Plan, resources: Resources) -> None:
        self._settings, self._resources = plan.settings, resources
        self._finders = plan.finders
        self._samples: dict[tuple[str | None, str | None], list[Chunk]] = {}
        self.guessed = False

    def chunks(self, cell: Cell, question: Question, k: int | None = None, turn: int = 0) -> Sequence[Chunk]:
        """Return `k` chunks as the cell's condition would. Each `turn` returns new ones until there are no more."""
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
        key, folder = (retriever.name, format), index_folder(self._settings, retriever, format)
        if key not in self._resources.indexes and (retriever.index is not None or folder.exists()):
            index = self._resources.indexes[key] = self._resources.index(folder)
            step = max(1, len(index.chunks) // _INDEX_SAMPLE)
            self._samples[key] = [index.chunks[row] for row in range(0, len(index.chunks), step)]
        self.guessed |= key not in self._resources.indexes
        return key in self._resources.indexes

    def _sizes(self, cell: Cell, question: Question, retriever: RetrieverFactor) -> list[int]:
        """Return the sizes of the chunks that a condition shows, in characters; for whole documents in bytes.
        """
        gold = unique_gold(question.gold)
        if cell.condition != "full":
            return [_chunk_size(retriever)] * len(gold)
        corpus = Path(self._resources.benchmark.corpus or ".")
        files = [corpus / name for name in dict.fromkeys(item.document for item in gold)]
        return [file.stat().st_size if file.is_file() else _DOCUMENT_CHUNKS * _chunk_size(retriever) for file in files]


def _chunk_size(retriever: RetrieverFactor) -> int:
    chunker = retriever.build.for_index.chunker
    if isinstance(chunker, CrestSizes):
        return (chunker.smallest + chunker.largest) // 2
    return chunker.target if isinstance(chunker, Sections) else chunker.size


def _filler(size: int, id: str) -> Chunk:
    return Chunk(id, "not known yet", "plain", 0, size, (_FILLER * (size // len(_FILLER) + 1))[:size])


class _Planner:
    """Estimate the bounds of cells. Cells with equal prompts are played once, and a few seeds represent all."""

    def __init__(self, plan: Plan, resources: Resources) -> None:
        settings = plan.settings
        self.run, self.settings, self.resources = plan, settings, resources
        self.evidence = PlannedEvidence(plan, resources)
        self._models = {name: describe_model(name, settings.calls) for name in plan.models}
        self._seeds: dict[int | None, int] = {seed: settings.seeds[place % _SEEDS]
                                              for place, seed in enumerate(settings.seeds)}
        self._tools: dict[str, tuple[ToolSpec, ...]] = {}
        self._played: dict[tuple[Cell, Context | None, int | None], tuple[Bounds, Use]] = {}

    def plan(self, cell: Cell) -> CellPlan:
        context, price = self._models[cell.model]
        alike = replace(cell, model="", repeat=0, seed=self._seeds.get(cell.seed, cell.seed))
        key = alike, context, self.settings.calls.config(cell.model).max_tokens
        if key not in self._played:
            self._played[key] = self._play(replace(alike, model=cell.model), context)
        bounds, judge = self._played[key]
        if cell.reasoning == PIPELINE:  # ragbed cannot see the model calls inside a pipeline
            calls = replace(bounds, least=Use(bounds.least.calls), most=Use(bounds.most.calls))
            return CellPlan(cell, calls, judge, None, None)
        return CellPlan(cell, bounds, judge, replace(bounds.least, completion=0).priced(price),
                        bounds.most.priced(price))

    def _play(self, cell: Cell, context: Context | None) -> tuple[Bounds, Use]:
        resources, benchmark = self.resources, self.resources.benchmark
        tasks, variation = self.run.tasks(cell), QueryVariation.parse(cell.variation or "as_asked")
        if (name := tools_name(tasks.tools)) not in self._tools:
            self._tools[name] = describe_tools(tasks.tools)
        bounds, judge, sample = Bounds(), Use(), sample_evenly(benchmark.questions)
        for question in sample:
            def search(k: int | None, turn: int, asked: Question = question) -> Sequence[Any]:
                chunks = self.evidence.chunks(cell, asked, k, turn)
                return [replace(chunk, content=f"{resources.header_of(chunk)}\n{chunk.content}")
                        for chunk in chunks] if cell.headers else chunks

            bounds += estimate_bounds(tasks, replace(question, text=variation.apply(question.text)), search, context,
                                      self._tools[name])
            judge += max_judge_use(self.settings, benchmark.scheme.rubric, question,
                                   resources.answerable(cell, question))
        factor = len(benchmark.questions) / len(sample)
        return bounds.times(factor), judge.times(factor)

    def judge(self, use: Use) -> dict[str, Any] | None:
        """Return the most that the judge can use; None if the judge is not a model."""
        if (name := model_of(self.settings.judge)) is None:
            return None
        _, price = describe_model(name, self.settings.calls)
        return {"model": name, "calls": round(use.calls), "prompt_tokens": round(use.prompt),
                "completion_tokens": round(use.completion), "price": use.priced(price)}


def max_judge_use(settings: RunSettings, rubric: Rubric | None, question: Question, answerable: bool) -> Use:
    """Return the most that the judge can use for one question: the answer has maximum length, and none of the judge's
    replies can be parsed. `answerable`: whether the question is answerable in the cell."""
    due = question.steps if rubric == "steps" else answerable and question.answers
    if rubric is None or not due or model_of(settings.judge) is None:
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
    """Return the smallest detectable difference in the main metric: for a single pair of cells, and for one of all the
    `pairs` that the run's summary will compare. `clusters` are the clusters of questions for these tests."""
    metric = benchmark.scheme.headline
    ways = sorted({(cell.rules, cell.ranked) for cell in cells})
    asked = [question for question in benchmark.questions if any(score(
        Scored("answered", question.answerable, answers=question.answers, options=question.options,
               gold_total=len(question.gold), rules=rules, searched=searched, grade="Correct", points=10),
        groups=benchmark.scheme.groups).get(metric) is not None for rules, searched in ways)]
    found: dict[str, Counter[bool]] = defaultdict(Counter)  # answerable and unanswerable questions of each cluster
    for question in asked:
        found[clusters.of[question.id]][question.answerable] += 1
    sizes = [(one[True], one[False]) for one in found.values()]
    counts = sum(first for first, _ in sizes), sum(second for _, second in sizes)
    one, every = (None if 0 < clusters.groups < MIN_CLUSTERS else planned_difference(
        metric, *counts, comparisons=many, clusters=sizes) for many in (1, max(1, pairs)))
    return {"metric": metric, "pairs": pairs, "questions": len(asked), "clusters": len(sizes),
            "assumed": describe_assumptions(metric, len(sizes) < len(asked)),
            "of_one_pair": one, "of_all_pairs": every}


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
    yield ("Tokens are estimated from the strategies' prompts without the model's tokeniser, within 25 % for "
           "English. The upper bound assumes that every reply has its maximum length.")
    if len(benchmark.questions) > SAMPLE:
        yield f"The estimate uses {SAMPLE} of the {len(benchmark.questions)} questions, evenly spread."
    if len({plan.cell.seed for plan in plans if plan.cell.seed is not None}) > _SEEDS:
        yield f"The estimate uses {_SEEDS} of the {len(settings.seeds)} seeds."
    if planner.evidence.guessed:
        yield "The index is not built yet: its chunks are assumed to have the chunker's size."
    if unpriced := dict.fromkeys(plan.cell.model for plan in plans if plan.most is None):
        yield f"The price of {', '.join(unpriced)} is unknown."
    if checking := settings.judging_models[1]:
        yield (f"The support check calls {checking} for every sentence with a citation, and again if the "
               "" "reply cannot be parsed; these calls are not counted here.")
    if further := ", ".join(dict.fromkeys(filter(None, map(model_of, settings.judges)))):
        yield f"{further} grades each answer too, with one or two calls. These calls are not counted here."
    if deciding := settings.judging_models[2]:
        yield (f"{deciding} decides whether a reply refuses if the rules cannot, with one or two calls per "
               "reply. These calls are not counted here.")
    if any(plan.bounds.too_long for plan in plans):
        yield "Some prompts cannot fit the context and are not sent: see the column too_long."
    if any(one.cell.variation == "paraphrase" for one in plans):
        yield (f"{settings.paraphrasing_model} writes paraphrases with one or two calls per question, up to "
               f"{2 * len(benchmark.questions)}; these calls are not counted here.")
    yield from (*benchmark.notes, *note_skipped(benchmark.skipped))
    yield from note_whole_gold((one.id, planner.resources.placed(plan.cell, one).notes) for plan in plans
                               if plan.cell.condition == "gold" and (plan.cell.finder, plan.cell.format)
                               in planner.resources.indexes for one in benchmark.questions)
    yield from prefix_notes(plan, planner.resources)
    bounds = sum((plan.bounds for plan in plans), Bounds())
    if bounds.ended:
        cells = sum(plan.bounds.ended > 0 for plan in plans)
        yield (f"`limits` may end up to {round(bounds.ended)} of {len(plans) * len(benchmark.questions)} questions "
               "without an answer, in " f"{cells} of {len(plans)} cells: {'; '.join(bounds.limits)}.")
    voting = [label for label, one in plan.strategies["reasoning"].items() if any(
        part.kind == "self_consistency" for part in one.parts)]
    if voting and not settings.brief and not all(question.options for question in benchmark.questions):
        yield (f"{', '.join(voting)}: votes count only identical answers, and whole sentences are rarely identical; "
               "`brief: true` asks for short answers.")
    if bounds.probes and plan.follow_up is not None:
        yield (f"Up to {round(bounds.probes):,} of the calls are probes: each question is asked again without each "
               f"passage that its prompt showed, and {plan.follow_up.repeats(0)} times more. Refusals are not probed.")
    yield from _folder_notes(plan, planner, plans)


def _folder_notes(plan: Plan, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    settings = plan.settings
    folder, known = settings.folder, read_config(settings.folder)
    changes = known and describe_settings(folder, known, settings.to_yaml(), plan.questions_hash)
    probed = settings.probe is None or f"probe: {settings.probe}" in str(known)
    if (folder / "summary.json").exists() and not changes and probed:
        yield f"{folder} already holds this finished run; none of the calls counted here will be made again."
        return
    yield from _budget_notes(settings, planner, plans)
    if (folder / "records.sqlite").exists():
        yield (f"{folder} holds a run with {changes}; calls that stay the same are kept, so fewer are sent than "
               "are counted here."
               if changes else
               f"{folder} already holds calls or records; the counts here include them, but they are not repeated.")


def _budget_notes(settings: RunSettings, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    """Yield notes that compare the bounds with the budget. Only the upper bound includes the judge.
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
            yield f"{budget} is too small: the run needs at least {format_amount(name, least)} to finish."
        elif at_most is not None and at_most > limit:
            yield f"{budget} may be too small: the run needs up to {format_amount(name, at_most)}."
        elif at_most is not None:
            yield f"{budget} is enough: the run needs up to {format_amount(name, at_most)}."
    if settings.budget.seconds is not None:
        amount = format_amount("seconds", settings.budget.seconds)
        yield f"The budget of {amount} may stop the run: its speed is unknown."

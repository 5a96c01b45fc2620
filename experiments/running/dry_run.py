"""A dry run: the cells of a run, and bounds of what each asks, uses and costs. Nothing is called or written."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragbed.agents.models import describe_model
from ragbed.agents.settings import Context
from ragbed.experiments.analysis.notes import on_skipped
from ragbed.experiments.analysis.pairs import planned_pairs
from ragbed.experiments.cells import PIPELINE, Cell, labels
from ragbed.experiments.judges import ModelJudge, ModelSupport
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Question
from ragbed.experiments.running.bounds import Bounds, Use, bounds_of
from ragbed.experiments.running.budget import check_prices
from ragbed.experiments.running.foreseen import Foreseen, detectable, judged
from ragbed.experiments.running.identity import identities, what_differs
from ragbed.experiments.running.jobs import SAMPLE, on_prefixes, spread
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.running.resources import Resources
from ragbed.experiments.runs.manifest import config_of
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.settings.spending import shown
from ragbed.experiments.statistics import clusters

_SEEDS = 4  # seeds that stand for all, in turn


@dataclass(frozen=True, slots=True)
class CellPlan:
    """One cell. Prices are in US dollars, None where unknown; the judge's is among neither."""

    cell: Cell
    bounds: Bounds
    judge: Use
    least: float | None
    most: float | None


def plan_run(settings: RunSettings) -> dict[str, Any]:
    """Return what the run would ask, use and cost, as `ragbed run --dry-run --json` prints it; UserError where the run
    could not begin: its benchmark, exemplars, conditions or models do not fit."""
    plan = Plan.of(settings)
    benchmark, cells = plan.benchmark, plan.cells
    check_prices(settings, plan.models)
    identities(plan, {})
    planner = _Planner(plan, Resources(plan))
    plans = [planner.plan(cell) for cell in cells]
    summary = [{"id": cell.id, **cell.levels} for cell in cells]
    names, grouped = labels(summary), clusters(benchmark.questions)
    rows = [{"cell": plan.cell.id, "name": name, "questions": len(benchmark.questions),
             **_figures(plan.bounds, plan.least, plan.most)} for name, plan in zip(names, plans, strict=True)]
    total = sum((plan.bounds for plan in plans), Bounds())
    told = detectable(benchmark, cells, grouped, planned_pairs(summary))
    return {"run": str(settings.folder), "questions": len(benchmark.questions), "cells": rows,
            "total": _figures(total, _sum([plan.least for plan in plans]), _sum([plan.most for plan in plans])),
            "judge": planner.judge(sum((plan.judge for plan in plans), Use())),
            "detectable": told,
            "notes": [*(["A race: this is the most that is asked."] if plan.schedule else []),
                      *_notes(plan, planner, plans), *([grouped.note] if grouped.note else [])]}


class _Planner:
    """Plans cells; those that differ in what no prompt shows are played once, and of many seeds some stand for all."""

    def __init__(self, plan: Plan, resources: Resources) -> None:
        settings = plan.settings
        self.run, self.settings, self.resources = plan, settings, resources
        self.foreseen = Foreseen(plan, resources)
        self._models = {name: describe_model(name, settings.calls) for name in plan.models}
        self._seeds: dict[int | None, int] = {seed: settings.seeds[place % _SEEDS]
                                                for place, seed in enumerate(settings.seeds)}
        self._played: dict[tuple[Cell, Context | None], tuple[Bounds, Use]] = {}

    def plan(self, cell: Cell) -> CellPlan:
        """Plan a cell."""
        context, price = self._models[cell.model]
        alike = replace(cell, model="", repeat=0, seed=self._seeds.get(cell.seed, cell.seed))
        key = (alike, context)
        if key not in self._played:
            self._played[key] = self._play(replace(alike, model=cell.model), context)
        bounds, judge = self._played[key]
        if cell.reasoning == PIPELINE:  # what it asks its models is its own
            calls = replace(bounds, least=Use(bounds.least.calls), most=Use(bounds.most.calls))
            return CellPlan(cell, calls, judge, None, None)
        return CellPlan(cell, bounds, judge, replace(bounds.least, completion=0).priced(price),
                        bounds.most.priced(price))

    def _play(self, cell: Cell, context: Context | None) -> tuple[Bounds, Use]:
        resources, benchmark = self.resources, self.resources.benchmark
        tasks, variation = self.run.tasks(cell), QueryVariation.parse(cell.variation or "as_asked")
        bounds, judge, some = Bounds(), Use(), spread(benchmark.questions)
        for question in some:
            def search(k: int | None, turn: int, asked: Question = question) -> Sequence[Any]:
                return self.foreseen.chunks(cell, asked, k, turn)

            bounds += bounds_of(tasks, replace(question, text=variation.of(question.text)), search, context)
            judge += judged(self.settings, benchmark.scheme.rubric, question, resources.answerable(cell, question))
        factor = len(benchmark.questions) / len(some)
        return bounds.times(factor), judge.times(factor)

    def judge(self, use: Use) -> dict[str, Any] | None:
        """Return what the judge uses at most; None where no model judges."""
        if not isinstance(self.settings.judge, ModelJudge):
            return None
        name = self.settings.judge.model
        _, price = describe_model(name, self.settings.calls)
        return {"model": name, "calls": round(use.calls), "prompt_tokens": round(use.prompt),
                "completion_tokens": round(use.completion), "price": use.priced(price)}


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
    yield ("Tokens are estimated from the prompts that the strategies build, without the model's tokeniser: within a "
           "quarter for English. The most is where every reply is as long as it may be.")
    if len(benchmark.questions) > SAMPLE:
        yield f"{SAMPLE} of the {len(benchmark.questions)} questions, evenly spread, stand for all."
    if len({plan.cell.seed for plan in plans if plan.cell.seed is not None}) > _SEEDS:
        yield f"{_SEEDS} of the {len(settings.seeds)} seeds stand for all."
    if planner.foreseen.guessed:
        yield "The index is not built yet: its chunks are taken to be as long as its chunker makes them."
    unpriced = dict.fromkeys(plan.cell.model for plan in plans if plan.most is None)
    if unpriced:
        yield f"No price is known of {', '.join(unpriced)}."
    if isinstance(settings.support, ModelSupport):
        yield (f"The check of support asks {settings.support.model} once for every sentence that cites, and once more "
               "where it cannot read the reply; these calls are not counted here.")
    too_long = {plan.cell.model: round(plan.bounds.too_long) for plan in plans if plan.bounds.too_long}
    if too_long:
        yield "Some prompts cannot fit the context, and are not sent: see the column too_long."
    if any(one.cell.variation == "paraphrase" for one in plans):
        yield (f"{settings.paraphrasing_model} is asked for paraphrases by up to {2 * len(benchmark.questions)} calls, "
               "one or two for a question, which are in none of these figures.")
    yield from on_skipped(benchmark.skipped)
    yield from on_prefixes(plan, planner.resources)
    ended = sum((plan.bounds for plan in plans), Bounds())
    if ended.ended:
        cells = sum(plan.bounds.ended > 0 for plan in plans)
        yield (f"`limits` may end up to {round(ended.ended)} of {len(plans) * len(benchmark.questions)} questions, in "
               f"{cells} of {len(plans)} cells, before they have an answer: {'; '.join(ended.limits)}.")
    # Answers are voted on that are too long for two to be equal.
    voting = [label for label, one in plan.strategies["reasoning"].items() if any(
        part.kind == "self_consistency" for part in one.parts)]
    if voting and not settings.brief and not all(question.options for question in benchmark.questions):
        yield (f"{', '.join(voting)}: answers are voted on word by word, and of whole sentences hardly two are equal; "
               "`brief: true` asks for short ones.")
    if ended.probes and plan.follow_up is not None:
        yield (f"Up to {round(ended.probes):,} of the calls are probes: an answer is asked again without each passage "
               f"that it was shown, and {plan.follow_up.repeats(0)} times more. Refusals are not probed.")
    folder, known = settings.folder, config_of(settings.folder)
    apart = known and what_differs(folder, known, settings.resolved(), plan.questions_hash)
    probed = settings.probe is None or f"probe: {settings.probe}" in str(known)
    if (folder / "summary.json").exists() and not apart and probed:
        yield f"{folder} holds this run, finished: all that is counted here was asked, and is not asked again."
        return  # whatever its budget
    yield from _on_budget(settings, planner, plans)
    if (folder / "records.sqlite").exists():
        yield (f"{folder} holds a run with {apart}; where a call was made for it, this one is refused without "
               "another --name or --fresh." if apart else
               f"{folder} holds calls or records already; what it has is not asked again, and counted here.")


def _on_budget(settings: RunSettings, planner: _Planner, plans: Sequence[CellPlan]) -> Iterator[str]:
    """How the bounds stand to the budget. The judge, who may be asked of no answer, is in the most alone."""
    bounds, use = sum((plan.bounds for plan in plans), Bounds()), sum((plan.judge for plan in plans), Use())
    judge = planner.judge(use)
    most = [*(plan.most for plan in plans), *([judge["price"]] if judge else [])]
    asked = {"dollars": (_sum([plan.least for plan in plans]), _sum(most)),
             "tokens": (bounds.least.prompt, sum(one.prompt + one.completion for one in (bounds.most, use)))}
    for name, (least, at_most) in asked.items():
        limit = getattr(settings.budget, name)
        if limit is None:
            continue
        budget = f"The budget of {shown(name, limit)}"
        if least is not None and least > limit:
            yield f"{budget} will stop the run before its end: it asks for at least {shown(name, least)}."
        elif at_most is not None and at_most > limit:
            yield f"{budget} may stop the run before its end: it asks for up to {shown(name, at_most)}."
        elif at_most is not None:
            yield f"{budget} is enough: the run asks for up to {shown(name, at_most)}."
    if settings.budget.seconds is not None:
        yield (f"The budget of {shown('seconds', settings.budget.seconds)} may stop the run: nothing is known of its "
               "speed.")

"""The summary of a finished run: one row of figures for every cell, without times or paths."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from ragbed.experiments.analysis import notes
from ragbed.experiments.analysis.catalogue import compute_findings, make_views
from ragbed.experiments.analysis.effects import estimate_effects
from ragbed.experiments.analysis.error_analysis import analyse_errors
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.pairs import compare_pairs
from ragbed.experiments.analysis.replicates import summarise_replicates
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import aggregate, count_outcomes, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.manifest import known_models
from ragbed.experiments.runs.store import FORMAT, RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.statistics import Clusters, cluster_questions
from ragbed.strategies.types import Usage


def summarise(plan: Plan, folder: RunFolder, exemplars: int) -> dict[str, Any]:
    """Return the figures of every cell, the benchmark's views, notes on how to read them, and one hash of all results.
    `exemplars` is the number of worked examples in every prompt."""
    settings, scheme, cells = plan.settings, plan.scheme, plan.cells
    by_cell: dict[str, list[Result]] = defaultdict(list)
    for result in folder.results():
        by_cell[result.cell].append(result)
    results = [result for cell in cells for result in by_cell[cell.id]]
    judge_used = sum((result.judge_usage for result in results), Usage())
    judge = settings.judge.name if scheme.rubric else None
    questions = folder.questions()
    grouped = cluster_questions(questions.values())
    rows = [{**_row(cell, by_cell[cell.id], settings, judge, grouped.of), "exemplars": exemplars,
             **({"sub_answers": settings.sub_answers, "filled": settings.filled,
                 "sub_usage": _usage([result.sub_usage for result in by_cell[cell.id]])}
                if "chain" in scheme.groups else {})} for cell in cells]
    found = {**_between(rows, by_cell, plan, grouped),
             **analyse_errors(cells, results, questions, scheme.correctness_metrics, settings.scoring, grouped.of,
                              settings.seed,
                          plan.sweeps)}
    if plan.schedule and found.get("error_analysis"):
        found["error_analysis"]["joint"] = []
    made = AnalysisInput(rows, by_cell, questions, scheme.columns, settings.scoring, settings.seed, grouped.of, found,
                         scheme.published, scheme.correctness_metrics)
    found |= {} if plan.schedule else compute_findings(made)
    return {"format": FORMAT, "name": settings.name, "seed": settings.seed, "columns": list(scheme.columns),
            "cells": rows,
            "views": [view.as_json() for view in make_views(scheme.views, made)], "published": list(scheme.published),
            "correctness_metrics": list(scheme.correctness_metrics), **found,
            "notes": [*plan.notes, *(plan.schedule.notes if plan.schedule else ()),
                      *([grouped.note] if grouped.note else []),
                      *notes.note_undroppable((str(cell.change) for cell in cells), questions.values()),
                      *notes.note_missing_negatives((cell.perturbation, result) for cell in cells
                                                    for result in by_cell[cell.id]),
                      *notes.note_variations(((cell.variation, result) for cell in cells
                                              for result in by_cell[cell.id]),
                                         settings.paraphrasing_model, plan.models),
                      *notes.note_small_halves(rows),
                      *notes.note_late_clues(questions.values()),
                      *notes.note_miners(plan.finders, cells, questions.values()),
                      *_on_rankings(plan, by_cell, questions),
                      *notes.note_models(plan.models, known_models(folder.path)),
                      *notes.note_judge(judge, judge_used),
                      *notes.note_support(settings.support.name if settings.support else None,
                                        (result.support for result in results)),
                      *notes.note_gold_filled(settings.filled, results),
                      *notes.note_unjudged(result.verdict for result in results),
                      *(notes.note_rules(cell.rules for cell in cells if not all(
                          one.answerable for one in by_cell[cell.id])) if "answers" in scheme.groups else ())],
            "results": folder.results_hash()}


def _on_rankings(plan: Plan, by_cell: Mapping[str, Sequence[Result]], questions: Mapping[str, Question]) -> list[str]:
    if "ranking" not in plan.scheme.groups:
        return []
    searched = [cell for cell in plan.cells if cell.searched and cell.finder is not None]
    if not searched:
        return []
    asked = {str(cell.finder): plan.finders[str(cell.finder)].retriever.k for cell in searched}
    return [*notes.note_shallow_retrievers(asked, plan.scheme.columns), *notes.note_unranked(questions.values()),
            *notes.note_ranked_chunks({cell.id: by_cell[cell.id] for cell in searched},
                        {cell.id: str(cell.finder) for cell in searched})]


def _between(rows: Sequence[Mapping[str, Any]], by_cell: Mapping[str, Sequence[Result]], plan: Plan,
             grouped: Clusters) -> dict[str, Any]:
    """Compare the cells by the metric of the first column, by pairs and by factors, with repeats pooled. A race only
    has its own anytime-valid results."""
    settings, metric = plan.settings, plan.scheme.columns[0].split(" / ")[0]
    answers = {cell: {result.question: result for result in results} for cell, results in by_cell.items()}
    together = summarise_replicates(rows, answers, grouped, settings.scoring, settings.seed)
    if plan.schedule:
        return {"comparisons": plan.schedule.comparisons(answers), "effects": None, "repeated": together}
    return {"comparisons": compare_pairs(rows, answers, grouped, metric, settings.scoring, settings.seed, together),
            "effects": estimate_effects(rows, answers, grouped, metric, settings.scoring), "repeated": together}


def _row(cell: Cell, results: Sequence[Result], settings: RunSettings, judge: str | None,
         grouped: Mapping[str, str]) -> dict[str, Any]:
    return {"id": cell.id, **cell.levels, "layout": settings.layout, "judge": judge,
            "scoring": settings.scoring, "n": len(results), "outcomes": count_outcomes(results),
            "metrics": aggregate(results, settings.scoring, settings.seed, refusing=may_refuse(cell.rules),
                                 clusters=[grouped[result.question] for result in results]),
            "usage": _usage([result.usage for result in results]),
            "passages": round(fmean(len(result.in_view) for result in results), 4) if results else None,
            "judge_usage": _usage([result.judge_usage for result in results])}


def _usage(used: Sequence[Usage]) -> dict[str, Any]:
    total = sum(used, Usage())
    price = None if total.price is None else round(total.price, 8)
    cached = {"cached_tokens": total.cached_tokens} if total.cached_tokens else {}  # some servers do not report them
    return {"prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens, "calls": total.calls,
            "price": price, **cached}

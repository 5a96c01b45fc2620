"""The summary of a finished run: one row of figures for every cell, without times or paths."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, cast

from ragbed.agents.journal import refused_parameters
from ragbed.experiments.analysis import notes
from ragbed.experiments.analysis.analyses import compute_findings, make_views
from ragbed.experiments.analysis.error_analysis import analyse_errors
from ragbed.experiments.analysis.inputs import AnalysisInput
from ragbed.experiments.analysis.model_notes import note_models
from ragbed.experiments.analysis.notes import ShownPassages, describe_inert
from ragbed.experiments.analysis.pairs import compare_pairs
from ragbed.experiments.analysis.replicates import summarise_replicates
from ragbed.experiments.cells import Cell
from ragbed.experiments.metrics import aggregate, count_outcomes, may_refuse
from ragbed.experiments.metrics.aggregation import drop_judge_scores
from ragbed.experiments.metrics.scoring import DECLARED
from ragbed.experiments.question import Question, Scheme
from ragbed.experiments.record import BriefResult, Result
from ragbed.experiments.running.plan import Plan
from ragbed.experiments.runs.run_manifest import known_models
from ragbed.experiments.runs.store import FORMAT, RunFolder
from ragbed.experiments.settings import RunSettings
from ragbed.experiments.statistics import Clusters, cluster_questions, note_correlation
from ragbed.guests import entries, load
from ragbed.strategies.types import Usage


def summarise(plan: Plan, folder: RunFolder, exemplars: int) -> dict[str, Any]:
    """Return the figures of every cell, the benchmark's views, notes that explain them, and one hash of all results.
    `exemplars` is the number of worked examples in every prompt."""
    settings, scheme, cells = plan.settings, plan.scheme, plan.cells
    by_cell: dict[str, list[Result]] = {cell.id: [] for cell in cells}
    shown = {cell.id: ShownPassages() for cell in cells}
    questions = {one.id: one.drop_chunks() for one in plan.asked.values()}  # as stored
    grouped = cluster_questions(questions.values(), scheme.unit)
    read = _read_once(folder, by_cell, shown)
    errors = analyse_errors(cells, read, questions, scheme.correctness_metrics, settings.scoring, grouped.of,
                            settings.seed, plan.sweeps)
    deque(read, 0)  # without a correctness metric, no result was read
    results = [result for cell in cells for result in by_cell[cell.id]]
    own = getattr(settings, "metrics", None)
    failed = own.review(results) if own else {}  # before the figures: it declares metrics
    unjudged, judge_used = _find_unjudged(results, by_cell), sum((result.judge_usage for result in results), Usage())
    judge = settings.judge.name if scheme.rubric else None
    rows = [{**_row(cell, by_cell[cell.id], shown[cell.id], settings, judge, grouped.of, "chain" in scheme.groups),
             "exemplars": exemplars} for cell in cells]
    found = {**_compare_cells(rows, by_cell, plan, grouped), **errors}
    if plan.schedule and found.get("error_analysis"):
        found["error_analysis"]["joint"] = []
    cut = notes.note_cut_prompts(results)
    inert = describe_inert(cells, by_cell, shown, lambda: folder.results(traces=True))
    made = AnalysisInput(rows, by_cell, questions, scheme.columns, settings.scoring, settings.seed, grouped, found,
                         scheme.published, scheme.correctness_metrics)
    found |= {"effects": None} | ({} if plan.schedule else compute_findings(made))
    return {"format": FORMAT, "name": settings.name, "seed": settings.seed, **_columns(rows, results, scheme, failed),
            "cells": rows, "views": [view.as_json() for view in make_views(scheme.views, made)],
            "published": list(scheme.published), **({"inert": inert} if inert else {}), **({"cut": cut} if cut else {}),
            "correctness_metrics": list(scheme.correctness_metrics), **found, **unjudged,
            "notes": [*plan.notes, *cut, *inert, *(plan.schedule.notes if plan.schedule else ()),
                      *_unit_notes((found["comparisons"] or {}).get("pairs", ()), by_cell, grouped, scheme.headline),
                      *notes.note_undroppable((str(cell.change) for cell in cells), questions.values()),
                      *notes.note_placing((cell.perturbation, result) for cell in cells
                                                    for result in by_cell[cell.id]),
                      *notes.note_variations(((cell.variation, result) for cell in cells
                                              for result in by_cell[cell.id]),
                                         settings.paraphrasing_model, plan.models),
                      *(notes.note_small_halves(rows) if "unified" in scheme.metrics else ()),
                      *dict.fromkeys(failed.values()), *notes.note_late_clues(questions.values()),
                      *notes.note_miners(plan.finders, cells, questions.values()),
                      *_ranking_notes(plan, shown, questions),
                      *note_models(plan.models, settings.calls, known_models(folder.path)),
                      *notes.note_judge(judge, judge_used), *notes.note_refused(refused_parameters(folder.database)),
                      *_checker_notes(settings, results), *notes.note_gold_filled(settings.filled, results),
                      *notes.note_unjudged(unjudged), *notes.note_own_judges(results), *notes.note_cached(results),
                      *(notes.note_rules(cell.rules for cell in cells if not all(
                          one.answerable for one in by_cell[cell.id])) if "answers" in scheme.groups else ())],
            "results": folder.results_hash()}


def _read_once(folder: RunFolder, by_cell: Mapping[str, list[Result]],
               shown: Mapping[str, ShownPassages]) -> Iterator[Result]:
    """Yield the results, and keep of each what the figures need."""
    @lru_cache(maxsize=1)
    def read(cell: str, question: str) -> Result:
        return next(folder.results(one=(cell, question)))

    shared: dict[Any, Any] = {}
    for result in folder.results():
        if result.cell in by_cell:  # records of other cells go at a run's end
            by_cell[result.cell].append(cast("Result", BriefResult(result, read, shared)))
            shown[result.cell].add(result)
            yield result


def _columns(rows: Sequence[Mapping[str, Any]], results: Sequence[Result], scheme: Scheme,
             failed: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns, the properties of custom metrics, the metrics that failed, and what custom judges could not
    grade. The properties are stored so that a run can be opened without the metrics' code."""
    used = {name for one in results for found in one.measured.values() if isinstance(found, dict) for name in found}
    used |= {f"{verdict.judge}{end}" for one in results for verdict in one.judgements for end in ("", "_unjudged")}
    ungraded = notes.note_own_judges(results)
    names = list(dict.fromkeys(name for row in rows for name in row["metrics"] if name in used & DECLARED.keys()))
    columns = [*scheme.columns[:1], *(one for one in scheme.columns[1:] if one not in DECLARED or one in names)]
    return {"columns": [*columns, *(one for one in names if one not in columns and not one.endswith("_unjudged"))],
            **({"own_metrics": [asdict(DECLARED[name]) for name in names]} if names else {}),
            **({"failed_metrics": failed} if failed else {}), **({"ungraded": ungraded} if ungraded else {})}


def _find_unjudged(results: Sequence[Result], by_cell: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """If answers are unjudged, return how many and why, and the cells in which the judge graded none."""
    said = notes.describe_unjudged(result.verdict for result in results)
    without = [cell for cell, own in by_cell.items() if said and drop_judge_scores(own) != own]
    return {"unjudged": {"said": said, "cells": without}} if said else {}


def _ranking_notes(plan: Plan, shown: Mapping[str, ShownPassages], questions: Mapping[str, Question]) -> list[str]:
    if "ranking" not in plan.scheme.groups:
        return []
    searched = [cell for cell in plan.cells if cell.searched and cell.finder is not None]
    if not searched:
        return []
    asked = {str(cell.finder): plan.finders[str(cell.finder)].retriever.k for cell in searched}
    return [*notes.note_shallow_retrievers(asked, plan.scheme.columns), *notes.note_unranked(questions.values()),
            *notes.note_ranked_chunks((str(cell.finder), shown[cell.id]) for cell in searched)]


def _compare_cells(rows: Sequence[Mapping[str, Any]], by_cell: Mapping[str, Sequence[Result]], plan: Plan,
                   grouped: Clusters) -> dict[str, Any]:
    """Compare the cells pairwise by the metric of the first column, with repeats pooled. For a race,
    return only its own anytime-valid results."""
    settings = plan.settings
    answers = {cell: {result.question: result for result in results} for cell, results in by_cell.items()}
    together = summarise_replicates(rows, answers, grouped, settings.scoring, settings.seed)
    compared = plan.schedule.comparisons(answers) if plan.schedule else compare_pairs(
        rows, answers, grouped, plan.scheme.headline, settings.scoring, settings.seed, together)
    return {"comparisons": compared, "repeated": together}


def _unit_notes(pairs: Sequence[Mapping[str, Any]], by_cell: Mapping[str, Sequence[Result]], grouped: Clusters,
                metric: str) -> list[str]:
    scores = {cell: {one.question: score for one in results if (score := one.scores.get(metric)) is not None}
              for cell, results in by_cell.items()}
    sides = [(scores[one["first"]], scores[one["second"]]) for one in pairs]
    changes = [{id: after[id] - before[id] for id in before if id in after} for before, after in sides]
    return [*grouped.notes(len(pairs)), *note_correlation(changes or scores.values(), grouped)]


def _checker_notes(settings: RunSettings, results: Sequence[Result]) -> Sequence[str]:
    support = getattr(settings, "support", None)
    return [*([support.note(result.support for result in results)] if support else []),
            *(load(entries("refusal")["note"])(settings, results) if settings.judging_models[2] else ())]


def _row(cell: Cell, results: Sequence[Result], shown: ShownPassages, settings: RunSettings, judge: str | None,
         grouped: Mapping[str, str], chained: bool) -> dict[str, Any]:
    return {"id": cell.id, **cell.levels, "layout": settings.layout, "judge": judge,
            "scoring": settings.scoring, "n": len(results), "outcomes": count_outcomes(results),
            "metrics": aggregate(results, settings.scoring, settings.seed, refusing=may_refuse(cell.rules),
                                 clusters=[grouped[result.question] for result in results]),
            "usage": _usage([result.usage for result in results]),
            "passages": round(shown.total / len(results), 4) if results else None,
            "judge_usage": _usage([result.judge_usage for result in results]),
            **({"sub_answers": settings.sub_answers, "filled": settings.filled,
                "sub_usage": _usage([result.sub_usage for result in results])} if chained else {})}


def _usage(used: Sequence[Usage]) -> dict[str, Any]:
    total = sum(used, Usage())
    price = None if total.price is None else round(total.price, 8)
    cached = {"cached_tokens": total.cached_tokens} if total.cached_tokens else {}  # some servers report none
    return {"prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens, "calls": total.calls,
            "price": price, **cached}

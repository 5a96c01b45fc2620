"""Error analysis of a run: why answers are right or wrong, in every cell, and pair by pair against the gold alone."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.cases import Cases, Grouped, find_siblings, is_gold_only, make_cases, share_by_question
from ragbed.experiments.analysis.causes import CAUSES, Case, find_cause
from ragbed.experiments.analysis.tradeoff import Sweeps, estimate_tradeoff
from ragbed.experiments.analysis.view import Chart, Point, Value, View
from ragbed.experiments.cells import OWN, Cell
from ragbed.experiments.formatting import metric_title
from ragbed.experiments.metrics import Estimate, ScoredQuestion, Scoring, aggregate, estimate_clustered_share
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import ALPHA, holm, mcnemar, pair_scores, permutation

_DIGITS = 10


def _on_answers(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question]) -> Iterator[str]:
    """What the run lacks for a cause to be told, and how answers were counted."""
    every = [case for of_cell in cases.values() for case in of_cell.values()]
    conditions = {cell.condition for cell in cells}
    names = [find_cause(case).name for cell in cells if cell.retrieval != OWN for case in cases[cell.id].values()]
    if partial := sum(case.score is not None and 0 < case.score < 1 for case in every):
        yield f"{partial} of {len(every)} answers are partially correct: they count as wrong here, each with its cause."
    if (untold := names.count("undetermined")) and "gold" not in conditions:
        yield (f"{untold} answers are wrong with the gold in view. Whether other passages distracted or the reasoning "
               "failed cannot be told without the gold alone: add `gold` to the conditions.")
    if (guessed := names.count("unsupported")) and "closed-book" not in conditions:
        yield (f"{guessed} answers are right without gold in view. Whether from memory cannot be told without "
               "asking closed-book: add `closed-book` to the conditions.")
    if unnamed := sum(question.answerable and not question.gold for question in questions.values()):
        yield (f"{unnamed} of {len(questions)} questions are answerable and name no gold evidence: what is wrong there "
               "is neither retrieval's nor reasoning's for certain.")
    alone = [case for case in every if case.gold_alone and case.answerable]
    if short := sum(case.gold is not None and not case.in_view for case in alone):
        yield (f"Under `gold` {short} of {len(alone)} answers were given without all of the gold that is named, "
               "since not all of it is where evidence is taken from: wrong ones count as retrieval misses there too.")
    if coarse := sum(case.coarse for case in every):
        yield (f"For {coarse} of the {sum(case.found > 0 for case in every)} answers with gold in view it was matched "
               "by document or page alone: a passage counts as gold there whether or not it states the answer.")


def _on_pairs(cases: Cases, joint: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say that a model which is right now and then, shown whatever, looks distracted, or better retrieval a cure."""
    told = [row for row in joint if any(find_cause(case).name == "distracted" for case in cases[row["cell"]].values())]
    if chance := sum(row["p_holm"] is None or row["p_holm"] >= ALPHA or row["lost"] <= row["gained"] for row in told):
        yield (f"`distracted` may be chance in {chance} of {len(told)} cells that have it and are paired with the gold "
               "alone: questions that are right over the gold alone only are not clearly more there than those that "
               "are right in the cell only (`ragbed diagnose` shows the pairs).")
    if any(row["mended"]["mean"] for row in joint):
        yield ("Retrieval misses that are right over the gold alone show what better retrieval could mend at most: a "
               "model that is right now and then, whatever it is shown, is right there as often. So it may be with "
               "what stays right. `ragbed diagnose` shows beside them how often the cells' other questions are right "
               "over the gold alone.")


def compare_with_gold(cells: Sequence[Cell], cases: Cases, grouped: Grouped, seed: int) -> list[dict[str, Any]]:
    """Return a row for each cell that has a sibling over the gold alone, which is `gold` in the row.

    Over the questions that are scored and judged in both and answerable in both; where no answer came, none is right.
    `both`, `lost` (right over the gold alone, not in the cell), `gained` (the other way round) and `neither` count
    them. `kept` is the share of those right over the gold alone that are right in the cell; `mended` the share of the
    cell's retrieval misses that are right over the gold alone, and `others` that share of its other questions: better
    retrieval is a cause only as far as `mended` exceeds what a model that is right now and then would have anyway. p is
    that of McNemar's exact test, or of the permutation test where questions share documents; `p_holm` is corrected over
    the rows.
    """
    rows = [_joint_row(cell, gold, cases, grouped, seed) for cell, gold in _paired(cells)]
    corrected = holm([row["p"] for row in rows])
    return [{**row, "p_holm": _rounded(p)} for row, p in zip(rows, corrected, strict=True)]


def _paired(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Each cell with its sibling over the gold alone; closed-book, whose rules are its own, with each that has it."""
    siblings = find_siblings(cells)
    of = {cell.id: [one] for cell in cells if (one := siblings[cell.id].gold) is not None}
    for cell in cells:
        closed = siblings[cell.id].closed_book
        if is_gold_only(cell) and not cell.change.moves and closed is not None:
            of.setdefault(closed, []).append(cell.id)
    return [(cell.id, one) for cell in cells for one in of.get(cell.id, ())]


def _joint_row(cell: str, gold: str, cases: Cases, grouped: Grouped, seed: int) -> dict[str, Any]:
    pairs = {question: (case, other) for question, case in cases[cell].items()
             if (other := cases[gold].get(question)) is not None and all(
                 one.answerable and one.score is not None and not one.unjudged for one in (case, other))}
    counts = Counter((case.right, other.right) for case, other in pairs.values())
    both, lost, gained = counts[True, True], counts[False, True], counts[True, False]
    kept = {question: case.right for question, (case, other) in pairs.items() if other.right}
    missed = {question for question, (case, _) in pairs.items() if find_cause(case).name == "retrieval_miss"}
    mended, others = ({question: other.right for question, (_, other) in pairs.items() if (question in missed) is miss}
                      for miss in (True, False))
    p = mcnemar(gained, lost) if pairs else None
    if len({grouped.get(question, question) for question in pairs}) < len(pairs):
        first, second = ({question: ScoredQuestion(True, "answered", {"right": float(pair[side].right)})
                          for question, pair in pairs.items()} for side in (1, 0))
        p = permutation(pair_scores("right", first, second, grouped), seed)
    return {"cell": cell, "gold": gold, "n": len(pairs), "both": both, "lost": lost, "gained": gained,
            "neither": counts[False, False], "kept": share_by_question(kept, grouped),
            "mended": share_by_question(mended, grouped), "others": share_by_question(others, grouped),
            "p": _rounded(p)}


def _rounded(p: float | None) -> float | None:
    return None if p is None else round(p, _DIGITS)


def analyse_errors(cells: Sequence[Cell], results: Iterable[Result], questions: Mapping[str, Question],
               correctness_metrics: Sequence[str], scoring: Scoring, grouped: Grouped, seed: int,
               sweeps: Sweeps) -> dict[str, Any]:
    """Return the summary's `error_analysis` and `tradeoff`, of the cells' results, which have scores and need no
    traces; `grouped` is the cluster of each question."""
    cases = make_cases(cells, results, questions, correctness_metrics, scoring)
    return {"error_analysis": summarise_causes(cells, cases, questions, correctness_metrics, grouped, seed),
            "tradeoff": estimate_tradeoff(cells, cases, grouped, sweeps, seed)}


def summarise_causes(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question],
                      correctness_metrics: Sequence[str], grouped: Grouped, seed: int) -> dict[str, Any] | None:
    """Return the summary's `error_analysis`; None where the benchmark has no notion of a right answer.

    Of each cell, beside the shares of the causes: `known`, the share of its right answers that are right closed-book
    too; `gold_whole`, the share of the answerable questions with named gold that had all of it in view; `gold_found`,
    the mean share of it that was; `abstained`, the share of the retrieval misses that were refused.
    """
    if not correctness_metrics:
        return None
    joint = compare_with_gold(cells, cases, grouped, seed)
    return {"metric": correctness_metrics[0],
            "causes": [{"name": one.name, "title": one.title, "definition": one.definition} for one in CAUSES],
            "cells": [_cell_row(cell, cases[cell.id], grouped, seed) for cell in cells],
            "joint": joint,
            "notes": [*_on_answers(cells, cases, questions), *_on_pairs(cases, joint)]}


def _cell_row(cell: Cell, cases: Mapping[str, Case], grouped: Grouped, seed: int) -> dict[str, Any]:
    causes, together = [find_cause(case) for case in cases.values()], [grouped.get(name, name) for name in cases]
    named = {question: case for question, case in cases.items()
             if case.answerable and case.gold is not None and not case.closed_book}
    known = {question: case.known for question, case in cases.items() if case.right and case.known is not None}
    return {"cell": cell.id, "n": len(cases),
            "causes": {one.name: estimate_clustered_share([cause is one for cause in causes], together)
                       for one in CAUSES},
            "known": share_by_question(known, grouped),
            "gold_whole": share_by_question({question: case.in_view for question, case in named.items()}, grouped),
            "gold_found": _found(named, grouped, seed),
            "abstained": share_by_question({question: case.refused for question, case in cases.items()
                                if find_cause(case).name == "retrieval_miss"}, grouped)}


def _found(cases: Mapping[str, Case], grouped: Grouped, seed: int) -> Estimate:
    rows = [ScoredQuestion(True, "answered", {"recall": case.found / case.gold})
            for case in cases.values() if case.gold]
    together = [grouped.get(question, question) for question in cases]
    return aggregate(rows, seed=seed, clusters=together)["recall"] if rows else share_by_question({}, grouped)


_KNOWN = (("known", "of the right, right closed-book too"), ("gold_whole", "all gold in view"),
          ("gold_found", "gold in view, mean"), ("abstained", "of the retrieval misses, refused"))


def cause_views(found: Mapping[str, Any] | None, called: Mapping[str, str],
                correctness_metrics: Sequence[str]) -> list[View]:
    """Return views of the causes, of what was known and in view, of each cell beside the gold alone, and of what the
    causes mean, of what `summarise_causes` made. Cells that `called` has no label for, by their ids, are left out; by
    `correctness_metrics` a score of 1 means right."""
    if not found or not found["cells"]:
        return []
    rows = [row for row in found["cells"] if row["cell"] in called]
    occurring = [one for one in found["causes"] if any(row["causes"].get(one["name"], {}).get("mean") for row in rows)]
    views = [
        View("causes", "Why answers are right or wrong: shares of the questions", (
            "cell", "n", *(one["title"] for one in occurring)), tuple(
            (called[row["cell"]], row["n"], *(row["causes"].get(one["name"]) for one in occurring)) for row in rows),
            notes=tuple(found["notes"]), charts=(_bars(rows, occurring, called,
                                                       correctness_metrics),), section="Causes"),
        View("causes:known", "What was known, and what was in view: shares of the questions", (
            "cell", *(title for _, title in _KNOWN)), tuple(
            (called[row["cell"]], *(row.get(name) for name, _ in _KNOWN)) for row in rows), section="Causes")]
    if joint := [row for row in found["joint"] if row["cell"] in called]:
        views.append(_beside_gold(joint, called))
    first = [one["name"] for one in occurring]
    return [*views, View("causes:definitions", "What the causes mean: the first that holds is the one", (
        "cause", "name", "definition"), tuple((one["title"], one["name"], one["definition"]) for one in sorted(
            found["causes"], key=lambda one: one["name"] not in first)), section="Causes", folded=True)]


def _bars(rows: Sequence[Mapping[str, Any]], causes: Sequence[Mapping[str, Any]], called: Mapping[str, str],
          correctness_metrics: Sequence[str]) -> Chart:
    points = []
    for row in rows:
        label = called[row["cell"]]
        for one in causes:
            share = row["causes"].get(one["name"])
            if share and share["mean"]:
                counted = f"{one['title']}: {round(share['mean'] * share['n'])} of {row['n']}"
                points.append(Point(one["title"], label, share["mean"], cell=label, words=(counted,),
                                    questions={"cell": label, "cause": one["name"]}, n=share["n"]))
    right = ", or else ".join(metric_title(name) for name in correctness_metrics)
    said = f"Blue is right{f': {right} of 1' if right else ''}. A part leads to its questions."
    return Chart("bars", "One bar a cell, a part for each cause. The table has the same.", "", "share of the questions",
                 tuple(points), caption=f"Every question of a cell has one cause, and a bar is all of them. {said}")


def _beside_gold(joint: Sequence[Mapping[str, Any]], called: Mapping[str, str]) -> View:
    rows: list[tuple[Value, ...]] = [
        (called[row["cell"]], row["n"], *(row[name] for name in (
            "both", "lost", "gained", "neither", "kept", "mended")), row.get("others"), row["p"], row["p_holm"])
        for row in joint]
    return View("causes:gold", "Beside the same questions over the gold alone", (
        "cell", "n", "right in both", "right over the gold alone only", "right here only", "neither", "stays right",
        "retrieval misses right over the gold alone", "others right over the gold alone", "p", "p (Holm)"), tuple(rows),
        main=6, p=("p", "p (Holm)"), section="Causes")

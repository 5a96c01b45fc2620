"""Error analysis: why each cell's answers are right or wrong, and how they compare with answers from only the gold."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragbed.experiments.analysis.causes import (
    CAUSES,
    Case,
    Cases,
    Cause,
    Grouped,
    causes_by_name,
    find_cause,
    find_general_cause,
    find_siblings,
    is_gold_only,
    make_cases,
    share_by_question,
)
from ragbed.experiments.analysis.tradeoff import Sweeps, estimate_tradeoff
from ragbed.experiments.analysis.view import Chart, Point, Value, View
from ragbed.experiments.cells import OWN, Cell
from ragbed.experiments.formatting import metric_title
from ragbed.experiments.metrics import Estimate, ScoredQuestion, Scoring, aggregate, estimate_clustered_share
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.experiments.statistics import holm, mcnemar, pair_scores, permutation

_DIGITS = 10


def _answer_notes(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question]) -> Iterator[str]:
    """Yield notes on how answers were counted, and on conditions without which some causes cannot be determined."""
    every = [case for of_cell in cases.values() for case in of_cell.values()]
    conditions = {cell.condition for cell in cells}
    names = [find_cause(case).name for cell in cells if cell.retrieval != OWN for case in cases[cell.id].values()]
    if partial := sum(case.score is not None and 0 < case.score < 1 for case in every):
        yield f"{partial} of {len(every)} answers are partially correct. They count as wrong here, each with its cause."
    if (undetermined := names.count("undetermined")) and "gold" not in conditions:
        yield (f"{_count_answers(undetermined)} wrong with the gold in view. Add `gold` to the conditions to find out "
               "whether other passages distracted the model or its reasoning failed.")
    if (unsupported := names.count("unsupported")) and "closed-book" not in conditions:
        yield (f"{_count_answers(unsupported)} right without gold in view. Add `closed-book` to the conditions to find "
               "out whether the model knew them.")
    if unnamed := sum(question.answerable and not question.gold for question in questions.values()):
        yield (f"{unnamed} of {len(questions)} questions are answerable but have no gold evidence, so their errors "
               "cannot be attributed to retrieval or reasoning.")
    alone = [case for case in every if case.gold_alone and case.answerable]
    if short := sum(case.gold is not None and not case.in_view for case in alone):
        yield (f"Under `gold`, {short} of {len(alone)} answers were given without some of the gold, because the "
               f"documents do not contain it. Wrong ones count as retrieval misses.")
    if coarse := sum(case.coarse for case in every):
        yield (f"In {coarse} of the {sum(case.found > 0 for case in every)} answers with gold in view, the gold is "
               f"known only by document or page, so the passage may not state the answer.")


def _count_answers(count: int) -> str:
    return "1 answer is" if count == 1 else f"{count} answers are"


def _pair_notes(cases: Cases, joint: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield warnings about lucky guesses, which can look like distraction or like retrieval misses.
    """
    rows = [row for row in joint if any(find_cause(case).name == "distracted" for case in cases[row["cell"]].values())]
    if chance := sum(row["p_holm"] is None or row["p_holm"] >= ALPHA or row["lost"] <= row["gained"] for row in rows):
        yield (f"`distracted` may be due to chance in {chance} of {len(rows)} cells: there, the gold alone does not "
               f"give significantly more right answers than the cell.")
    if any(row["mended"]["mean"] for row in joint):
        yield ("Retrieval misses that are right with the gold only are an upper bound of what better retrieval could "
               "fix, because a model may also be right by chance. Compare their share with that of the cell's other "
               "questions.")


def compare_with_gold(cells: Sequence[Cell], cases: Cases, grouped: Grouped, seed: int) -> list[dict[str, Any]]:
    """Return a row for each cell that has a gold-only sibling; `gold` is the sibling's id.

    The row covers the questions that are answerable, scored and judged in both; a failure counts as wrong. `both`,
    `lost` (right with the gold only), `gained` (right in the cell only) and `neither` count them. Of the questions that
    are right with the gold, `kept` is the share that is right in the cell. `mended` is the share of the cell's
    retrieval misses that are right with the gold, and `others` the same share of its other questions. p is from
    McNemar's exact test or, if questions share documents, from the permutation test; `p_holm` is corrected over the
    rows.
    """
    rows = [_joint_row(cell, gold, cases, grouped, seed) for cell, gold in _paired(cells)]
    corrected = holm([row["p"] for row in rows])
    return [{**row, "p_holm": _round(p)} for row, p in zip(rows, corrected, strict=True)]


def _paired(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Pair each cell with its gold-only and its closed-book sibling."""
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
    missed = {question for question, (case, _) in pairs.items() if find_general_cause(case).name == "retrieval_miss"}
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
            "p": _round(p)}


def _round(p: float | None) -> float | None:
    return None if p is None else round(p, _DIGITS)


def analyse_errors(cells: Sequence[Cell], results: Iterable[Result], questions: Mapping[str, Question],
               correctness_metrics: Sequence[str], scoring: Scoring, grouped: Grouped, seed: int,
               sweeps: Sweeps) -> dict[str, Any]:
    """Return the summary's `error_analysis` and `tradeoff`."""
    cases = make_cases(cells, results, questions, correctness_metrics, scoring)
    return {"error_analysis": summarise_causes(cells, cases, questions, correctness_metrics, grouped, seed),
            "tradeoff": estimate_tradeoff(cells, cases, grouped, sweeps, seed)}


def summarise_causes(cells: Sequence[Cell], cases: Cases, questions: Mapping[str, Question],
                      correctness_metrics: Sequence[str], grouped: Grouped, seed: int) -> dict[str, Any] | None:
    """Return the summary's `error_analysis`, or None if the benchmark has no correctness metric.

    Each cell has the shares of its causes; `known`, the share of its right answers that are also right closed-book;
    `gold_whole`, the share of questions with all of their gold in view; `gold_found`, the mean share of gold in view;
    and `abstained`, the share of retrieval misses that were refused.
    """
    if not correctness_metrics:
        return None
    joint = compare_with_gold(cells, cases, grouped, seed)
    occurring = {find_cause(case).name for of_cell in cases.values() for case in of_cell.values()}
    causes = [one for name, one in causes_by_name().items() if one in CAUSES or name in occurring]
    return {"metric": correctness_metrics[0],
            "causes": [{"name": one.name, "title": one.title, "definition": one.definition} for one in causes],
            "cells": [_cell_row(cell, cases[cell.id], causes, grouped, seed) for cell in cells],
            "joint": joint,
            "notes": [*_answer_notes(cells, cases, questions), *_pair_notes(cases, joint)]}


def _cell_row(cell: Cell, cases: Mapping[str, Case], causes: Sequence[Cause], grouped: Grouped,
              seed: int) -> dict[str, Any]:
    found, together = [find_cause(case) for case in cases.values()], [grouped.get(name, name) for name in cases]
    named = {question: case for question, case in cases.items()
             if case.answerable and case.gold is not None and not case.closed_book}
    known = {question: case.known for question, case in cases.items() if case.right and case.known is not None}
    unjudged = {case.unjudged for case in cases.values() if case.answered and case.answerable} == {True}
    return {"cell": cell.id, "n": len(cases),
            "causes": {one.name: estimate_clustered_share([cause is one for cause in found], together)
                       for one in causes if not (unjudged and one.right)},
            "known": share_by_question(known, grouped),
            "gold_whole": share_by_question({question: case.in_view for question, case in named.items()}, grouped),
            "gold_found": _gold_found(named, grouped, seed),
            "abstained": share_by_question({question: case.refused for question, case in cases.items()
                                if find_general_cause(case).name == "retrieval_miss"}, grouped)}


def _gold_found(cases: Mapping[str, Case], grouped: Grouped, seed: int) -> Estimate:
    rows = [ScoredQuestion(True, "answered", {"recall": case.found / case.gold})
            for case in cases.values() if case.gold]
    together = [grouped.get(question, question) for question in cases]
    return aggregate(rows, seed=seed, clusters=together)["recall"] if rows else share_by_question({}, grouped)


_KNOWN = (("known", "right answers also right closed-book"), ("gold_whole", "all gold in view"),
          ("gold_found", "mean share of gold in view"), ("abstained", "retrieval misses refused"))


def cause_views(found: Mapping[str, Any] | None, called: Mapping[str, str],
                correctness_metrics: Sequence[str]) -> list[View]:
    """Return views of the result of `summarise_causes`: causes, knowledge and gold in view, the comparison with the
    gold only, and definitions. `called` maps the ids of the cells to show to their labels."""
    if not found or not found["cells"]:
        return []
    rows = [row for row in found["cells"] if row["cell"] in called]
    occurring = [one for one in found["causes"] if any(row["causes"].get(one["name"], {}).get("mean") for row in rows)]
    views = [
        View("causes", "Why answers are right or wrong (shares of questions)", (
            "cell", "n", *(one["title"] for one in occurring)), tuple(
            (called[row["cell"]], row["n"], *(row["causes"].get(one["name"]) for one in occurring)) for row in rows),
            notes=tuple(found["notes"]), charts=(_bars(rows, occurring, called,
                                                       correctness_metrics),), section="Causes"),
        View("causes:known", "Knowledge and gold in view (shares of questions)", (
            "cell", *(title for _, title in _KNOWN)), tuple(
            (called[row["cell"]], *(row.get(name) for name, _ in _KNOWN)) for row in rows), section="Causes")]
    if joint := [row for row in found["joint"] if row["cell"] in called]:
        views.append(_beside_gold(joint, called))
    first = [one["name"] for one in occurring]
    return [*views, View("causes:definitions", "Definitions of the causes; the first that fits applies", (
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
    names = ", or ".join("a correct answer or a right refusal" if name == "unified" else f"{metric_title(name)} is 1"
                         for name in correctness_metrics)
    right = f": {names}" if names else ""
    return Chart("bars", "Causes by cell", "", "share of questions", tuple(points), caption=(
        f"Every question of a cell has one cause. Blue means right{right}. Select a part to see its questions."))


def _beside_gold(joint: Sequence[Mapping[str, Any]], called: Mapping[str, str]) -> View:
    rows: list[tuple[Value, ...]] = [
        (called[row["cell"]], row["n"], *(row[name] for name in (
            "both", "lost", "gained", "neither", "kept", "mended")), row.get("others"), row["p"], row["p_holm"])
        for row in joint]
    return View("causes:gold", "The same questions with the gold only", (
        "cell", "n", "right in both", "right with gold only", "right here only", "neither", "stays right",
        "retrieval misses right with gold", "others right with gold", "p", "p (Holm)"), tuple(rows),
        main=6, p=("p", "p (Holm)"), section="Causes")

"""Build the cases of a run and find their causes. A case also knows how the question was answered in sibling cells."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ragbed.experiments.analysis.causes import Case, Cause, find_cause
from ragbed.experiments.analysis.view import View
from ragbed.experiments.cells import Cell
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.metrics import METRICS, Estimate, Scoring, estimate_clustered_share, may_cite, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result

# Factors that follow from a condition. All others must agree in siblings, repeats included; for seeds see `_agrees`.
_SHOWN = frozenset({"condition", "retrieval", "retriever", "chunker", "embedder", "format", "perturbation", "seed"})


@dataclass(frozen=True, slots=True)
class Siblings:
    """Ids of a cell's siblings; None if the run has none."""

    closed_book: str | None = None  # the closed-book sibling, which has its own rules
    gold: str | None = None  # the sibling with the gold only; None if this cell is itself gold-only
    fewest_negatives: str | None = None  # the sibling with the same evidence and the fewest added negatives


def find_siblings(cells: Sequence[Cell]) -> dict[str, Siblings]:
    """Return the siblings of every cell, by its id."""
    closed: dict[object, list[Cell]] = defaultdict(list)
    alone: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.condition == "closed-book":
            closed[_asked(cell, rules=False)].append(cell)
        elif is_gold_only(cell):
            alone[_asked(cell)].append(cell)
    return {cell.id: Siblings(_nearest(cell, closed[_asked(cell, rules=False)]),
                              None if is_gold_only(cell) else _nearest(cell, alone[_asked(cell)]),
                              _with_fewest_negatives(cell, cells))
            for cell in cells}


def is_gold_only(cell: Cell) -> bool:
    """Return whether the cell shows only the gold, in any order and form."""
    change = cell.change
    return cell.condition == "gold" and not (change.negatives or change.drop_gold or change.table)


def _asked(cell: Cell, rules: bool = True) -> tuple[object, ...]:
    """Return the factors of the prompt other than the evidence. Closed-book cells have their own rules and no
    framing."""
    left = _SHOWN if rules else _SHOWN | {"rules", "framing"}
    return tuple((name, value) for name, value in asdict(cell).items() if name not in left)


def _nearest(cell: Cell, others: Sequence[Cell]) -> str | None:
    """Return the most similar cell: same format, retriever and numbering if possible, and the least reordering."""
    def distance(other: Cell) -> tuple[bool, ...]:
        return (other.format != cell.format, other.finder != cell.finder, other.separators != cell.separators,
                other.change.moves)

    found = min((other for other in others if other != cell and _agrees(other, cell)), key=distance, default=None)
    return None if found is None else found.id


def _agrees(other: Cell, cell: Cell) -> bool:
    """Return whether the seeds are equal, or one of the cells has no randomness."""
    return other.seed is None or cell.seed in (None, other.seed)


def _with_fewest_negatives(cell: Cell, cells: Sequence[Cell]) -> str | None:
    """Among cells that differ only in adding fewer negatives, return the one with the fewest."""
    fewer = (other for other in cells if other.change.negatives < cell.change.negatives and _agrees(other, cell)
             and replace(other, perturbation=_without(other.change), seed=cell.seed)
             == replace(cell, perturbation=_without(cell.change)))
    found = min(fewer, key=lambda other: other.change.negatives, default=None)
    return None if found is None else found.id


def _without(change: Perturbation) -> str:
    return str(replace(change, negatives=0))


Cases = Mapping[str, Mapping[str, Case]]  # by cell id, then by question id
Grouped = Mapping[str, str]  # cluster by question id
_COARSE = ("page", "document")


def find_causes(cells: Sequence[Cell], results: Iterable[Result], questions: Mapping[str, Question],
              correctness_metrics: Sequence[str], scoring: Scoring = "corrected") -> dict[str, dict[str, str]]:
    """Return the name of the cause of every result, by cell id and question id. The mapping is empty if the benchmark
    has no correctness metric. Traces are not needed."""
    found = make_cases(cells, results, questions, correctness_metrics, scoring)
    return {cell: {question: find_cause(case).name for question, case in cases.items()} for cell,
            cases in found.items()}


def share_by_question(hits: Mapping[str, bool], grouped: Grouped) -> Estimate:
    """Return the share of questions that are hits, with its interval."""
    return estimate_clustered_share(list(hits.values()), [grouped.get(question, question) for question in hits])


def case_view(cause: Cause, cases: Cases, called: Mapping[str, str], questions: Mapping[str, Question]) -> View:
    """List the questions that have a cause, each with the facts that decided it, for a manual check. `called` maps cell
    ids to labels."""
    places = {id: place for place, id in enumerate(questions, start=1)}
    several = len(called) > 1
    rows = [(f"#{places[question]}", questions[question].text, *([label] if several else []), case.outcome,
             case.score, "; ".join(describe_case(case)))
            for cell, label in called.items() for question, case in cases[cell].items() if find_cause(case) is cause]
    return View(f"cause:{cause.name}", f"{cause.title}: {cause.definition}", (
        "number", "question", *(["cell"] if several else []), "outcome", "score", "what decided it"), tuple(rows), 2,
        section="Causes")


def describe_case(case: Case) -> Iterator[str]:
    """Yield the facts that decide the cause of a case, in words."""
    if not case.answerable:
        yield "unanswerable"
    if case.refused:
        yield "refused"
    if case.unread:
        yield "names no option"
    if case.unjudged:
        yield "no readable verdict"
    if not case.closed_book:
        yield "no gold known" if case.gold is None else f"{case.found} of {case.gold} gold in view"
    if case.cites and case.found and case.answered:
        yield "gold cited" if case.cited_gold else "no gold cited"
    for said, name in ((case.right_with_gold, "with the gold only"), (case.right_with_fewer_negatives,
                                                                       "with fewer negatives"),
                       (case.known, "closed-book")):
        if said is not None:
            yield f"{'right' if said else 'wrong'} {name}"


def make_cases(cells: Sequence[Cell], results: Iterable[Result], questions: Mapping[str, Question],
             correctness_metrics: Sequence[str], scoring: Scoring) -> dict[str, dict[str, Case]]:
    """Return the cases of all results of these cells, in the cells' order; see `find_causes`."""
    if not correctness_metrics:
        return {}
    alone: dict[str, dict[str, Case]] = {cell.id: {} for cell in cells}
    known, siblings = {cell.id: cell for cell in cells}, find_siblings(cells)
    for result in results:
        if cell := known.get(result.cell):
            alone[cell.id][result.question] = _case(result, cell, questions[result.question], correctness_metrics,
                                                    scoring)
    return {id: {question: _join_siblings(case, question, siblings[id], alone) for question, case in cases.items()}
            for id, cases in alone.items()}


def _case(result: Result, cell: Cell, question: Question, correctness_metrics: Sequence[str], scoring: Scoring) -> Case:
    metric = next((name for name in correctness_metrics if result.scores.get(name) is not None), correctness_metrics[0])
    holding = [passage for passage in result.in_view if passage.holds]
    published = scoring == "as-published"
    # as-published scoring takes the first character as the choice
    unread = (result.outcome == "answered" and result.text[:1] not in {label for label, _ in question.options}
              if published else result.scores.get("unparsed") == 1)
    return Case(
        outcome=result.outcome, score=result.scores.get(metric), answerable=result.answerable,
        refused=result.refused_as_published if published and metric == "unified" else result.outcome == "refused",
        may_refuse=may_refuse(cell.rules), closed_book=cell.condition == "closed-book",
        gold=None if cell.change.table else result.gold_total or None,
        found=len({place for passage in holding for place in passage.holds}),
        coarse=any(passage.gold in _COARSE for passage in holding),
        cites=may_cite(cell.rules, separators=cell.separators),
        cited_gold=any(passage.number in result.cited for passage in holding),
        unread=metric == "accuracy" and unread,
        unjudged=METRICS[metric].judged and result.scores.get("unjudged") == 1, gold_alone=is_gold_only(cell))


def _join_siblings(case: Case, question: str, siblings: Siblings, alone: Cases) -> Case:
    return case if case.closed_book else replace(
        case, known=_is_right(siblings.closed_book, question, alone),
        right_with_gold=_is_right(siblings.gold, question, alone, whole=True),
        right_with_fewer_negatives=_is_right(siblings.fewest_negatives, question, alone))


def _is_right(cell: str | None, question: str, alone: Cases, whole: bool = False) -> bool | None:
    """Return whether the sibling's answer is right, or None if unknown. With `whole`, a wrong answer counts only if all
    of the gold was in view; otherwise the result is None."""
    case = None if cell is None else alone[cell].get(question)
    if case is None or (whole and not case.right and not case.in_view):
        return None
    return case.told

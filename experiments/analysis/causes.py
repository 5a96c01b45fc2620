"""Causes: why an answer is right or wrong. Each case gets the first cause in `CAUSES` whose predicate holds. A case
also knows how the question was answered in sibling cells. A guest's `FinerCause` may replace the cause of a case."""
from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from importlib import resources

from ragbed.agents.types import Outcome
from ragbed.experiments.analysis.view import View
from ragbed.experiments.cells import Cell
from ragbed.experiments.conditions import Perturbation
from ragbed.experiments.metrics import METRICS, Estimate, Scoring, estimate_clustered_share, may_cite, may_refuse
from ragbed.experiments.question import Question
from ragbed.experiments.record import Result
from ragbed.guests import loaded


@dataclass(frozen=True, slots=True)
class Case:
    """One question in one cell, with the facts that determine its cause."""

    outcome: Outcome
    score: float | None  # value of the correctness metric; None if none applies
    answerable: bool = True  # answerable in the benchmark, and its gold was not dropped
    refused: bool = False  # by the rule of the run's scoring
    may_refuse: bool = True  # the rules offer a refusal
    closed_book: bool = False  # the condition shows no documents
    gold: int | None = None  # number of distinct gold items; None if none is labelled or a table replaces the documents
    found: int = 0  # number of gold items in the evidence
    coarse: bool = False  # gold was matched by document or page only
    cites: bool = False  # the rules ask for citations
    cited_gold: bool = False  # a cited passage contains gold
    unread: bool = False  # no option could be read from the reply
    unjudged: bool = False  # the judge's reply could not be parsed
    gold_alone: bool = False  # only the gold was shown
    known: bool | None = None  # right closed-book; None if unknown
    right_with_gold: bool | None = None  # right with the gold only; None if unknown
    right_with_fewer_negatives: bool | None = None  # right with fewer added negatives; None if unknown
    finer: tuple[str, ...] = ()  # guests' causes that the record's scores show

    @property
    def right(self) -> bool:
        """Return whether the answer has the full score. Partially correct answers are not right."""
        return self.score == 1

    @property
    def answered(self) -> bool:
        """Return whether there is a readable answer that is not a refusal."""
        return self.outcome == "answered" and not self.refused and not self.unread

    @property
    def failed(self) -> bool:
        """Return whether there is no readable reply, for a reason other than its format."""
        return self.outcome in ("too_long", "budget", "timeout", "error")

    @property
    def in_view(self) -> bool:
        """Return whether all of the gold was shown."""
        return self.gold is not None and self.found >= self.gold

    @property
    def without_gold(self) -> bool:
        """Return whether the question was answered from documents without gold."""
        return self.gold is not None and not self.found and not (self.closed_book or self.refused)

    @property
    def uncited(self) -> bool:
        """Return whether the rules ask for citations, but the answer cites no gold."""
        due = self.cites and self.answerable and bool(self.found) and not self.refused
        return due and not self.cited_gold

    @property
    def told(self) -> bool | None:
        """Return whether the answer is right, or None if it could not be scored."""
        if self.right:
            return True
        silent = self.score is None or self.failed or self.outcome == "malformed" or self.unread or self.unjudged
        return None if silent else False


@dataclass(frozen=True, slots=True)
class Cause:

    name: str
    title: str
    definition: str  # applies to cases without an earlier cause
    holds: Callable[[Case], bool]  # predicate for cases without an earlier cause
    right: bool = False  # the answer is right by its score


@dataclass(frozen=True, slots=True)
class FinerCause:
    """A guest's cause (slot `cause`). It replaces the causes `of` in cases whose result it `holds` for."""

    title: str
    definition: str
    of: tuple[str, ...]
    holds: Callable[[Result], bool]


_HOLDS: Mapping[str, Callable[[Case], bool]] = {
    "right": lambda case: case.right and not case.without_gold and not case.uncited,
    "citation_only": lambda case: case.right and case.uncited,
    "parametric": lambda case: case.right and bool(case.known),
    "unsupported": lambda case: case.right,
    "failed": lambda case: case.failed,
    "format": lambda case: case.outcome == "malformed" or case.unread,
    "unjudged": lambda case: case.unjudged,
    "not_scored": lambda case: case.score is None,
    "missing_refusal": lambda case: not case.answerable and case.may_refuse and not case.refused,
    "closed_book_wrong": lambda case: case.closed_book,
    "gold_unknown": lambda case: case.gold is None,
    "retrieval_miss": lambda case: not case.in_view,
    "wrong_refusal": lambda case: case.refused,
    "distracted": lambda case: bool(
        case.right_with_fewer_negatives if case.right_with_gold is None else case.right_with_gold),
    "reasoning_error": lambda case: case.gold_alone or case.right_with_gold is False,
    "undetermined": lambda case: True,
}
_FILE = resources.files("ragbed.experiments.analysis").joinpath("causes.toml")
_TEXTS = tomllib.loads(_FILE.read_text(encoding="utf-8"))
_RIGHT = ("right", "citation_only", "parametric", "unsupported")
CAUSES = tuple(Cause(name, **_TEXTS[name], holds=holds, right=name in _RIGHT) for name, holds in _HOLDS.items())


@cache
def _finer_causes() -> Mapping[str, FinerCause]:
    found: dict[str, FinerCause] = loaded("cause")
    return found


@cache
def causes_by_name() -> Mapping[str, Cause]:
    """Return all causes by name, those of guests last."""
    return {cause.name: cause for cause in CAUSES} | {
        name: Cause(name, one.title, one.definition, lambda case: False) for name, one in _finer_causes().items()}


@lru_cache(maxsize=4096)  # a run has few distinct cases
def find_cause(case: Case) -> Cause:
    """Return the cause of a case."""
    general = find_general_cause(case).name
    return causes_by_name()[next((name for name in case.finer if general in _finer_causes()[name].of), general)]


def find_general_cause(case: Case) -> Cause:
    """Return the cause of a case among ragbed's own."""
    return next(cause for cause in CAUSES if cause.holds(case))


# Factors that a condition determines. Siblings agree in all others, including repeats; for seeds see `_same_seed`.
_SHOWN = frozenset({"condition", "retrieval", "retriever", "chunker", "embedder", "format", "perturbation", "seed"})


@dataclass(frozen=True, slots=True)
class Siblings:
    """Ids of a cell's siblings; None if the run has no such cell."""

    closed_book: str | None = None  # the closed-book sibling, which has its own rules
    gold: str | None = None  # the sibling with the gold only; None if this cell is itself gold-only
    fewest_negatives: str | None = None  # the sibling with the same evidence and the fewest added negatives


def find_siblings(cells: Sequence[Cell]) -> dict[str, Siblings]:
    """Return the siblings of every cell, by its id."""
    closed: dict[object, list[Cell]] = defaultdict(list)
    alone: dict[object, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.condition == "closed-book":
            closed[_prompt_factors(cell, rules=False)].append(cell)
        elif is_gold_only(cell):
            alone[_prompt_factors(cell)].append(cell)
    return {cell.id: Siblings(_nearest(cell, closed[_prompt_factors(cell, rules=False)]),
                              None if is_gold_only(cell) else _nearest(cell, alone[_prompt_factors(cell)]),
                              _with_fewest_negatives(cell, cells))
            for cell in cells}


def is_gold_only(cell: Cell) -> bool:
    """Return whether the cell shows only the gold, in any order and form."""
    change = cell.change
    return cell.condition == "gold" and not (change.negatives or change.drop_gold or change.table)


def _prompt_factors(cell: Cell, rules: bool = True) -> tuple[object, ...]:
    """Return the factors of the prompt except the evidence. Closed-book cells have their own rules and no framing."""
    left = _SHOWN if rules else _SHOWN | {"rules", "framing"}
    return tuple((name, value) for name, value in asdict(cell).items() if name not in left)


def _nearest(cell: Cell, others: Sequence[Cell]) -> str | None:
    """Return the most similar cell: same format, retriever and numbering if possible, and the least reordering."""
    def distance(other: Cell) -> tuple[bool, ...]:
        return (other.format != cell.format, other.finder != cell.finder, other.separators != cell.separators,
                other.change.moves)

    found = min((other for other in others if other != cell and _same_seed(other, cell)), key=distance, default=None)
    return None if found is None else found.id


def _same_seed(other: Cell, cell: Cell) -> bool:
    """Return whether the seeds are equal, or one of the cells has no randomness."""
    return other.seed is None or cell.seed in (None, other.seed)


def _with_fewest_negatives(cell: Cell, cells: Sequence[Cell]) -> str | None:
    """Return the cell with the fewest negatives among those that differ only in having fewer."""
    fewer = (other for other in cells if other.change.negatives < cell.change.negatives and _same_seed(other, cell)
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
    """List the questions that have a cause, with the facts that decided it. `called` maps cell ids to labels."""
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
    known, siblings, distinct = {cell.id: cell for cell in cells}, find_siblings(cells), dict[Case, Case]()
    for result in results:
        if cell := known.get(result.cell):
            case = _case(result, cell, questions[result.question], correctness_metrics, scoring)
            alone[cell.id][result.question] = distinct.setdefault(case, case)  # a run has few distinct cases
    return {id: cases if siblings[id] == Siblings() else {
        question: distinct.setdefault(one, one) for question, case in cases.items()
        for one in [_join_siblings(case, question, siblings[id], alone)]} for id, cases in alone.items()}


def _case(result: Result, cell: Cell, question: Question, correctness_metrics: Sequence[str], scoring: Scoring) -> Case:
    metric = next((name for name in correctness_metrics if result.scores.get(name) is not None), correctness_metrics[0])
    holding = [passage for passage in result.in_view if passage.holds]
    published = scoring == "as-published"
    # as-published scoring reads the first character as the choice
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
        unjudged=METRICS[metric].judged and result.scores.get("unjudged") == 1, gold_alone=is_gold_only(cell),
        finer=tuple(name for name, one in _finer_causes().items() if one.holds(result)))


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

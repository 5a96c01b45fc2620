"""Rankings of documents: those that a run's cells make, and those of another program as scores beside them."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from agents.types import Outcome
from documents.errors import SettingsError
from experiments.evidence.gold import distinct
from experiments.metrics.catalogue import score
from experiments.metrics.scored import Scored
from experiments.question import Question
from experiments.record import Result
from experiments.trec.files import Rankings


@dataclass(frozen=True, slots=True)
class Ranked:
    """A question with the scores of another program's ranking."""

    answerable: bool
    scores: Mapping[str, float | None]
    outcome: Outcome = "searched"


def rankings_of(results: Iterable[Result], questions: Collection[Question]) -> Rankings:
    """The documents that a cell found for each question, each at the rank of its best chunk; called as the gold calls
    them, by their id or by their source."""
    named = {item.document for question in questions for item in question.gold}
    return {result.question: list(dict.fromkeys(
        one.source if one.source in named else one.document for one in result.in_view
        if not (one.repeats and one.document == result.question))) for result in results}


def scores_of(rankings: Rankings, questions: Iterable[Question], wanted: Iterable[str] = ()) -> dict[str, Ranked]:
    """The scores of another program's rankings by question; 0 for a question that it ranks nothing for.

    Args:
        wanted: metrics of the group `ranking`, with any cuts.

    Raises:
        SettingsError: the gold of a question is finer than documents, which alone a TREC run ranks.
    """
    names = list(wanted)
    return {one.id: Ranked(one.answerable, score(_scored(rankings.get(one.id, ()), one), groups=("ranking",),
                                                 wanted=names)) for one in questions}


def _scored(ranked: Iterable[str], question: Question) -> Scored:
    gold = distinct(question.gold)
    places = {item.document: place for place, item in enumerate(gold)}
    if len(places) < len(gold) or any(item.page is not None or (item.start is not None and item.chunk is None)
                                      for item in gold):
        raise SettingsError(f"the gold of question {question.id} is finer than documents, and a TREC run ranks "
                            "documents; leave --run out")
    held = {number: frozenset([places[name]] if name in places else ()) for number, name in enumerate(ranked, start=1)}
    grades = tuple(item.relevance for item in gold)
    return Scored("searched", question.answerable, hits=held, gold_total=len(gold), searched=True, grades=grades)

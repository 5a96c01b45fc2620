"""Clusters: questions over the same documents are not independent of each other."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from experiments.question import Question

FEWEST = 6  # clusters below which no test finds anything: of five, no way to swap them has a p below 0.06


@dataclass(frozen=True, slots=True)
class Clusters:
    """The cluster of each question by its id: an id of one of the cluster's questions.

    Attributes:
        note: what a reader has to know of how they were made; empty where they are what they seem.
    """

    of: Mapping[str, str]
    note: str = ""


def clusters(questions: Iterable[Question]) -> Clusters:
    """Questions that share a gold document, directly or over others, are one cluster; one without gold is by itself.

    Where these are too few to draw, or a few of them hold most questions, as where every question joins several
    articles of one collection, questions are grouped by the first of their gold documents alone; and where that is no
    better, every question is by itself. The note says so. Too few are those that weigh as fewer than 6 of one size:
    n^2 / (sum of the squared sizes), Kish's effective number.
    """
    documents = {question.id: tuple(dict.fromkeys(_documents(question))) for question in questions}
    for most in (None, 1):
        found = _joined({question: names[:most] for question, names in documents.items()})
        if _usable(found):
            return Clusters(found, "" if most is None else (
                "Questions are clustered by the first of their gold documents: over all of them too many are "
                "connected."))
    return Clusters({question: question for question in documents}, (
        f"Questions share too few documents to draw documents, fewer than {FEWEST} as they weigh: intervals and tests "
        "are of questions over these documents, and say nothing of others."))


def _usable(found: Mapping[str, str]) -> bool:
    sizes = Counter(found.values())
    return len(sizes) == len(found) or len(found) ** 2 >= FEWEST * sum(size**2 for size in sizes.values())


def _documents(question: Question) -> Iterator[str]:
    """A place of a document, `DOCUMENT#PLACE`, counts as the document."""
    for gold in question.gold:
        name = gold.document.partition("#")[0] or gold.chunk
        if name:
            yield name


def _joined(documents: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """By question, the first question of those that are joined with it."""
    above: dict[str, str] = {question: question for question in documents}

    def top(question: str) -> str:
        while above[question] != question:
            above[question] = question = above[above[question]]
        return question

    holder: dict[str, str] = {}
    for question, names in documents.items():
        for name in names:
            above[top(question)] = top(holder.setdefault(name, question))
    return {question: top(question) for question in documents}

"""Units of inference: groups of questions that intervals and tests resample together."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.experiments.metrics.intervals import ALPHA
from ragbed.experiments.question import Question

MIN_CLUSTERS = 6  # with fewer clusters, no test is significant: with five, p is at least 0.06
# Questions that share a value of one of these tags are one unit. A value of the last two may also be a question's id.
BELONGING = ("conversation", "item", "pair", "paraphrase", "twin")
# Assumptions before a run: the standard deviation of the differences of two cells' scores, and their correlation.
DEVIATION = 0.5  # for scores of 0 and 1, the square root of `testing.DISCORDANCE`
WITHIN = 0.2  # between two questions of one cluster
_QUANTILES = 2.8  # sum of the normal quantiles for a level of 5 % and a power of 80 %


@dataclass(frozen=True, slots=True)
class Clusters:
    """Groups of questions that are not independent, for resampling and tests.

    Attributes:
        of: name of each question's cluster, by question id. A cluster has the id of one of its questions.
        note: describes the unit; empty if every question is a unit.
        unit: `question`, `document`, or a tag.
        groups: number of units that are documents or values of the tag; 0 if the unit is the question.
        documents: clusters by the first gold document, whatever the unit.
    """

    of: Mapping[str, str]
    note: str = ""
    unit: str = "question"
    groups: int = 0
    documents: Mapping[str, str] = field(default_factory=dict)

    def notes(self, comparisons: int = 1) -> list[str]:
        """Return the note, and a warning if there are too few units for this number of comparisons."""
        least = math.floor(math.log2(max(comparisons, 1) / ALPHA)) + 2
        few = (f"{self.groups} units are too few for a significant difference: {comparisons} "
               f"comparison{'s need' if comparisons > 1 else ' needs'} at least {least}.")
        return [*filter(None, [self.note]), *[few] * (0 < self.groups < least)]


def cluster_questions(questions: Iterable[Question], unit: str = "question") -> Clusters:
    """Group questions into units of inference.

    With `question`, each question is a unit, but the turns of a conversation are one unit, and so are questions that
    share a value of a tag in `BELONGING`. With `document`, questions that share a gold document are one unit too,
    directly or through others. Only the first gold document counts if Kish's effective number of units, n^2 / (sum of
    the squared sizes), would be below `MIN_CLUSTERS`. Any other unit is a tag, and each of its values is a unit.
    """
    asked = list(questions)
    opened = {one.turns[0].question for one in asked if one.turns}
    belonging = {one.id: tuple(_belonging(one, opened)) for one in asked}
    named = {one.id: tuple(dict.fromkeys(_documents(one))) for one in asked}
    documents = _connect({id: names[:1] for id, names in named.items()})
    if unit == "question":
        found = _connect(belonging)
        many = len(set(found.values()))
        return Clusters(found, "" if many == len(found) else (
            f"{len(found):,} questions are {many:,} units: intervals and tests count questions that belong together, "
            "such as the turns of a conversation, as one unit."), documents=documents)
    if unit != "document":
        named = {one.id: one.tags.get(unit, ()) for one in asked}
    found, first = (_connect({id: (*belonging[id], *(f"unit {name}" for name in names[:most]))
                              for id, names in named.items()}) for most in (None, 1))
    cut = found != first and unit == "document" and len(found) ** 2 < MIN_CLUSTERS * sum(
        size**2 for size in Counter(found.values()).values())
    found = first if cut else found
    having = [found[id] for id, names in named.items() if names]
    return Clusters(found, _describe(unit, len(set(having)), len(having), len(found) - len(having), cut), unit,
                    len(set(having)), documents)


def _describe(unit: str, units: int, questions: int, alone: int, cut: bool) -> str:
    """Describe the unit, what intervals and tests generalise to, and how many units are needed. `alone`: number of
    questions without a document or tag. `cut`: whether only the first gold document counts."""
    words = "documents" if unit == "document" else f"groups by {unit}"
    worth = (1 - WITHIN) * units / max(questions, 1) + WITHIN  # variance of a unit's mean if that of questions is 1
    return (f"The unit is the {unit}: intervals and tests generalise to new {words} if these {units:,} are "
            f"typical.{f' {alone:,} questions without one are units of their own.' if alone else ''}"
            f"{' Only the first gold document counts; using all would leave too few units.' if cut else ''} To "
            f"detect a difference of 0.10 between two cells (80 % power), about "
            f"{math.ceil(worth * (_QUANTILES * DEVIATION / 0.1) ** 2)} {words} are needed, if the correlation within "
            f"them is {WITHIN}.")


def check_unit(questions: Iterable[Question], unit: str) -> None:
    """Raise SettingsError if the unit is unknown, changes nothing for these questions, or is the same for all."""
    asked = list(questions)
    known = ["question", "document", *sorted({tag for one in asked for tag in one.tags})]
    if unit not in known:
        raise SettingsError(f"unit: no question has the tag {unit!r}; {did_you_mean(unit, known)}"
                            f"choose one of: {', '.join(known)}")
    found = cluster_questions(asked, unit)
    units = len(set(found.of.values()))
    problem = ("no question names a gold document" if not found.groups else f"every question has its own {unit}"
               if units == len(asked) else f"all questions have the same {unit}, and a single unit has no interval"
               if units == 1 else "")
    if problem and unit != "question":
        raise SettingsError(f"unit: {unit} cannot be the unit: {problem}; choose another, or remove unit")


def _belonging(question: Question, opened: set[str]) -> Iterator[str]:
    """Yield the names of the groups that a question belongs to. `opened`: first questions of conversations."""
    yield from (f"{tag} {question.id}" for tag in BELONGING[-2:])
    yield from (f"{tag} {value}" for tag in BELONGING for value in question.tags.get(tag, ()))
    first = question.turns[0].question if question.turns else question.text
    if first in opened and "conversation" not in question.tags:
        yield f"conversation that begins with {first}"


def _documents(question: Question) -> Iterator[str]:
    """Yield a question's gold documents (`DOCUMENT` for `DOCUMENT#PLACE`)."""
    for gold in question.gold:
        name = gold.document.partition("#")[0] or gold.chunk
        if name:
            yield name


def _connect(documents: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
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

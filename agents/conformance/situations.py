"""The situations that a strategy has to manage: rules, answer formats, layouts, and evidence of several sorts."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from documents.types import Chunk, digest
from strategies.types import Exemplar, Retrieval, Search, Task

Finds = Literal["some", "same", "new", "nothing"]

TELLING = "goldhush"  # stands in whatever may tell where the gold is
_QUESTION = "Which city is the capital of France, and how many people lived in Paris in 2020?"
_SAID = ("Paris is the capital of France.", "In 2020 Paris had 2145906 people.", "Lyon lies on the Rhone.",
         "The Seine flows through Paris.", "Marseille is a port of France.")
_OPTIONS = (("A", "Paris"), ("B", "Lyon"), ("C", "Marseille"))
EXEMPLAR = Exemplar("Where does the Rhone end?", "In the sea [1]", ("The Rhone ends in the sea.",), "It says so.")


@dataclass(frozen=True, slots=True)
class Situation:
    """What a question is asked like.

    Attributes:
        changes: of the task.
        finds: what searches find: some of five documents, by the query; the same ones always, as where evidence is
            placed beforehand; a new one each time, without end; or nothing.
    """

    name: str
    finds: Finds = "some"
    changes: dict[str, Any] = field(default_factory=dict)

    def task(self, retrieval: Retrieval) -> Task:
        """The question, asked like this."""
        return Task(id=f"{TELLING}-question", question=_QUESTION, retrieval=retrieval, placed=self.finds == "same",
                    seed=7, **self.changes)

    def found(self, search: Search, turn: int) -> list[Chunk]:
        """What a search finds.

        Args:
            turn: how many searches were made before it.
        """
        if self.finds == "nothing" or self.changes.get("rules") == "closed-book":
            return []
        if self.finds == "new":
            return [_chunk(turn, f"Report {turn} says that Paris is the capital of France.")]
        first = int(digest(search.query)[:6], 16) % len(_SAID) if self.finds == "some" else 0
        places = [first, (first + 1) % len(_SAID)] if self.finds == "some" else range(len(_SAID))
        return [_chunk(place, _SAID[place]) for place in places][:search.k]


def mark(number: int) -> str:
    """A word that stands in one document alone: that of the chunk with this number."""
    return f"zq{number}x"


def number_of(chunk: Chunk) -> int:
    """The number of a chunk among all that can be found."""
    return int(chunk.id.rpartition("-")[2])


def situations() -> Iterator[Situation]:
    """Every situation."""
    yield from (Situation(name, changes=changes) for name, changes in _CHANGES.items())
    yield Situation("the same evidence for every search", "same")
    yield Situation("new evidence for every search", "new")
    yield Situation("no evidence", "nothing")
    yield Situation("no evidence, as JSON", "nothing", {"answer_format": "json"})


_CHANGES: dict[str, dict[str, Any]] = {
    "grounded": {},
    "open": {"rules": "open"},
    "reading": {"rules": "reading"},
    "choice": {"rules": "choice", "options": _OPTIONS},
    "closed-book": {"rules": "closed-book", "about": "an atlas"},
    "closed-book with options": {"rules": "closed-book", "options": _OPTIONS},
    "grounded with options": {"options": _OPTIONS},
    "as JSON": {"answer_format": "json"},
    "choice, as JSON": {"answer_format": "json", "rules": "choice", "options": _OPTIONS},
    "closed-book, as JSON": {"answer_format": "json", "rules": "closed-book"},
    "without separators": {"separators": False},
    "without separators, as JSON": {"separators": False, "answer_format": "json"},
    "without framing": {"framing": "none"},
    "as published": {"layout": "as_published"},
    "as published, with exemplars": {"layout": "as_published", "exemplars": (EXEMPLAR,)},
    "brief, with exemplars": {"brief": True, "exemplars": (EXEMPLAR,)},
    "with exemplars, as JSON": {"exemplars": (EXEMPLAR,), "answer_format": "json"},
    "with sub-questions": {"sub_questions": ("What is the capital of France?", "How many live in #1?")},
    "with sub-answers": {"sub_questions": ("What is the capital of France?", "How many live in #1?"),
                         "with_sub_answers": True}}


def _chunk(number: int, said: str) -> Chunk:
    return Chunk(f"{TELLING}-{number}", f"{TELLING}-document-{number}", "plain", 0, 9, f"{said} {mark(number)}")

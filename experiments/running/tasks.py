"""From the questions of one cell to the tasks that its strategies see: never gold."""
from __future__ import annotations

from dataclasses import dataclass, replace

from documents.types import digest
from experiments.cells import Cell
from experiments.question import Question
from experiments.scheme import Scheme
from experiments.settings.run import RunSettings, SubAnswers
from strategies.catalogue import retrieval
from strategies.types import Evidence, Exemplar, Task


@dataclass(frozen=True, slots=True)
class Tasks:
    """Makes the tasks of one cell.

    Args:
        scheme: of the benchmark: whether sub-questions are scored.
    """

    cell: Cell
    settings: RunSettings
    scheme: Scheme
    exemplars: tuple[Exemplar, ...] = ()

    def sub_answers(self, question: Question) -> SubAnswers:
        """How the question's sub-questions are answered; `none` where they are not scored: it has no gold for them."""
        scored = "chain" in self.scheme.groups and question.sub_answers
        return self.settings.sub_answers if scored else "none"

    def whole(self, question: Question) -> Task:
        """The question itself."""
        placed = "none" if self.cell.condition == "closed-book" else "once"
        seed = self.settings.seed if self.cell.seed is None else self.cell.seed
        sub_questions = question.sub_questions if self.cell.show == "sub_questions" else ()
        return Task(id=question.id, question=question.text, retrieval=retrieval(self.cell.retrieval or placed),
                    rules=self.cell.rules, options=question.options, layout=self.settings.layout,
                    separators=self.cell.separators, sub_questions=sub_questions,
                    with_sub_answers=self.sub_answers(question) == "in_prompt", about=question.about,
                    brief=self.settings.brief, exemplars=self.exemplars,
                    seed=int(digest(str(seed), self.cell.id)[:12], 16))

    def part(self, question: Question, place: int, text: str, evidence: Evidence) -> Task:
        """A sub-question over the evidence that its question had.

        Args:
            text: the sub-question, its references to earlier answers filled in.
        """
        return replace(self.whole(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=retrieval("once" if evidence else "none"), options=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules)

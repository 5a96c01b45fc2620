"""From the questions of one cell to the tasks that its strategies see: never gold."""
from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from documents.types import digest
from experiments.question import Question, Scheme
from experiments.settings.cells import Cell
from experiments.settings.run import RunSettings, SubAnswers
from experiments.settings.strategies import strategies_of
from strategies.catalogue import RETRIEVAL
from strategies.settings.choosing import Strategy
from strategies.settings.plugins import FAMILIES
from strategies.types import Evidence, Exemplar, Reasoning, Retrieval, Task


@dataclass(frozen=True)
class Tasks:
    """Makes the tasks of one cell.

    Args:
        scheme: of the benchmark: whether sub-questions are scored.
    """

    cell: Cell
    settings: RunSettings
    scheme: Scheme
    exemplars: tuple[Exemplar, ...] = ()

    @property
    def strategies(self) -> list[Strategy]:
        """The cell's reasoning strategy, and its retrieval strategy where it has one."""
        named = {"reasoning": self.cell.reasoning, "retrieval": self.cell.retrieval}
        return [strategies_of(self.settings, family)[name] for family in FAMILIES if (name := named[family])]

    @cached_property
    def reasoning(self) -> Reasoning:
        """The cell's reasoning strategy."""
        return strategies_of(self.settings, "reasoning")[self.cell.reasoning].function

    @cached_property
    def retrieval(self) -> Retrieval:
        """The cell's retrieval strategy; where the evidence is placed, one search for it, and none without any."""
        if self.cell.retrieval is None:
            return RETRIEVAL["none" if self.cell.condition == "closed-book" else "once"]
        return strategies_of(self.settings, "retrieval")[self.cell.retrieval].function

    def sub_answers(self, question: Question) -> SubAnswers:
        """How the question's sub-questions are answered; `none` where they are not scored: it has no gold for them."""
        scored = "chain" in self.scheme.groups and question.sub_answers
        return self.settings.sub_answers if scored else "none"

    def whole(self, question: Question) -> Task:
        """The question itself."""
        seed = self.settings.seed if self.cell.seed is None else self.cell.seed
        sub_questions = question.sub_questions if self.cell.show == "sub_questions" else ()
        return Task(id=question.id, question=question.text, retrieval=self.retrieval,
                    rules=self.cell.rules, options=question.options, layout=self.settings.layout,
                    separators=self.cell.separators, sub_questions=sub_questions,
                    with_sub_answers=self.sub_answers(question) == "in_prompt", about=question.about,
                    brief=self.settings.brief, exemplars=self.exemplars,
                    answer_format=self.cell.answer_format or "tags", framing=self.cell.framing or "none",
                    placed=not self.cell.searched,
                    seed=int(digest(str(seed), self.cell.id)[:12], 16))

    def part(self, question: Question, place: int, text: str, evidence: Evidence) -> Task:
        """A sub-question over the evidence that its question had.

        Args:
            text: the sub-question, its references to earlier answers filled in.
        """
        return replace(self.whole(question), id=f"{question.id}, sub-question {place + 1}", question=text,
                       retrieval=RETRIEVAL["once" if evidence else "none"], options=(), sub_questions=(),
                       rules="open" if self.cell.rules == "choice" else self.cell.rules, placed=True)

"""Which questions of a benchmark are asked: filter, sample and limit, alike for every benchmark."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from documents.errors import BenchmarkError
from documents.types import digest
from experiments.benchmarks.about import About
from experiments.question import Benchmark, Question
from experiments.scheme import ANSWERS, Scheme


class Selection(BaseModel):
    """The settings of a benchmark: what it is, and which of its questions are asked, chosen in this order.

    Attributes:
        filter: tag to value; a question must have them all.
        sample: this many questions, chosen by `seed`, in the benchmark's order.
        limit: the first this many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: ClassVar[About]
    scheme: ClassVar[Scheme] = ANSWERS

    limit: int | None = Field(default=None, gt=0)
    sample: int | None = Field(default=None, gt=0)
    seed: int = 0
    filter: dict[str, str] = Field(default_factory=dict)

    def load(self) -> Benchmark:
        """The chosen questions.

        Raises:
            BenchmarkError: the files are not there, or a record does not fit.
        """
        raise NotImplementedError

    def scheme_of(self, questions: Collection[Question]) -> Scheme:
        """How answers to these of its questions are scored."""
        return self.scheme

    @classmethod
    def run_as(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """A run's settings as the paper has them, for a benchmark of these settings, which may not be valid."""
        return cls.about.settings

    def select(self, benchmark: Benchmark) -> Benchmark:
        """The benchmark with the chosen questions, only the documents that they are given, and their scheme.

        Raises:
            BenchmarkError: no question is left, or a tag does not exist.
        """
        chosen = [question for question in benchmark.questions if self._fits(question)]
        if not chosen:
            raise BenchmarkError(f"{benchmark.name}: no question {self._wanted(benchmark)}")
        if self.sample is not None and self.sample < len(chosen):
            ranked = sorted(chosen, key=lambda question: digest(str(self.seed), question.id))
            kept = {question.id for question in ranked[:self.sample]}
            chosen = [question for question in chosen if question.id in kept]
        chosen = chosen[:self.limit]
        brought = {chunk.document for question in chosen for chunk in question.chunks}
        brought.update(chunk.document for chunk in benchmark.shared)
        documents = {id: document for id, document in benchmark.documents.items() if id in brought}
        return replace(benchmark, questions=tuple(chosen), documents=documents, scheme=self.scheme_of(chosen))

    def _fits(self, question: Question) -> bool:
        return all(value in question.tags.get(tag, ()) for tag, value in self.filter.items())

    def _wanted(self, benchmark: Benchmark) -> str:
        if not self.filter:
            return "in it"
        wanted = " and ".join(f"{tag}={value}" for tag, value in self.filter.items())
        known: dict[str, set[str]] = {}
        for question in benchmark.questions:
            for tag, values in question.tags.items():
                known.setdefault(tag, set()).update(values)
        tags = "; ".join(f"{tag}: {', '.join(sorted(values)[:12])}" for tag, values in sorted(known.items()))
        return f"has the tags {wanted}; there are: {tags or 'no tags'}"

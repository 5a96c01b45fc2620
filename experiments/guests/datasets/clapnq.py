"""ClapNQ: long answers that combine several sentences of one Wikipedia passage, and questions without an answer.

Paper: Rosenthal, Sil, Florian, Roukos, "CLAPnq: Cohesive Long-form Answers from Passages in Natural Questions for RAG
systems", 2024, arXiv:2404.02103. Code and data: github.com/primeqa/clapnq, Apache-2.0.

One row of `clapnq_dev_answerable.jsonl`, cut; an unanswerable one has the answer "":

    {"id": "6401197308716204890", "input": "which method of forecasting uses averages to predict future weather",
     "passages": [{"title": "Forecasting", "text": "Seasonality is a characteristic of a time series in which ...",
                   "sentences": ["Seasonality is a characteristic of a time series ...", ...]}],
     "output": [{"answer": "Seasonality, in which data experiences regular and predictable changes ...",
                 "selected_sentences": ["Seasonality is ...", ...], "meta": {"has_minimal_answer": false, ...}}]}
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ragbed.documents.rows import Row, read_rows
from ragbed.experiments.benchmarks.base import About, Loaded, interleave
from ragbed.experiments.benchmarks.fields import gold_chunk, passages
from ragbed.experiments.guests.datasets.splits import SplitFiles
from ragbed.experiments.question import Question, Scheme


class ClapNq(SplitFiles):
    """ClapNQ, with answerable and unanswerable questions. Questions from a folder's two files alternate."""

    about = About(
        paper="CLAPnq: Cohesive Long-form Answers from Passages in Natural Questions for RAG systems (2024), "
              "https://arxiv.org/abs/2404.02103",
        licence="Apache-2.0", size="600 questions in the dev split, half of them unanswerable, one passage each",
        get="annotated_data/dev of https://github.com/primeqa/clapnq, or hub:PrimeQA/clapnq",
        settings={"rules": "grounded"})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("right", "f1", "refusal_accuracy", "citation_f1"))

    kind: Literal["clapnq"] = "clapnq"

    def rows(self) -> Iterator[Row]:
        """Yield the records of all files in turn, so that a limit includes both kinds of question."""
        return interleave(read_rows(file) for file in self.files())

    def question(self, row: Row) -> Loaded:
        """Return the question of one record; its passages are gold if it has an answer."""
        documents, given = passages((part.text("title"), part.text("text")) for part in row.parts("passages"))
        answers = [answer for part in row.parts("output") if _answers(answer := part.text("answer"))]
        return Question(
            id=row.id("id"), text=row.filled("input"), answers=tuple(dict.fromkeys(answers)), answerable=bool(answers),
            gold=tuple(map(gold_chunk, given)) if answers else (), provided=given), documents


def _answers(text: str) -> bool:
    """Return the answers. Annotators without an answer left the field empty, or wrote `NA` or a full stop."""
    return text.strip() != "NA" and any(character.isalnum() for character in text)

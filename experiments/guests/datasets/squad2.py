"""SQuAD 2.0: questions on Wikipedia paragraphs. The paragraphs do not answer a third of them.

Paper: Rajpurkar, Jia, Liang, "Know What You Don't Know: Unanswerable Questions for SQuAD", ACL 2018, arXiv:1806.03822.
Site: rajpurkar.github.io/SQuAD-explorer. CC BY-SA 4.0.

One made-up article in the published format; the hub's `rajpurkar/squad_v2` has a row for each question, with `id`,
`title`, `context`, `question` and `answers: {"text": [...], "answer_start": [...]}`, which is read too:

    {"version": "v2.0", "data": [{"title": "Harbour_bell", "paragraphs": [{
       "context": "The harbour bell of Esk was cast in 1811 and rings at noon.",
       "qas": [{"id": "a1", "question": "When was the bell cast?", "is_impossible": false,
                "answers": [{"text": "1811", "answer_start": 36}, {"text": "in 1811", "answer_start": 33}]},
               {"id": "a2", "question": "Who cast the bell?", "is_impossible": true, "answers": [],
                "plausible_answers": [{"text": "Esk", "answer_start": 20}]}]}]}]}
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.experiments.benchmarks.base import About, Loaded
from ragbed.experiments.benchmarks.fields import gold_chunk, passage
from ragbed.experiments.guests.datasets.splits import SplitFiles
from ragbed.experiments.question import Question, Scheme


class Squad2(SplitFiles):
    """SQuAD 2.0: answer, or state that the paragraph has no answer.

    `squad_em` and `squad_f1` are its official figures over all questions, `em` and `f1` those of HasAns, and
    `refusal_accuracy` that of NoAns.
    """

    about = About(
        paper="Know What You Don't Know: Unanswerable Questions for SQuAD (2018), https://arxiv.org/abs/1806.03822",
        licence="CC BY-SA 4.0", size="11,873 questions in the dev split, one paragraph each; half unanswerable",
        get="dev-v2.0.json from https://rajpurkar.github.io/SQuAD-explorer, or hub:rajpurkar/squad_v2",
        settings={"rules": "grounded", "brief": True})
    scheme = Scheme(groups=("squad", "overlap", "answers", "ranking", "form"), rubric="grades",
                    columns=("squad_em", "squad_f1", "em", "f1", "refusal_accuracy"))

    kind: Literal["squad2"] = "squad2"

    def rows(self) -> Iterator[Row]:
        """Yield a row for each question of a nested or a flat file."""
        for row in super().rows():
            yield from chain(*convert_records(_questions, row.parts("data"))) if "data" in row.fields else (row,)

    def question(self, row: Row) -> Loaded:
        """Return the question of one record."""
        document, chunk = passage(row.text("context"), row.text("title").replace("_", " "))
        answers = _answers(row)
        answerable = not row.flag("is_impossible", not answers)
        if answerable != bool(answers):
            row.fail("answers", "answers where is_impossible is false, and none where it is true", list(answers))
        return Question(
            id=row.id("id"), text=row.filled("question"), answers=answers, answerable=answerable,
            gold=(gold_chunk(chunk),) if answerable else (), provided=(chunk,),
            tags={"article": (document.title,)}), (document,)


def _questions(article: Row) -> list[Row]:
    title, paragraphs = article.text("title"), article.parts("paragraphs")
    return [replace(asked, fields={"title": title, "context": paragraph.text("context"), **asked.fields})
            for paragraph in paragraphs for asked in paragraph.parts("qas")]


def _answers(row: Row) -> tuple[str, ...]:
    stated = row.fields.get("answers")
    texts = row.part("answers", stated).filled_texts("text") if isinstance(stated, dict) else (
        answer.filled("text") for answer in row.parts("answers"))
    return tuple(dict.fromkeys(texts))

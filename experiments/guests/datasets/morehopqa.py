"""MoreHopQA: multi-hop questions whose last step has to be worked out, with their decomposition.

Paper: Schnitzler, Ho, Huang, Boudin, Sugawara, Aizawa, "MoreHopQA: More Than Multi-hop Reasoning", 2024,
arXiv:2406.13397. Code and data: github.com/Alab-NII/morehopqa, CC BY 4.0.

One row of `morehopqa_final.json`, cut:

    {"_id": "5ae5072e55429960a22e0246_1", "answer": "116", "no_of_hops": 3, "answer_type": "number",
     "question": "What is the ASCII code of the last letter of the first name of the current drummer of the band who
       did the song \"What Lovers Do\"?", "reasoning_type": "Symbolic, Commonsense",
     "question_decomposition": [
       {"sub_id": "1", "question": "Which band did the song \"What Lovers Do\"?", "answer": "Maroon 5",
        "paragraph_support_title": "What Lovers Do"}, ...,
       {"sub_id": "3", "question": "What is the ASCII code of the last letter of the first name of Matt Flynn?",
        "answer": "116", "paragraph_support_title": "", "details": [...]}],
     "context": [["Maroon 5", ["Maroon 5 is an American pop rock band ...", ...]], ["What Lovers Do", [...]]]}
"""
from __future__ import annotations

from typing import Literal

from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import mask_answers
from ragbed.experiments.guests.datasets.titled import paragraphs, whole
from ragbed.experiments.question import Question, Scheme


class MoreHopQa(RecordFiles):
    """MoreHopQA."""

    about = About(
        paper="MoreHopQA: More Than Multi-hop Reasoning (2024), https://arxiv.org/abs/2406.13397",
        licence="CC BY 4.0", size="1,118 questions, two paragraphs each",
        get="morehopqa_final.json of the hub's alabnii/morehopqa, or of https://github.com/Alab-NII/morehopqa",
        settings={"rules": "open", "brief": True})
    scheme = Scheme(groups=("overlap", "chain", "answers", "ranking", "form"), rubric="grades",
                    columns=("em", "f1", "joint_em", "joint_f1", "chain_correct"),
                    views=("by:hops", "by:reasoning_type", "chain"))

    kind: Literal["morehopqa"] = "morehopqa"

    def question(self, row: Row) -> Loaded:
        """Return the question of one record. Its tag `hops` is `no_of_hops`, which counts the steps of the last part.
        """
        parts = row.parts("question_decomposition")
        titles = [title for part in parts if (title := part.optional("paragraph_support_title"))]
        material = whole(paragraphs(row), titles)
        reasoning = tuple(kind.strip() for kind in row.text("reasoning_type").split(",") if kind.strip())
        answers = tuple(part.filled("answer") for part in parts)
        asked, chain = mask_answers([part.filled("question") for part in parts], answers)
        return Question(
            id=row.id("_id", "id"), text=row.filled("question"), answers=(row.filled("answer"),), answerable=True,
            gold=material.gold, provided=material.provided,
            sub_questions=asked, sub_answers=answers,
            tags={"hops": (str(row.number("no_of_hops")),), "reasoning_type": reasoning,
                  "answer_type": (row.text("answer_type"),), "chain": (chain,)}), material.documents

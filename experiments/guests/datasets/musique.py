"""MuSiQue: questions composed of single-hop ones, with two to four hops over twenty paragraphs.

Paper: Trivedi, Balasubramanian, Khot, Sabharwal, "MuSiQue: Multihop Questions via Single-hop Question Composition",
TACL 2022, arXiv:2108.00573. Code and data: github.com/StonyBrookNLP/musique, CC BY 4.0. MuSiQue-Ans has only answerable
questions. MuSiQue-Full has a second question per id, without one of its supporting paragraphs.

One row of `musique_ans_v1.0_dev.jsonl`, cut:

    {"id": "2hop__574419_270105", "question": "What is the seat of the county where Van Hook Township is located?",
     "answer": "Stanley", "answer_aliases": [], "answerable": true,
     "paragraphs": [{"idx": 1, "title": "Mountrail County Courthouse", "paragraph_text": "The Mountrail County ...",
                     "is_supporting": true}, ...],
     "question_decomposition": [
       {"id": 574419, "question": "Van Hook Township >> located in the administrative territorial entity",
        "answer": "Mountrail County", "paragraph_support_idx": 8},
       {"id": 270105, "question": "#1 >> capital", "answer": "Stanley", "paragraph_support_idx": 1}]}
"""
from __future__ import annotations

from typing import Literal

from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import About, Loaded
from ragbed.experiments.benchmarks.fields import gold_chunk, make_tags, mask_answers, passages
from ragbed.experiments.guests.datasets.splits import PooledFiles
from ragbed.experiments.question import Question, Scheme


class Musique(PooledFiles):
    """MuSiQue-Ans, or MuSiQue-Full. Half of the questions of MuSiQue-Full cannot be answered; run it with `rules:
    grounded`.
    """

    about = About(
        paper="MuSiQue: Multihop Questions via Single-hop Question Composition (2022), "
              "https://arxiv.org/abs/2108.00573",
        licence="CC BY 4.0", size="2,417 answerable questions in the dev split, twenty paragraphs each",
        get="musique_ans_v1.0_dev.jsonl or musique_full_v1.0_dev.jsonl, to which "
            "https://github.com/StonyBrookNLP/musique links",
        settings={"rules": "open", "brief": True})
    scheme = Scheme(groups=("overlap", "support", "chain", "answers", "ranking", "form"), rubric="grades",
                    columns=("em", "f1", "support_f1", "joint_em", "joint_f1", "chain_correct"),
                    views=("by:hops", "chain"))

    kind: Literal["musique"] = "musique"

    def question(self, row: Row) -> Loaded:
        """Return the question of one record. A question without an answer has no chain, and the same id as its twin."""
        id, answerable, paragraphs = row.id("id"), row.flag("answerable", True), row.parts("paragraphs")
        documents, given = passages((part.text("title"), part.text("paragraph_text")) for part in paragraphs)
        gold = [gold_chunk(chunk) for part, chunk in zip(paragraphs, given, strict=True)
                if part.flag("is_supporting", False)]
        parts = row.parts("question_decomposition") if answerable else []
        sub_answers = tuple(part.filled("answer") for part in parts)
        asked, chain = mask_answers([part.filled("question") for part in parts], sub_answers)
        answer = row.filled("answer") if answerable else row.text("answer")
        hops = id.partition("hop")[0]
        if not hops.isdecimal():
            row.fail("id", "an id that begins with 2hop, 3hop or 4hop", id)
        return Question(
            id=id if answerable else f"{id}-unanswerable", text=row.filled("question"),
            answers=tuple(dict.fromkeys((answer, *row.texts("answer_aliases")))), answerable=answerable,
            gold=tuple(dict.fromkeys(gold)), provided=given, sub_questions=asked, sub_answers=sub_answers,
            tags=make_tags(hops=hops, chain=chain if parts else "", twin="" if answerable else id)), documents

"""MRKE-shaped records out of MuSiQue's decomposed questions."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from documents.types import Chunk
from experiments.benchmarks.musique import Musique
from experiments.converters.conversion import Converter, Draw, Source, Sources, json_lines
from experiments.question import Question


def _files(sources: Sources, draw: Draw) -> Mapping[str, str]:
    records: list[dict[str, Any]] = []
    for path in sources["musique"]:
        questions = [one for one in Musique(path=str(path)).load().questions if one.answerable]
        records += map(_record, draw.limited(questions, lambda question: question.id))
    return {"mrke.jsonl": json_lines(records)}


def _record(question: Question) -> dict[str, Any]:
    """A record whose `#1` stands, as in MuSiQue, for the answer to the first sub-question.

    Its supporting passages are named by place: others may share their titles.
    """
    gold = {item.chunk for item in question.gold}
    return {"id": question.id, "context": [_titled(chunk) for chunk in question.given], "question": question.text,
            "answer": question.answers[0], "sub_questions": list(question.sub_questions),
            "sub_answers": list(question.sub_answers), "hops": len(question.sub_questions), "type": "bridge",
            "supporting_facts": [place for place, chunk in enumerate(question.given) if chunk.id in gold]}


def _titled(chunk: Chunk) -> dict[str, str]:
    title, _, text = chunk.content.partition("\n")
    return {"title": title, "text": text}


CONVERTER = Converter({
    "musique": Source(
        "MuSiQue (Trivedi et al. 2022), https://github.com/StonyBrookNLP/musique", "CC BY 4.0",
        "a JSON Lines file of it",
        "Its paragraphs are the context, the decomposition gives sub-questions and sub-answers with #1 for the answer "
        "to the first. The facts are not edited, so there is no gap to show. Every question is of type bridge."),
}, _files)

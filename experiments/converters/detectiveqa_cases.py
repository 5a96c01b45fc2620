"""DetectBench's short cases as novels of a page: a paragraph for each sentence, and clues found by their words."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from documents.rows import Row, read_rows
from experiments.benchmarks.fields import lettered
from experiments.converters.detectiveqa_novels import Told
from strategies.normalising import normalize_answer

_FIRST = 100_000  # what is added to a case's number, so that no novel of Project Gutenberg has it too
_SENTENCE = re.compile(r"(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)"
                       r"(?:(?<=[.!?][\"'”’])\s+|(?<=[.!?])\s+(?=[\"'“‘A-Z0-9]))")
_NUMBER = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s*")
_ARROW = re.compile(r"\s*(?:->|→)\s*")
_SAID = 0.6  # of a clue's longer words, in one sentence


def read_cases(path: Path) -> Iterator[Told]:
    """The cases of a JSON Lines file, without those of which no clue could be found.

    Raises:
        BenchmarkError: the file cannot be read, or a case does not fit.
    """
    for row in read_rows(path):
        number = row.number("id") + _FIRST
        paragraphs = [sentence.strip() for sentence in _SENTENCE.split(" ".join(row.text("context").split()))
                      if sentence.strip()]
        question = _question(row, paragraphs)
        if any(place > 0 for place in question["clue_position"]):
            yield Told(number, f"{number}-Case {row.number('id')} of DetectBench", tuple(paragraphs), (question,))


def _question(row: Row, paragraphs: Sequence[str]) -> dict[str, Any]:
    options, answer = lettered(row.texts("options")), row.number("answer")
    if not 0 <= answer < len(options):
        row.fail("answer", f"a number from 0 to {len(options) - 1}", answer)
    graph = row.part("clue_graph", row.fields.get("clue_graph"))
    evidence, reasoning = _lines(graph.text("evidence")), _lines(graph.text("multi_hop_reasoning"))
    inferred = [line for line in reasoning if line not in evidence]
    return {"question": row.text("question"), "options": dict(options), "answer": options[answer][0],
            "reasoning": [*evidence, *inferred],
            "clue_position": [_place(_ARROW.split(line)[0], paragraphs) for line in evidence] + [-1] * len(inferred),
            "answer_position": len(paragraphs) + 1, "distraction": {}}


def _lines(text: str) -> list[str]:
    """The steps, one on each line that has an arrow; the others are headings."""
    lines = (_NUMBER.sub("", line).strip() for line in text.splitlines())
    return list(dict.fromkeys(line for line in lines if _ARROW.search(line)))


def _place(clue: str, paragraphs: Sequence[str]) -> int:
    """The paragraph, from 1, that has most of the clue's words; -1 where none has enough of them."""
    wanted = {word for word in normalize_answer(clue).split() if len(word) > 3}
    shares = [len(wanted & set(normalize_answer(text).split())) / len(wanted) if wanted else 0.0 for text in paragraphs]
    best = max(shares, default=0.0)
    return shares.index(best) + 1 if best >= _SAID else -1

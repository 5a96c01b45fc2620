"""RGB: short questions on news, with passages that have the answer, no answer, or a wrong answer.

Paper: Chen, Lin, Han, Sun, "Benchmarking Large Language Models in Retrieval-Augmented Generation", AAAI 2024,
arXiv:2309.01431. Code and data: github.com/chen700564/RGB, CC BY-NC-SA 4.0; not included in this project. The number of
passages of each kind follows that code (`evalue.py`). Only `en_fact.json` has `positive_wrong`. In `en_int.json` an
answer has several parts, and `positive` has a list of passages for each.

One made-up row in the published format:

    {"id": 3, "query": "Where was the 2022 Esk regatta held?", "answer": [["Port Esk", "Esk"]],
     "fakeanswer": "Lund", "positive": ["The 2022 Esk regatta took place in Port Esk ..."],
     "positive_wrong": ["The 2022 Esk regatta took place in Lund ..."],
     "negative": ["The Esk regatta of 2019 was cancelled ...", "Port Esk has a new ferry ..."]}

An answer is a text, or a list of parts that are all required. A part may be a list of alternatives, as in `[["May 15
2012", "15 May 2012"]]`.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice, product
from random import Random
from typing import Any, Literal

from pydantic import Field

from ragbed.documents.rows import Row
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles, interleave
from ragbed.experiments.benchmarks.fields import gold_chunk, passages
from ragbed.experiments.question import Question, Scheme

_ALTERNATIVES = 64
_ANSWER = "a text, or a list of texts or lists of texts"


class Rgb(RecordFiles):
    """RGB: noise robustness, negative rejection, counterfactual robustness, information integration.

    Attributes:
        test: `noise` mixes passages with and without the answer. `rejection` shows only passages without it, so that
            the question cannot be answered. `counterfactual` mixes in passages with a wrong answer and asks for the
            true one; run it with `rules: open`.
        passages: number of passages shown. It is raised if an answer has more parts, because each part needs one.
        noise: share of passages without an answer; 1 equals `rejection`.
        seed: random seed, which also sets the order of the passages.
    """

    about = About(
        paper="Benchmarking Large Language Models in Retrieval-Augmented Generation (2024), "
              "https://arxiv.org/abs/2309.01431",
        licence="CC BY-NC-SA 4.0", size="300 English and 300 Chinese questions, 200 to integrate, 200 counterfactual",
        get="en.json, en_fact.json, en_int.json or their like, one file, from https://github.com/chen700564/RGB",
        settings={"rules": "grounded", "brief": True})
    scheme = Scheme(groups=("answers", "overlap", "ranking", "form"), rubric="grades",
                    columns=("correct / partial / wrong", "em", "refusal_accuracy", "refused_answerable"))

    kind: Literal["rgb"] = "rgb"
    test: Literal["noise", "rejection", "counterfactual"] = "noise"
    passages: int = Field(default=5, ge=1)
    noise: float = Field(default=0.4, ge=0, le=1)

    def question(self, row: Row) -> Loaded:
        """Return the question of one record, with at most the requested number of passages of each kind."""
        id, negative = row.id("id"), list(row.texts("negative"))
        holding, parts = _order_positives(row, "positive_wrong" if self.test == "counterfactual" else "positive")
        count = self._count_negatives(len(holding), len(negative), parts)
        holding = [] if self._rejects else holding[:max(self.passages - count, parts)]
        shown = [(text, True) for text in holding] + [(text, False) for text in negative[:count]]
        Random(f"{self.seed}:{id}").shuffle(shown)
        documents, given = passages(("", text) for text, _ in shown)
        others, rest = passages(("", text) for text in negative[count:])
        gold = [gold_chunk(chunk) for (_, holds), chunk in zip(shown, given, strict=True)
                if holds and self.test == "noise"]
        return Question(
            id=id, text=row.filled("query"), answers=_answers(row),
            answerable=self.test == "counterfactual" or bool(holding), gold=tuple(dict.fromkeys(gold)), provided=given,
            negatives=rest, tags={"test": (self.test,)}), documents + others

    @property
    def _rejects(self) -> bool:
        return self.test == "rejection" or self.noise == 1

    def _count_negatives(self, holding: int, negative: int, parts: int) -> int:
        """Return the number of negatives: their share of the passages, but more if too few passages have an answer, and
        fewer if the parts of the answer need the space.
        """
        if self._rejects:
            return min(self.passages, negative)
        wanted = min(math.ceil(round(self.passages * self.noise, 9)), max(self.passages - parts, 0))
        return min(max(wanted, self.passages - holding), negative)


def _order_positives(row: Row, field: str) -> tuple[list[str], int]:
    """Return the passages with the answer, and the number of parts of the answer (0 if it has none). One passage for
    each part comes first.
    """
    values = row.decoded(field, list, "a list of texts")
    parts = len(values) if all(isinstance(value, list) for value in values) else 0
    return [value if isinstance(value, str) else row.fail(field, "texts, or a list of them for each part", value)
            for value in (interleave(values) if parts else values)], parts


def _answers(row: Row) -> tuple[str, ...]:
    """Return the accepted answers. For an answer in parts, these are all combinations of alternatives, joined by `and`.
    """
    stated = row.fields.get("answer")
    parts = [list(_alternatives(row, part)) for part in (stated if isinstance(stated, list) else [stated])]
    if not parts or not all(parts):
        row.fail("answer", _ANSWER, stated)
    joined = islice((" and ".join(choice) for choice in product(*parts)), _ALTERNATIVES)
    return tuple(dict.fromkeys(joined))


def _alternatives(row: Row, part: Any) -> Iterator[str]:
    for text in part if isinstance(part, list) else [part]:
        yield text if isinstance(text, str) and text.strip() else row.fail("answer", _ANSWER, part)

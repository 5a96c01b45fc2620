"""MRKE: multi-hop questions over edited facts, each with its sub-questions and their answers.

Paper: Wu, Yang, Okumura, Zhang, "MRKE: The Multi-hop Reasoning Evaluation of LLMs by Knowledge Edition",
arXiv:2402.11924. The paper links an anonymous review copy of the data,
anonymous.4open.science/r/LLM_multihop_eval-055C. No licence is stated; the edited questions come from HotpotQA (CC
BY-SA 4.0). The data is not included in this project.

The paper's later version is "CofCA: A Step-Wise Counterfactual Multi-hop QA Benchmark", ICLR 2025, with the same arXiv
number. Its counterfactual questions are read as `edited`, its factual ones (of HotpotQA, 2WikiMultihopQA and MuSiQue)
as `original`. Its data, anonymous.4open.science/r/LLM_inherent_multi_step_eval-3818, could not be had, so field names
are read leniently.

One invented record. `context` may be one text; passages may be texts, `[title, [sentence, ...]]` as in HotpotQA, or
records with `title` and `text`. Sub-questions may also be records with `question` and `answer`. The unedited original
may be missing, or be in fields that begin with `original_`. The optional `supporting_facts` names passages by `[title,
sentence number]` or, if titles are equal, by position from 0:

    {"id": "orl-2", "context": ["The Orlo family founded the Tessel hotels.", "Tessel has its head office in Marn."],
     "question": "In which city is the head office of the hotels that the Orlo family founded?", "answer": "Marn",
     "sub_questions": ["Which hotels did the Orlo family found?", "In which city is the head office of #1?"],
     "sub_answers": ["Tessel", "Marn"], "hops": 2, "type": "bridge",
     "original": {"context": ["The Aster family founded the Boral hotels.", "Boral has its head office in Selk."],
      "question": "In which city is the head office of the hotels that the Aster family founded?", "answer": "Selk"}}
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from ragbed.documents.rows import Row, convert_records
from ragbed.experiments.benchmarks.base import About, Loaded, RecordFiles
from ragbed.experiments.benchmarks.fields import (
    gold_chunk,
    join_sentences,
    make_tags,
    mask_answers,
    passages,
    unique_id,
)
from ragbed.experiments.question import Question, Scheme

# Accepted names of each field; the first one that is present counts.
_NAMES = {
    "context": ("context", "passages", "paragraphs", "passage"),
    "question": ("question", "multihop_question"),
    "answer": ("answer", "final_answer"),
    "sub_questions": ("sub_questions", "subquestions", "sub_qas", "sub_qa", "question_decomposition"),
    "sub_answers": ("sub_answers", "subanswers", "intermediate_answers"),
    "hops": ("hops", "hop", "num_hops"),
    "type": ("type", "question_type"),
}
_ORIGINAL = "original"
_VERSIONS = {"edited": "edited", "counterfactual": "edited", _ORIGINAL: _ORIGINAL, "factual": _ORIGINAL}
_HOPS = re.compile(r"([1-9])[\s_-]*hops?|([1-9])", re.IGNORECASE)


class Mrke(RecordFiles):
    """MRKE, or its later version CofCA, from local files. A record with its unedited original becomes two questions
    with the same `pair`.

    Attributes:
        versions: the edited (counterfactual) questions, the originals (factual questions), or both. Originals are
            easier, and a model may remember them, so do not average over both. The view `gap` needs both.
    """

    about = About(
        paper="MRKE: The Multi-hop Reasoning Evaluation of LLMs by Knowledge Edition (2024); later CofCA: A Step-Wise "
              "Counterfactual Multi-hop QA Benchmark (ICLR 2025), https://arxiv.org/abs/2402.11924",
        licence="not stated; edited from HotpotQA, CC BY-SA 4.0",
        size="MRKE: 900 questions, 300 of each of 2, 3 and 4 hops, and the 300 of HotpotQA that they were edited from; "
             "CofCA: 900 counterfactual and 900 factual questions",
        get="the paper's address, or from its authors",
        settings={"rules": "reading", "brief": True, "conditions": "provided", "reasoning": "chain_of_thought",
                  "layout": "as_published", "show": ["sub_questions", "question"], "sub_answers": "asked"})
    scheme = Scheme(
        groups=("chain", "overlap", "ranking", "form"), rubric=None,
        columns=("em", "f1", "joint_em", "joint_f1", "chain_correct", "lucky"),
        views=("by:version", "by:hops", "by:type", "by:source", "chain", "gap"),
        published=("mrke_3", "mrke_4", "mrke_5", "mrke_7", "mrke_8"))

    kind: Literal["mrke"] = "mrke"
    versions: Literal["edited", "original", "both"] = "edited"

    def loaded(self) -> Iterable[Loaded]:
        """Yield the questions, each original right before its edited version. Questions without an id are numbered."""
        seen: Counter[str] = Counter()

        def made(numbered: tuple[int, Row]) -> list[Loaded]:
            place, row = numbered
            id = unique_id(row.stated_id() or row.stated_id("_id") or str(place), seen)
            return [one for one in _questions(row, id) if self.versions in ("both", *one[0].tags["version"])]

        return chain.from_iterable(convert_records(made, enumerate(self.rows(), start=1)))


def _questions(row: Row, id: str) -> Iterator[Loaded]:
    original: Row | None = None
    if row.fields.get(_ORIGINAL) is not None:
        original = row.part(_ORIGINAL, row.fields[_ORIGINAL])
    elif row.fields.get(f"{_ORIGINAL}_question") is not None:
        prefix = f"{_ORIGINAL}_"
        fields = {name.removeprefix(prefix): value for name, value in row.fields.items()
                  if name.startswith(prefix) and value is not None}
        original = Row(row.file, row.line, fields, row.within + prefix)
    stated = row.optional("version") or "edited"
    version = _VERSIONS.get(stated.strip().lower()) or row.fail("version", f"one of {', '.join(_VERSIONS)}", stated)
    pair = row.stated_id("pair") or (id if original else "")
    question = _question(row, id, make_tags(version=version, pair=pair))
    if original is not None:
        yield _question(original, f"{id}-{_ORIGINAL}", make_tags(version=_ORIGINAL, pair=pair))
    yield question


def _question(row: Row, id: str, tags: dict[str, tuple[str, ...]]) -> Loaded:
    found = {field: next((name for name in names if name in row.fields), None) for field, names in _NAMES.items()}
    row = replace(row, fields={**row.fields, **{field: row.fields[name] for field, name in found.items() if name}})
    listed = row.fields.get("sub_questions")
    if isinstance(listed, list) and listed and all(isinstance(one, dict) for one in listed):
        parts = row.parts("sub_questions")
        row = replace(row, fields={**row.fields, "sub_questions": [part.text("question") for part in parts],
                                   "sub_answers": [part.text("answer") for part in parts]})
    asked, answered = tuple[str, ...](), tuple[str, ...]()
    if tags["version"] == ("edited",) or "sub_questions" in row.fields:
        asked, answered = row.filled_texts("sub_questions"), row.filled_texts("sub_answers")
        if len(asked) != len(answered):
            row.fail("sub_answers", f"one for each of the {len(asked)} sub-questions", list(answered))
        asked, chain = mask_answers(asked, answered)
        tags = {**tags, "chain": (chain,)}
    context = row.fields.get("context")
    context = [context] if isinstance(context, str) and context.strip() else context
    if not isinstance(context, list) or not context:
        row.fail("context", "a list of passages", context)
    documents, given = passages(_passage(row, f"context[{at}]", item) for at, item in enumerate(context))
    supporting = _supporting(row, len(given))
    gold = [gold_chunk(chunk) for place, (document, chunk) in enumerate(zip(documents, given, strict=True))
            if place in supporting or document.title in supporting]
    return Question(
        id=id, text=row.filled("question"), answers=(row.filled("answer"),), answerable=True,
        gold=tuple(dict.fromkeys(gold)), provided=given, sub_questions=asked, sub_answers=answered,
        tags=make_tags(hops=_hops(row, len(asked)), type=row.optional("type").strip().lower(),
                       source=row.optional("source")) | tags), documents


def _passage(row: Row, field: str, item: Any) -> tuple[str, str]:
    if isinstance(item, str):
        return "", item
    if isinstance(item, dict):
        part = row.part(field, item)
        return part.optional("title"), part.text("text")
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
        title, text = item
        if isinstance(text, str):
            return title, text
        if isinstance(text, list) and all(isinstance(sentence, str) for sentence in text):
            return title, join_sentences(text)
    return row.fail(field, "a text, [title, [sentence, ...]], or a record with title and text", item)


def _supporting(row: Row, passages: int) -> set[str | int]:
    """Return the supporting passages, if the record names them: by title, as in HotpotQA, or by position from 0."""
    facts = row.fields.get("supporting_facts") or []
    if isinstance(facts, list) and all(type(fact) is int and 0 <= fact < passages for fact in facts):
        return set(facts)
    if not isinstance(facts, list) or not all(isinstance(fact, list) and fact and isinstance(fact[0], str)
                                              for fact in facts):
        row.fail("supporting_facts", "a list of [title, sentence number], or of places in context from 0", facts)
    return {fact[0] for fact in facts}


def _hops(row: Row, asked: int) -> str:
    stated = row.fields.get("hops")
    if stated is None:
        return str(asked or "")
    match = _HOPS.fullmatch(str(stated).strip())
    return match[1] or match[2] if match else row.fail("hops", "a number of hops", stated)

"""CReSt (2025), section 3 and appendix B.2: questions about random passages of structured documents.

A passage is one to five chunks of one document in one rendering. The writer discusses it in four turns, and the simple
and complex questions of the last two turns are kept. Nearest neighbours in the index fill each question's chunks up to
ten. In the paper, people decide which questions are answerable (slightly more than half). Here, a random share of the
questions loses the chunks with the evidence. If the fourth turn fails, the tag `degraded` is `simple only`.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.chunkers import CrestSizes
from ragbed.documents.types import Chunk
from ragbed.experiments.guests.construct import filters
from ragbed.experiments.guests.construct.llm import WRITER, ask_structured
from ragbed.experiments.guests.construct.stages import (
    Dropped,
    Kind,
    Library,
    Stage,
    StageRecipe,
    number_lines,
    select_spans,
)
from ragbed.experiments.guests.construct.text_edits import sentence_spans
from ragbed.experiments.guests.review.items import Evidence, Item, overlaps
from ragbed.experiments.runs.store import write_lines
from ragbed.retrieval.lexical.tokens import is_korean
from ragbed.strategies.types import Evidence as Passages
from ragbed.strategies.types import Search

SHOWN = 10  # chunks per question
_MIN_LENGTH = 200  # characters of a passage; less, such as the last chunk of a document, is too short to reason about
_ROW, _TAG, _WORD = re.compile(r"<tr\b.*?</tr>", re.DOTALL), re.compile(r"<[^<>]*>"), re.compile(r"\w")
Reasoning = Literal["numerical", "tabular", "multi-constraint", "temporal", "format"]
Written = TypeVar("Written", bound=BaseModel)


class CrestOptions(BaseModel):
    """Settings of the kind.

    For a writer with a small context, lower `most` and use smaller chunks, as in `chunker={kind: crest, smallest: 500,
    largest: 2000}`.

    Attributes:
        most: maximum number of chunks of the passage.
        unanswerable: share of questions whose evidence is left out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    most: int = Field(default=5, ge=1, le=SHOWN)
    unanswerable: float = Field(default=0.4, ge=0, le=1)


class KeyInformation(BaseModel):
    """One piece of information in the passage."""

    key: str
    values: list[str] = Field(max_length=10)
    description: str


class Outline(BaseModel):
    """The reply of the first turn."""

    information: list[KeyInformation] = Field(min_length=1, max_length=12)


class Basic(BaseModel):
    """A question of the second turn, which later turns build on."""

    type: Literal["form", "tabular", "semantic"]
    question: str
    answer: str


class Simple(BaseModel):
    """A question of the third turn. The writer names the evidence lines first, so that it asks about them."""

    evidence: list[int] = Field(min_length=1, max_length=3)
    types: list[Reasoning] = Field(min_length=1, max_length=1)
    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)


class Complex(Simple):
    """A question of the fourth turn. It counts as simple if it has a single type."""

    evidence: list[int] = Field(min_length=1, max_length=5)
    types: list[Reasoning] = Field(min_length=1, max_length=5)


class Questions(BaseModel, Generic[Written]):
    """The reply of the second, third and fourth turn."""

    questions: list[Written] = Field(min_length=1, max_length=5)


def instances(library: Library) -> Iterator[Item]:
    """Yield random passages without end. A passage is one to five chunks of a document in one rendering."""
    groups: dict[tuple[str, str], list[Chunk]] = {}
    for chunk in library.chunks:
        groups.setdefault((chunk.document, chunk.format), []).append(chunk)
    names = sorted(groups)
    for number in count(1):
        rng = library.rng("instance", str(number))
        chunks = groups[rng.choice(names)]
        drawn = rng.sample(range(len(chunks)), min(rng.randint(1, library.options.most), len(chunks)))
        yield Item(f"crest-{number:05}", chunks=tuple(chunks[place] for place in sorted(drawn)))


def ask_questions(item: Item, library: Library) -> StageRecipe:
    """Ask the writer in four turns. If the fourth fails, keep the simple questions."""
    lines = dict(enumerate((line for chunk in item.chunks for line in _evidence_lines(chunk)), 1))
    if sum(len(chunk.content) for chunk in item.chunks) < _MIN_LENGTH or not lines:
        raise Dropped(f"its passage has fewer than {_MIN_LENGTH} characters")
    _, first = yield from ask_structured(WRITER, "key information", Outline, "crest_information",
                                         {"passage": number_lines(lines)})
    _, second = yield from ask_structured(WRITER, "basic", Questions[Basic], "crest_basic", {}, [first])
    simple, third = yield from ask_structured(WRITER, "simple", Questions[Simple], "crest_simple", {}, [first, second],
                                              most=len(lines))
    found = list(simple.questions)
    tags = {"language": "ko" if is_korean([library.documents[item.document].plain]) else "en"}
    try:
        joined, _ = yield from ask_structured(WRITER, "complex", Questions[Complex], "crest_complex", {},
                                              [first, second, third], most=len(lines))
        found += joined.questions
    except Dropped:
        tags["degraded"] = "simple only"
    return [replace(item, id=f"{item.id}-{number}", question=one.question, answers=(one.answer,),
                    evidence=select_spans(one.evidence, lines), tags={
                        **tags, "tier": "complex" if len(set(one.types)) > 1 else "simple",
                        "reasoning": ", ".join(dict.fromkeys(one.types))})
            for number, one in enumerate(found, 1)]


def _evidence_lines(chunk: Chunk) -> Iterator[Evidence]:
    """Yield the sentences and table rows of a chunk that contain words."""
    text = chunk.content[len(chunk.prefix):]
    # an HTML row with several lines counts as one sentence
    for start, end in sentence_spans(_ROW.sub(lambda row: "x" * len(row[0]), text)):
        if _WORD.search(_TAG.sub("", text[start:end])):
            yield Evidence(chunk.document, chunk.format, chunk.start + start, chunk.start + end, text[start:end])


def add_neighbours(item: Item, library: Library) -> StageRecipe:
    """Add the question's nearest neighbours in the index to its chunks, and shuffle them. Leave out the other rendering
    of its document and, for the unanswerable share, the evidence."""
    passage, first = {chunk.id for chunk in item.chunks}, item.chunks[0]
    answerable = library.rng("unanswerable", item.id).random() >= library.options.unanswerable
    same_document = sum(chunk.document == first.document for chunk in library.chunks)
    found: Passages = yield Search(item.question, SHOWN + same_document)
    own = [chunk for chunk in item.chunks if answerable or not _has_evidence(chunk, item)]
    others = [one.chunk for one in found if one.chunk.document != first.document
              or (one.chunk.format == first.format and one.chunk.id not in passage)]
    every = [*own, *others][:SHOWN]
    if not every:
        raise Dropped("the index has no chunk besides its evidence")
    library.rng("order", item.id).shuffle(every)
    return replace(item, chunks=tuple(every), answerable=answerable)


def _has_evidence(chunk: Chunk, item: Item) -> bool:
    return any(overlaps(chunk, one) for one in item.evidence)


def check_language(item: Item, library: Library) -> str | None:
    """Check that the question is in the language of its source."""
    same = is_korean([item.question]) == (item.tags["language"] == "ko")
    return None if same else "it is not in the language of its source"


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write the two splits in the published format."""
    for split, answerable in (("non_refusal", True), ("refusal", False)):
        write_lines(folder / f"{split}.jsonl",
                    (_row(item, library) for item in items if item.answerable == answerable))


def _row(item: Item, library: Library) -> dict[str, object]:
    held = [number for number, chunk in enumerate(item.chunks, 1) if _has_evidence(chunk, item)]
    documents = [{"docid": number, "content": chunk.content, "type": "html" if chunk.format == "html" else "text",
                  "source_path": library.documents[chunk.document].source, "ground": number in held,
                  "citation_idx": None} for number, chunk in enumerate(item.chunks, 1)]
    meta = {"language": item.tags["language"], "difficulty_type": f"{item.tags['tier'].title()}QA"}
    texts = {"documents": documents, "citation_ids": held, "meta": meta}  # JSON text within JSON, as published
    return {"id": item.id, "query": item.question, "answer": item.answers[0],
            **{name: json.dumps(value, ensure_ascii=False) for name, value in texts.items()},
            "reasoning_type": [f"{name} reasoning" for name in item.tags["reasoning"].split(", ")]}


CREST = Kind("crest", "CReSt (2025), section 3 and appendix B.2", instances,
             (Stage("turns", ask_questions, calls=8), Stage("neighbours", add_neighbours)),
             (Stage("spans", filters.check_spans), Stage("self-contained", filters.check_self_contained),
              Stage("language", check_language), Stage("solvable", filters.check_solvable, calls=8),
              Stage("not known", filters.check_unknown, calls=8),
              Stage("needs its evidence", filters.check_needs_evidence, calls=48),
              Stage("unique", lambda item, library: filters.check_unique(item, library) if item.answerable else None),
              Stage("certificate",
                    lambda item, library: None if item.answerable else filters.certify_unanswerable(item, library))),
             write, max_items=10, options=CrestOptions, chunker=CrestSizes(), formats=("html", "plain"))

"""CReSt (2025), section 3 and appendix B.2: questions over random passages of structured documents.

A passage of one to five chunks of one document in one rendering goes through one conversation of four turns: its key
information, basic questions, simple ones, complex ones; simple and complex ones are kept. Nearest neighbours in the
index fill what a question comes with up to ten chunks. The paper has people say whether it can be answered; here the
gates do, and an item whose evidence is taken out is an unanswerable one. A writer that fails the fourth turn leaves
simple questions alone, and the card counts them by tier.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from documents.chunkers import CrestSizes
from documents.types import Chunk
from experiments.construct import gates
from experiments.construct.asking import WRITER, structured
from experiments.construct.item import Dropped, Evidence, Item, Kind, Library, Playing, Stage
from strategies.types import Evidence as Passages
from strategies.types import Search

SHOWN = 10
"""Chunks that a question comes with."""


class CrestOptions(BaseModel):
    """Settings of the kind.

    Attributes:
        most: chunks of the passage that an instance begins with.
        tiers: which turns' questions are kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    most: int = Field(default=5, ge=1, le=SHOWN)
    tiers: tuple[Literal["simple", "complex"], ...] = ("simple", "complex")


class KeyInformation(BaseModel):
    """One thing that the passage says: enough of them to write it anew."""

    key: str
    values: list[str]
    description: str


class Outline(BaseModel):
    """The reply of the first turn."""

    information: list[KeyInformation] = Field(min_length=1)


class Asked(BaseModel):
    """A question of the second to fourth turn, with the sentences of the passage that its answer rests on."""

    type: str
    question: str = Field(min_length=8)
    answer: str = Field(min_length=1)
    evidence: list[str] = Field(min_length=1)


class AskedList(BaseModel):
    """The reply of the second to fourth turn."""

    questions: list[Asked] = Field(min_length=1)


def instances(library: Library) -> Iterator[Item]:
    """Draw passages without end: a document, a rendering, and one to five of its chunks."""
    groups: dict[tuple[str, str], list[Chunk]] = {}
    for chunk in library.chunks:
        groups.setdefault((chunk.document, chunk.format), []).append(chunk)
    names = sorted(groups)
    for number in count(1):
        rng = library.rng("instance", str(number))
        chunks = groups[rng.choice(names)]
        drawn = rng.sample(range(len(chunks)), min(rng.randint(1, library.options.most), len(chunks)))
        yield Item(f"crest-{number:05}", chunks=tuple(chunks[place] for place in sorted(drawn)))


def turns(item: Item, library: Library) -> Playing:
    """Hold the conversation of four turns; a fourth that fails leaves the simple questions."""
    passage = "\n\n".join(chunk.content for chunk in item.chunks)
    _, first = yield from structured(WRITER, "key information", Outline, "crest_information", {"passage": passage})
    _, second = yield from structured(WRITER, "basic", AskedList, "crest_basic", {}, [first])
    simple, third = yield from structured(WRITER, "simple", AskedList, "crest_simple", {}, [first, second])
    found = {"simple": simple}
    if "complex" in library.options.tiers:
        try:
            found["complex"], _ = yield from structured(WRITER, "complex", AskedList, "crest_complex", {},
                                                        [first, second, third])
        except Dropped:
            if "simple" not in library.options.tiers:
                raise
    return [_item(item, tier, number, asked) for tier in library.options.tiers if tier in found
            for number, asked in enumerate(found[tier].questions, 1)]


def _item(item: Item, tier: str, number: int, asked: Asked) -> Item:
    return replace(item, id=f"{item.id}-{tier}-{number}", question=asked.question, answers=(asked.answer,),
                   evidence=tuple(quoted(text, item.chunks) for text in asked.evidence),
                   tags={"tier": tier, "reasoning": asked.type})


def quoted(text: str, chunks: Sequence[Chunk]) -> Evidence:
    """Return where a quote stands in the chunks; at no place, from 0 to 0, where it stands in none."""
    for chunk in chunks:
        place = chunk.content.find(text, len(chunk.prefix)) - len(chunk.prefix)
        if place >= 0:
            return Evidence(chunk.document, chunk.format, chunk.start + place, chunk.start + place + len(text), text)
    return Evidence(chunks[0].document, chunks[0].format, 0, 0, text)


def neighbours(item: Item, library: Library) -> Playing:
    """Fill what the question comes with by the chunks of the index that are nearest to it, in random order."""
    found: Passages = yield Search(item.question, SHOWN + len(item.chunks))
    own = {chunk.id: chunk for chunk in item.chunks}
    every = list((own | {one.chunk.id: one.chunk for one in found}).values())[:SHOWN]
    library.rng("order", item.id).shuffle(every)
    return replace(item, chunks=tuple(every))


def write(items: Sequence[Item], library: Library, folder: Path) -> None:
    """Write the two splits as the published set has them."""
    for split, answerable in (("non_refusal", True), ("refusal", False)):
        rows = [_row(item, library) for item in items if item.answerable == answerable]
        if rows:
            (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows),
                                                   encoding="utf-8")


def _row(item: Item, library: Library) -> dict[str, object]:
    held = [number for number, chunk in enumerate(item.chunks, 1) if any(
        one.document == chunk.document and one.format == chunk.format and one.start < chunk.end and
        chunk.start < one.end for one in item.evidence)]
    documents = [{"docid": number, "content": chunk.content, "type": "html" if chunk.format == "html" else "text",
                  "source_path": library.documents[chunk.document].source, "ground": number in held}
                 for number, chunk in enumerate(item.chunks, 1)]
    return {"id": item.id, "query": item.question, "answer": item.answers[0], "documents": documents,
            "citation_ids": held if item.answerable else [],
            "meta": {"language": item.tags.get("language", "en"), "difficulty_type": item.tags["tier"],
                     "reasoning_type": [item.tags["reasoning"]]}}


CREST = Kind("crest", "CReSt (2025), section 3 and appendix B.2", instances,
             (Stage("turns", turns, calls=8), Stage("neighbours", neighbours)),
             (Stage("spans", gates.spans), Stage("self-contained", gates.self_contained),
              Stage("solvable", gates.solvable, calls=8), Stage("not known", gates.unknown, calls=8)),
             write, most=20, options=CrestOptions, chunker=CrestSizes(), formats=("html", "plain"))

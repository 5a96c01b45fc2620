"""Read titled paragraphs of sentences with supporting facts: the record format that HotpotQA introduced.

There are two layouts: pairs, `[[title, [sentence, ...]], ...]` and `[[title, sentence number], ...]`, or the hub's
columns, `{"title": [...], "sentences": [...]}` and `{"title": [...], "sent_id": [...]}`. Either may be JSON text.
"""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ragbed.documents.rows import Row
from ragbed.documents.types import Chunk, Document
from ragbed.experiments.benchmarks.fields import gold_chunk, join_sentences, passage, passages, pieces
from ragbed.experiments.question import Gold

Units = Literal["paragraphs", "sentences"]


@dataclass(frozen=True, slots=True)
class TitledMaterial:
    """The documents and chunks of a question's paragraphs; `gold` also has gold units that are not in these paragraphs.
    """

    documents: tuple[Document, ...]
    provided: tuple[Chunk, ...]
    gold: tuple[Gold, ...]


def with_facts(row: Row, units: Units) -> TitledMaterial:
    """Return the paragraphs, or their sentences, as chunks, with the supporting ones as gold."""
    found = paragraphs(row)
    facts: list[tuple[str, int]] = _pairs(row, "supporting_facts", ("sent_id",))
    for place, (_, number) in enumerate(facts):
        if type(number) is not int:
            row.fail(f"supporting_facts[{place}]", "a title and the number of a sentence", number)
    if units == "paragraphs":
        return whole(found, [title for title, _ in facts])
    documents = [passage(join_sentences(sentences), title)[0] for title, sentences in found]
    given = [((document.title, place), chunk) for document, (_, sentences) in zip(documents, found, strict=True)
             for place, chunk in pieces(document, sentences).items()]
    chunks = dict(given)
    # A fact without a sentence still counts as gold, as in HotpotQA's own scores.
    gold = [gold_chunk(chunks[fact]) if fact in chunks else Gold(fact[0], chunk=f"{fact[0]}#{fact[1]}")
            for fact in facts]
    return TitledMaterial(tuple(documents), tuple(chunk for _, chunk in given), tuple(dict.fromkeys(gold)))


def whole(found: Sequence[tuple[str, list[str]]], titles: Collection[str]) -> TitledMaterial:
    """Make each paragraph one chunk. Paragraphs with one of the titles are gold, and so are titles without one."""
    documents, chunks = passages((title, join_sentences(sentences)) for title, sentences in found)
    gold = [gold_chunk(chunk) for (title, _), chunk in zip(found, chunks, strict=True) if title in titles]
    gold += [Gold(title) for title in titles if title not in dict(found)]
    return TitledMaterial(tuple(documents), chunks, tuple(dict.fromkeys(gold)))


def paragraphs(row: Row) -> list[tuple[str, list[str]]]:
    """Return the title and the sentences of each paragraph."""
    found = _pairs(row, "context", ("sentences", "content"))
    for place, (_, sentences) in enumerate(found):
        if not isinstance(sentences, list) or not all(isinstance(sentence, str) for sentence in sentences):
            row.fail(f"context[{place}]", "a title and a list of sentences", sentences)
    return found


def _pairs(row: Row, field: str, seconds: tuple[str, ...]) -> list[tuple[str, Any]]:
    value = row.decoded(field, (list, dict), f"a list of pairs, or title and {seconds[0]} as two lists")
    if isinstance(value, dict):
        titles, others = value.get("title"), next((value[name] for name in seconds if name in value), None)
        if not isinstance(titles, list) or not isinstance(others, list) or len(titles) != len(others):
            row.fail(field, f"title and {seconds[0]} as two lists of one length", value)
        value = list(zip(titles, others, strict=True))
    for place, pair in enumerate(value):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            row.fail(f"{field}[{place}]", f"a pair of title and {seconds[0]}", pair)
    return [(title, other) for title, other in value]

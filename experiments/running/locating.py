"""Where what a pipeline read stands in the documents of the run: first by what it names, then by its text, then by its
words."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from documents.types import Chunk, Document
from experiments.question import Question
from strategies.normalising import normalize_answer
from strategies.types import Evidence, Passage

_SHARED = 0.8  # of the words of the shorter one, that two texts share which are one passage
_FEWEST = 8  # words of a text that its words alone may place


@dataclass(frozen=True, slots=True)
class Located:
    """Evidence with the places of the documents, and the numbers of what its words alone have placed."""

    evidence: Evidence
    by_words: frozenset[int] = frozenset()


class Locator:
    """Finds contexts among the chunks that a question brings, its gold among them, and in the benchmark's documents."""

    def __init__(self, question: Question, documents: Mapping[str, Document], gold: Iterable[Chunk]) -> None:
        self._documents = documents
        self._chunks = list({chunk.id: chunk for chunk in (*question.chunks, *gold)}.values())
        self._known = {chunk.id for chunk in self._chunks}

    @cached_property
    def _texts(self) -> list[str]:
        return [" ".join(normalize_answer(chunk.content).split()) for chunk in self._chunks]

    def located(self, evidence: Evidence) -> Located:
        """Return the evidence with each context in its place; what has none stays as the pipeline named it."""
        found, by_words = [], set()
        for passage in evidence:
            chunk = passage.chunk if passage.chunk.id in self._known else self._named(passage.chunk)
            if chunk is None and (chunk := self._by_text(passage.chunk)) is None \
                    and (chunk := self._by_words(passage.chunk)) is not None:
                by_words.add(passage.number)
            found.append(Passage(passage.number, chunk or passage.chunk))
        return Located(tuple(found), frozenset(by_words))

    def _named(self, context: Chunk) -> Chunk | None:
        """By the id of a chunk, or a document's id or source path, and the span of its text there."""
        name = context.document
        if name in self._known:
            return _as(context, next(chunk for chunk in self._chunks if chunk.id == name))
        document = self._documents.get(name) or next(
            (one for one in self._documents.values() if name and one.source == name), None)
        own = [chunk for chunk in self._chunks if document is not None and chunk.document == document.id]
        if document is None:
            own = [chunk for chunk in self._chunks if name and chunk.document == name]
        if len(own) == 1 and (not context.content or own[0].content == context.content):
            return _as(context, own[0])
        if document is None:
            return None
        if context.start < context.end:
            return replace(context, document=document.id)
        if context.content and (at := document.text("plain").find(context.content)) >= 0:
            return replace(context, document=document.id, start=at, end=at + len(context.content))
        inside = self._by_text(context, own)
        return inside or replace(context, document=document.id)

    def _by_text(self, context: Chunk, among: Sequence[Chunk] = ()) -> Chunk | None:
        """By a text that is a chunk's, a part of it, or holds it whole; blanks, case and punctuation apart."""
        text = " ".join(normalize_answer(context.content).split())
        if len(text.split()) < _FEWEST and text not in self._texts:
            return None
        ids = {chunk.id for chunk in among}
        return next((_as(context, chunk) for chunk, known in zip(self._chunks, self._texts, strict=True)
                     if known and (not ids or chunk.id in ids) and (f" {text} " in f" {known} "
                                                                   or f" {known} " in f" {text} ")), None)

    def _by_words(self, context: Chunk) -> Chunk | None:
        """By most of its words, as where a pipeline cut or cleaned its documents in its own way."""
        words = Counter(normalize_answer(context.content).split())
        shares = [_share(words, Counter(text.split())) for text in self._texts]
        best = max(range(len(shares)), key=shares.__getitem__, default=None)
        return None if best is None or shares[best] < _SHARED else _as(context, self._chunks[best])


def _share(one: Counter[str], other: Counter[str]) -> float:
    shorter = min(one.total(), other.total())
    return (one & other).total() / shorter if shorter >= _FEWEST else 0.0


def _as(context: Chunk, known: Chunk) -> Chunk:
    """The known chunk with the text that the pipeline read."""
    return replace(known, content=context.content, prefix="") if context.content else known

"""Match the contexts that a pipeline read with the run's documents: by name, by text, or by words."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.question import Question
from ragbed.experiments.record import Level
from ragbed.strategies.normalizing import normalize_answer
from ragbed.strategies.types import Evidence, Passage

_SHARED = 0.8  # two texts match if the other has this share of the shorter one's words
_MIN_WORDS = 8  # words that a text needs to identify a passage by itself


@dataclass(frozen=True, slots=True)
class MatchedContexts:
    """Evidence after matching its contexts with the run's documents.

    Attributes:
        levels: "words" for passages matched only by words; None for passages that name a document of the run but lack
            its text, so that they are never gold.
    """

    evidence: Evidence
    levels: Mapping[int, Level | None]


class ContextMatcher:
    """Match contexts with a question's chunks, including its gold, and with documents by id or source path."""

    def __init__(self, question: Question, documents: Mapping[str, Document], gold: Iterable[Chunk]) -> None:
        self._documents = documents
        self._chunks = {chunk.id: chunk for chunk in (*question.chunks, *gold)}

    @cached_property
    def _words(self) -> Mapping[str, list[str]]:
        return {id: _words_of(chunk.content) for id, chunk in self._chunks.items()}

    def match(self, evidence: Evidence) -> MatchedContexts:
        """Return the evidence with its contexts matched. A context without a match stays as the pipeline named it."""
        found, levels = [], dict[int, Level | None]()
        for passage in evidence:
            context = passage.chunk
            chunk = context if context.id in self._chunks else self._match_name(context) or self._match_text(context)
            if chunk is None and context.content:
                chunk = self._match_words(context)
                if chunk is not None:
                    levels[passage.number] = "words"
                elif context.document in self._documents:
                    levels[passage.number] = None
            found.append(Passage(passage.number, chunk or context))
        return MatchedContexts(tuple(found), levels)

    def _match_name(self, context: Chunk) -> Chunk | None:
        """Match by the id of a chunk, or by a document's id or source path and the text's position there."""
        if context.document in self._chunks:
            return _replace_text(context, self._chunks[context.document])
        document = self._documents.get(context.document)
        named = context.document if document is None else document.id
        own = [chunk for chunk in self._chunks.values() if named and chunk.document == named]
        whole = document is None or sum(chunk.end - chunk.start for chunk in own) >= len(document.text("plain"))
        if len(own) == 1 and (context.content == own[0].content or (whole and not context.content)):
            return _replace_text(context, own[0])
        if document is None:
            return self._match_text(context, own) if own else None
        if context.start < context.end or not context.content:
            return replace(context, document=document.id)
        if (at := document.text("plain").find(context.content)) >= 0:
            return replace(context, document=document.id, start=at, end=at + len(context.content))
        if own:
            return self._match_text(context, own)
        known = _share(_words_of(context.content), _words_of(document.text("plain"))) >= _SHARED
        return replace(context, document=document.id) if known else None

    def _match_text(self, context: Chunk, named: Sequence[Chunk] = ()) -> Chunk | None:
        """Match a text that equals, contains or is part of a chunk, ignoring blanks, case and punctuation. A short text
        matches only if it is a whole chunk, or if the document is named.
        """
        words = _words_of(context.content)
        text = f" {' '.join(words)} "
        for chunk in named or self._chunks.values():
            own = self._words[chunk.id]
            known = f" {' '.join(own)} "
            if words == own or (len(words) >= (1 if named else _MIN_WORDS) and text in known) or (
                    len(own) >= _MIN_WORDS // 2 and known in text):
                return _replace_text(context, chunk)
        return None

    def _match_words(self, context: Chunk) -> Chunk | None:
        """Match by most of the words, for pipelines that chunk or clean the documents in their own way."""
        words = _words_of(context.content)
        shares = {id: _share(words, own) for id, own in self._words.items()}
        best = max(shares, key=shares.__getitem__, default="")
        return _replace_text(context, self._chunks[best]) if shares.get(best, 0.0) >= _SHARED else None


def _words_of(text: str) -> list[str]:
    return normalize_answer(text).split()


def _share(one: Sequence[str], other: Sequence[str]) -> float:
    """Return the share of the shorter text's words that are close together in the other. Words far apart do not count:
    with them, a long text would match almost any other."""
    short, long = sorted((one, other), key=len)
    if len(short) < _MIN_WORDS or len(set(short).difference(long)) > (1 - _SHARED) * len(short):
        return 0.0
    missing, window, found, most = Counter(short), round(len(short) / _SHARED), 0, 0
    for at, word in enumerate(long):
        found += missing[word] > 0
        missing[word] -= 1
        if at >= window:
            missing[long[at - window]] += 1
            found -= missing[long[at - window]] > 0
        most = max(most, found)
    return most / len(short)


def _replace_text(context: Chunk, known: Chunk) -> Chunk:
    """Return the matching chunk with the text that the pipeline read."""
    return replace(known, content=context.content, prefix="") if context.content else known

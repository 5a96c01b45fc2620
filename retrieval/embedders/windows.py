"""Cuts texts into the windows that an embedder reads, by its tokenizer or by an estimate, and pools their vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError
from ragbed.retrieval.models.loading import cut
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL = 4  # tokens that a model may put around a text


def _weight(character: str) -> float:
    """Tokens that a character stands for at most, seen over whole texts.

    Latin letters have three or more characters a token in prose and two in names and abbreviations; some tokenizers
    give each digit and each mark its own; a Korean syllable has up to three in a vocabulary of English.
    """
    if character.isascii():
        return 0.5 if character.isalpha() or character.isspace() else 1.0
    return 3.0 if ord(character) > 0x2E7F else 1.5


def tokens_at_most(text: str) -> float:
    """Return an estimate that tokenizers seldom exceed."""
    return sum(map(_weight, text))


def cut_by_estimate(texts: Sequence[str], window: int, header: str) -> list[list[Span]]:
    """Return for each text, spans that cover it and fit the window behind the header, in order and without overlap. A
    cut falls behind a space where there is one in the second half of the window. Raises ModelError where the header
    leaves no room."""
    room = window - SPECIAL - tokens_at_most(header)
    if room < 16:
        raise ModelError(f"a window of {window} tokens leaves no room behind a header of {len(header)} characters: "
                         "use shorter prefixes, or set window to what the server takes")
    return [_cut(text, room) for text in texts]


def shortened(text: str, window: int) -> str:
    """Return the beginning of a text that fits the window."""
    return text[slice(*_cut(text, window - SPECIAL)[0])]


def _cut(text: str, room: float) -> list[Span]:
    if 3 * len(text) <= room:
        return [(0, len(text))]
    spans: list[Span] = []
    start, used = 0, 0.0
    sums = list(accumulate(map(_weight, text)))
    for place, total in enumerate(sums):
        if total - used > room:
            space = max(text.rfind(mark, start + (place - start) // 2, place) for mark in " \n\t")
            end = space + 1 if space >= 0 else place
            spans.append((start, end))
            start, used = end, sums[end - 1]
    return [*spans, (start, len(text))]


LEAST_ROOM = 16  # tokens that a prefix and a header must leave for the text


@dataclass(frozen=True, slots=True)
class Reader:
    """The windows of texts for one model."""

    name: str  # the model's, for messages
    tokenizer: Tokenizer  # one that cuts and pads nothing
    window: int  # how many tokens the model reads, its special tokens included
    long: Literal["windows", "truncated"]  # what becomes of a text that is longer

    def windows(self, texts: Sequence[str], header: str) -> list[list[Span]]:
        """Cut texts as `Embedder.windows` says; truncated, a text is one window, read as far as the model reads."""
        if self.long == "truncated":
            return [[(0, len(text))] for text in texts]
        taken = len(self.tokenizer.encode(header, add_special_tokens=True).ids)
        if taken > self.window - LEAST_ROOM:
            raise ModelError(f"{self.name} reads {self.window} tokens, of which a header of {len(header)} "
                             "characters leaves none: use shorter prompts")
        return cut(self.tokenizer, texts, self.window - taken)

    def embed(self, texts: Sequence[str], prefix: str, embed: Callable[[Sequence[str]], Matrix],
              normalise: bool = True) -> Matrix:
        """Return vectors of texts, one that is longer than the window as the mean of its windows' vectors. `embed`:
        vectors of at least one text that fits the window or, `truncated`, is to be cut to it."""
        spans = self.windows(texts, prefix)
        vectors = embed([prefix + text[start:end] for text, cuts in zip(texts, spans, strict=True)
                         for start, end in cuts])
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name} gives vectors that are no numbers: its weights are damaged, or its backend "
                             "does not suit it")
        return pooled(vectors, [len(cuts) for cuts in spans], normalise)


def pooled(vectors: Matrix, counts: Sequence[int], normalise: bool) -> Matrix:
    """Return for each text the mean of its windows' vectors, float32 of shape (texts, d); `counts` are its windows, one
    at least. With `normalise` the windows' vectors and their means are brought to unit length."""
    vectors = unit(vectors) if normalise else vectors
    if len(vectors) == len(counts):
        return vectors
    sizes = np.asarray(counts)
    means: Matrix = (np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]).astype(np.float32)
    return unit(means) if normalise else means


def unit(vectors: Matrix) -> Matrix:
    """Return the vectors at unit length; one of zeros, as of a text without a known word, stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled

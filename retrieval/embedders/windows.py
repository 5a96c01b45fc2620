"""Cut texts into the windows that an embedder reads, by its tokenizer or by an estimate, and pool vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

import numpy as np

from ragbed.documents.chunkers.spans import Span
from ragbed.documents.errors import ModelError
from ragbed.retrieval.model_files import cut_by_tokens
from ragbed.retrieval.types import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPECIAL = 4  # tokens that a model may put around a text
_MIN_ROOM = 16  # minimum tokens that prefix and header must leave for the text


@dataclass(frozen=True, slots=True)
class Reader:
    """Cuts texts into windows by a model's tokenizer, and embeds them."""

    name: str  # name of the model, for messages
    tokenizer: Tokenizer  # without truncation and padding
    window: int  # tokens that the model reads, including special tokens
    long: Literal["windows", "truncated"]  # what to do with a longer text

    def windows(self, texts: Sequence[str], header: str) -> list[list[Span]]:
        """Cut texts as `Embedder.windows` describes. With `truncated`, each text is one window, even if it is
        longer."""
        if self.long == "truncated":
            return [[(0, len(text))] for text in texts]
        taken = len(self.tokenizer.encode(header, add_special_tokens=True).ids)
        if taken > self.window - _MIN_ROOM:
            raise ModelError(f"{self.name} has a context of {self.window} tokens; the passage prefix and header "
                             f"({len(header)} characters) leave no room for text; shorten the prefix")
        return cut_by_tokens(self.tokenizer, texts, self.window - taken)

    def embed(self, texts: Sequence[str], prefix: str, embed: Callable[[Sequence[str]], Matrix],
              normalise: bool = True) -> Matrix:
        """Return a vector per text, which is the mean of its windows' vectors if it is longer than the window. `embed`
        computes the vectors of one or more texts, and may truncate each to the window."""
        spans = self.windows(texts, prefix)
        vectors = embed([prefix + text[start:end] for text, cuts in zip(texts, spans, strict=True)
                         for start, end in cuts])
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name} returns vectors that are not numbers: its weights are damaged, or do not "
                             "work with this backend")
        return pool_windows(vectors, [len(cuts) for cuts in spans], normalise)


def pool_windows(vectors: Matrix, counts: Sequence[int], normalise: bool) -> Matrix:
    """Return the mean of the windows' vectors of each text, float32 of shape (texts, d).

    Args:
        counts: number of windows of each text, at least one.
        normalise: scale the windows' vectors, and the means, to unit length.
    """
    vectors = to_unit_length(vectors) if normalise else vectors
    if len(vectors) == len(counts):
        return vectors
    sizes = np.asarray(counts)
    means: Matrix = (np.add.reduceat(vectors, np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]).astype(np.float32)
    return to_unit_length(means) if normalise else means


def to_unit_length(vectors: Matrix) -> Matrix:
    """Scale vectors to unit length. A zero vector, such as that of a text without known words, stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Matrix = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


# Estimates, for models without a tokenizer.


def _weight(character: str) -> float:
    """Return an upper bound of the tokens that a character takes on average. Latin text has three or more characters
    per token in prose, and two in names and abbreviations. Some tokenizers give each digit and each punctuation mark
    its own token. With an English vocabulary, a Korean syllable has up to three tokens."""
    if character.isascii():
        return 0.5 if character.isalpha() or character.isspace() else 1.0
    return 3.0 if ord(character) > 0x2E7F else 1.5


def estimate_tokens(text: str) -> float:
    """Estimate the number of tokens of a text. Tokenizers seldom produce more."""
    return sum(map(_weight, text))


def cut_by_estimate(texts: Sequence[str], window: int, header: str) -> list[list[Span]]:
    """Return the spans of each text, in order and without overlap, that cover it and fit the window after the header.
    Cuts are made after a space if there is one in the second half of the window. Raises ModelError if the header leaves
    no room for text."""
    room = window - _SPECIAL - estimate_tokens(header)
    if room < _MIN_ROOM:
        raise ModelError(f"a window of {window} tokens leaves no room for text after a header of {len(header)} "
                         "characters; use shorter prefixes, or set window to what the server can read")
    return [_cut(text, room) for text in texts]


def truncate_by_estimate(text: str, window: int) -> str:
    """Return the beginning of a text that fits the window."""
    return text[slice(*_cut(text, window - _SPECIAL)[0])]


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

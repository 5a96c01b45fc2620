"""Cutting a text into the windows that an embedding model can read, by the model's own tokenizer."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from documents.chunkers.spans import Span

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SLICE = 256
"""Texts tokenised at once: their offsets are Python objects, which would otherwise fill the memory."""


def cut(tokenizer: Tokenizer, texts: Sequence[str], limit: int) -> list[list[Span]]:
    """For each text, spans of at most `limit` tokens that cover it, in order and without overlap.

    A cut falls between words where there is one in the second half of the window.
    """
    spans: list[list[Span]] = []
    for first in range(0, len(texts), SLICE):
        group = list(texts[first:first + SLICE])
        encodings = tokenizer.encode_batch(group, add_special_tokens=False)
        spans += [_cut(tokenizer, text, encoding, limit) for text, encoding in zip(group, encodings, strict=True)]
    return spans


def _cut(tokenizer: Tokenizer, text: str, encoding: Encoding, limit: int) -> list[Span]:
    if len(encoding.ids) <= limit:
        return [(0, len(text))]
    spans: list[Span] = []
    start = 0
    while start < len(text):
        # A token is seldom longer than 16 characters; where the guess is short, the window is merely smaller.
        end = start + _fitting(tokenizer, text[start:start + limit * 16], limit)
        spans.append((start, end))
        start = end
    return spans


def _fitting(tokenizer: Tokenizer, text: str, limit: int) -> int:
    """How many characters fit; tokenised again after a cut, which can change how the last word is read."""
    reach = len(text)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    while len(encoding.ids) > limit and reach > 1:
        reach = _boundary(encoding, limit)
        encoding = tokenizer.encode(text[:reach], add_special_tokens=False)
    return reach


def _boundary(encoding: Encoding, limit: int) -> int:
    """Where the text up to token `limit` ends: before a word if possible, at least one character on."""
    words, offsets = encoding.word_ids, encoding.offsets
    for token in range(limit, limit // 2, -1):
        if words[token] != words[token - 1] and offsets[token][0] > 0:
            return int(offsets[token][0])
    # Some characters become several tokens (a Korean syllable, an emoji): never cut inside one.
    return max(int(offsets[limit][0]), 1)

"""Tokenizer: what makes the tokens of a text, of passages and queries alike."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class Tokenizer(Protocol):
    """Makes tokens of texts. Equal text always has equal tokens. Thread-safe.

    Attributes:
        many: texts from which postings are kept on disk: those of fewer are built in the time of opening them.
    """

    many: int

    @property
    def identity(self) -> str:
        """Tells tokenizers apart that make other tokens: settings, rules and the libraries' versions."""
        ...

    def tokens(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """The tokens of each text, in the order of the texts; texts are taken as they are needed."""
        ...

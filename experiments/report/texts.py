"""Passages and prompt parts, numbered once each by hash; a prompt part names the passages in it by their numbers."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from experiments.report.store import Packed, packed_within
from experiments.report.text import bounded

LONGEST = 300_000  # characters of one text that the page holds
_LEAST = 80  # characters from which a passage in a prompt is worth a reference

Piece = str | int | dict[str, int]


class Texts:
    """Numbers texts in the order in which they are first named.

    Args:
        text: content by hash.
    """

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = lru_cache(maxsize=256)(text)  # the prompts of one question show the same passages
        self._evidence: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        self._shown: list[tuple[str, ...]] = []

    def evidence(self, key: str) -> int:
        """The number of a passage's content."""
        return self._evidence.setdefault(key, len(self._evidence))

    def prompt(self, key: str, shown: tuple[str, ...]) -> int:
        """The number of a prompt part.

        Args:
            shown: hashes of the passages that it may hold, in order.
        """
        if key not in self._prompts:
            self._prompts[key] = len(self._prompts)
            self._shown.append(shown)
        return self._prompts[key]

    def packed_evidence(self, budget: int) -> Packed:
        """Each passage as its pieces."""
        return packed_within("evidence", len(self._evidence), (_literal(self._text(key)) for key in self._evidence),
                             budget)

    def packed_prompts(self, budget: int) -> Packed:
        """Each part as its pieces, in which a number stands for the passage of that number."""
        return packed_within("prompts", len(self._prompts), self._parts(), budget)

    def _parts(self) -> Iterator[list[Piece]]:
        for key, shown in zip(self._prompts, self._shown, strict=True):
            yield self._pieces(self._text(key), shown)

    def _pieces(self, text: str, shown: Sequence[str]) -> list[Piece]:
        pieces: list[Piece] = []
        at = 0
        for key in shown:
            content = self._text(key)
            found = text.find(content, at) if _LEAST <= len(content) <= LONGEST else -1
            if found >= 0:
                pieces += [*_literal(text[at:found]), self.evidence(key)]
                at = found + len(content)
        return [*pieces, *_literal(text[at:])]


def _literal(text: str) -> list[Piece]:
    """The text as it is shown, with a note of the characters that are left out; nothing where it is empty."""
    piece = bounded(text, LONGEST)
    return [*([piece.text] if text else []), *([{"left_out": piece.left_out}] if piece.left_out else [])]

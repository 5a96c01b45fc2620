"""Texts that repeat, kept once each in the page, compressed in blocks that its script opens when asked."""
from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field

from experiments.report.text import bounded

BLOCK = 400_000
LONGEST = 300_000
BUDGET = 16_000_000


def pack(text: str) -> str:
    """The UTF-8 text, gzipped and in base64. Equal texts give equal packs."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode("ascii")


@dataclass(frozen=True, slots=True)
class Ref:
    """Where a text stands in the page.

    Attributes:
        block: None where the page had no room left.
        size: characters of the whole text.
        left_out: characters at its end that the page does not hold.
    """

    block: int | None
    item: int
    size: int
    left_out: int

    @property
    def address(self) -> str:
        return "" if self.block is None else f"{self.block}:{self.item}"


@dataclass(slots=True)
class TextStore:
    """Collects texts by hash.

    Args:
        text: content by hash.
        budget: bytes of packed text after which further texts are left out, and counted in `omitted`.
    """

    text: Callable[[str], str]
    budget: int = BUDGET
    blocks: list[str] = field(default_factory=list)
    omitted: int = 0
    _refs: dict[str, Ref] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _open_size: int = 0
    _used: int = 0

    def ref(self, key: str) -> Ref:
        """Where the text with this hash stands; it is added where it is new."""
        if key not in self._refs:
            self._refs[key] = self._add(self.text(key))
        return self._refs[key]

    def _add(self, text: str) -> Ref:
        if self._used >= self.budget:
            self.omitted += 1
            return Ref(None, 0, len(text), len(text))
        piece = bounded(text, LONGEST)
        ref = Ref(len(self.blocks), len(self._open), len(text), piece.left_out)
        self._open.append(piece.text)
        self._open_size += len(piece.text)
        if self._open_size >= BLOCK:
            self._close()
        return ref

    def _close(self) -> None:
        self.blocks.append(pack(json.dumps(self._open, ensure_ascii=False)))
        self._used += len(self.blocks[-1])
        self._open, self._open_size = [], 0

    def finish(self) -> list[str]:
        """All packed blocks, in order; each is a JSON list of texts."""
        if self._open:
            self._close()
        return self.blocks

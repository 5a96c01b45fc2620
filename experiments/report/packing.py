"""What the page holds of a run, in numbered items: compressed in blocks that its script opens when asked."""
from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

# In the order in which they get room in the page: what comes last is left out first.
Kind = Literal["questions", "evidence", "traces", "prompts"]
BLOCK = 400_000  # characters of JSON, which a browser opens in a few milliseconds
BUDGET = 22_000_000  # characters of packed blocks in a page


def pack(text: str) -> str:
    """Return the UTF-8 text, gzipped and in base64. Equal texts give equal packs."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)).decode("ascii")


def as_json(item: Any) -> str:
    """JSON without spaces."""
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Packed:
    """The items of one kind that the page has room for."""

    kind: Kind
    blocks: tuple[str, ...]  # each is a packed JSON list of items
    firsts: tuple[int, ...]  # of each block, the number of its first item
    kept: int  # items in all blocks; those of higher numbers are left out
    left_out: int  # how many those are

    @property
    def size(self) -> int:
        """Characters in the page."""
        return sum(map(len, self.blocks))


@dataclass(slots=True)
class Blocks:
    """Takes items one after the other; an item's number is its place, `size` the characters that are packed already."""

    kind: Kind
    count: int = 0
    size: int = 0
    _blocks: list[str] = field(default_factory=list)
    _firsts: list[int] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _open_size: int = 0

    def add(self, item: Any) -> int:
        """Takes an item that JSON can hold; returns its number."""
        text = as_json(item)
        self._open.append(text)
        self._open_size += len(text)
        self.count += 1
        if self._open_size >= BLOCK:
            self._close()
        return self.count - 1

    def _close(self) -> None:
        self._firsts.append(self.count - len(self._open))
        self._blocks.append(pack(f"[{','.join(self._open)}]"))
        self.size += len(self._blocks[-1])
        self._open, self._open_size = [], 0

    def packed(self, budget: int | None = None) -> Packed:
        """Return all blocks, or those that begin within the budget."""
        if self._open:
            self._close()
        fits, used = 0, 0
        for block in self._blocks:
            if budget is not None and used >= budget:
                break
            fits, used = fits + 1, used + len(block)
        kept = self.count if fits == len(self._blocks) else self._firsts[fits]
        return Packed(self.kind, tuple(self._blocks[:fits]), tuple(self._firsts[:fits]), kept, self.count - kept)


def packed_within(kind: Kind, total: int, items: Iterable[Any], budget: int) -> Packed:
    """Pack as `Blocks.packed` items that are made one by one, `total` in all, but none that does not fit."""
    blocks = Blocks(kind)
    made = iter(items)
    while blocks.size < budget and blocks.count < total:
        blocks.add(next(made))
    return replace(blocks.packed(), left_out=total - blocks.count)

"""Pack the items of a page into compressed blocks, which the page's script opens on demand."""
from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

# In order of importance: the last kind is left out first.
Kind = Literal["questions", "evidence", "traces", "prompts"]
BLOCK = 400_000  # characters of JSON per block, which a browser opens in a few milliseconds
BUDGET = 22_000_000  # characters of packed blocks in a page


def pack(text: str) -> str:
    """Compress text with gzip and encode it as base64. Equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)).decode("ascii")


def as_json(item: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Packed:
    """The items of one kind that fit into the page."""

    kind: Kind
    blocks: tuple[str, ...]  # each is a packed JSON list of items
    firsts: tuple[int, ...]  # number of the first item of each block
    kept: int  # number of items in all blocks
    left_out: int  # number of items that do not fit

    @property
    def size(self) -> int:
        """The number of characters of the blocks in the page."""
        return sum(map(len, self.blocks))


@dataclass(slots=True)
class Blocks:
    """Collect items in blocks. An item's number is its position. `size` is the size of the closed blocks."""

    kind: Kind
    count: int = 0
    size: int = 0
    _blocks: list[str] = field(default_factory=list)
    _firsts: list[int] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)
    _open_size: int = 0

    def add(self, item: Any) -> int:
        """Add an item, and return its number."""
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
        """Return all blocks or, with a budget in characters, the blocks that begin within it."""
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
    """Pack `total` items. Only those that fit into the budget are made."""
    blocks = Blocks(kind)
    made = iter(items)
    while blocks.size < budget and blocks.count < total:
        blocks.add(next(made))
    return replace(blocks.packed(), left_out=total - blocks.count)

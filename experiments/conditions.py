"""Conditions, which choose the evidence with or without retrieval, and perturbations, which change it."""
from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

from ragbed.documents.errors import SettingsError, did_you_mean
from ragbed.documents.types import Chunk

T = TypeVar("T")
Condition = Literal["closed-book", "provided", "gold", "retrieved", "full"]


_PLAIN = ("shuffle", "unnumbered", "drop_gold", "table")
_COUNTED = ("negatives", "gold_at", "pool")
_SORTED = ("negatives", "pool")
_PART = re.compile(r"([a-z_]+)(?:@([1-9]\d{0,5})(?::([a-z][a-z0-9_]*))?)?")


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change to the evidence. Parts apply in the order below; `str` gives the name used in settings and tables.

    Attributes:
        table: show the table that the documents were generated from instead of the documents.
        drop_gold: omit the gold chunks, so that the question counts as unanswerable.
        negatives: number of chunks without gold to add after the others.
        pool: search only among the gold and this number of negatives.
        sort: which negatives to use: a third of each question's negatives by hardness (`easy`, `medium`, `hard`), or
            those of the miner with this name. If empty, all negatives are used, in the benchmark's order.
        shuffle: shuffle the chunks of each question.
        gold_at: put the gold chunks together, with the first at this position, counted from 1.
        unnumbered: show chunks without numbers, joined by a blank line, so that there are no citations.
    """

    table: bool = False
    drop_gold: bool = False
    negatives: int = 0
    shuffle: bool = False
    gold_at: int = 0
    unnumbered: bool = False
    pool: int = 0
    sort: str = ""

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, name: str) -> Perturbation:
        """Parse a name such as `shuffle`, `negatives@5`, `negatives@5:hard` or `shuffle+unnumbered`; `none` means no
        change. Raises SettingsError if the name is unknown, or two parts cannot be combined."""
        fields: dict[str, Any] = {}
        for part in name.split("+") if name != "none" else ():
            match = _PART.fullmatch(part)
            word, number, sort = match.groups() if match else ("", None, None)
            if word in fields or word not in (_SORTED if sort else _COUNTED if number else _PLAIN):
                raise SettingsError(f"unknown perturbation {name!r}; "
                                    f"{did_you_mean(word or name, (*_PLAIN, *_COUNTED))}"
                                    f"choose from: none, {', '.join(_PLAIN)}, "
                                    f"{', '.join(f'{one}@N' for one in _COUNTED)}; {' and '.join(_SORTED)} also take "
                                    "@N:HARDNESS and @N:MINER; join several with +")
            fields |= {word: int(number) if number else True} | ({"sort": sort} if sort else {})
        if fields.get("drop_gold") and fields.get("gold_at"):
            raise SettingsError(f"perturbation {name!r}: drop_gold and gold_at cannot be combined; give only one of "
                                "the two")
        if fields.get("negatives") and fields.get("pool"):
            raise SettingsError(f"perturbation {name!r}: pool and negatives cannot be combined; give only one of the "
                                "two")
        if fields.get("table") and (fields.get("drop_gold") or fields.get("gold_at")):
            raise SettingsError(f"perturbation {name!r}: table replaces all chunks; remove drop_gold and gold_at")
        return cls(**fields)

    @property
    def moves(self) -> bool:
        """Return whether the perturbation affects the choice or order of the shown chunks, not only their form."""
        return self not in (Perturbation(), Perturbation(unnumbered=True))

    def __str__(self) -> str:
        parts = [name for name in _PLAIN if getattr(self, name)]
        parts += [f"{name}@{getattr(self, name)}{f':{self.sort}' if self.sort and name in _SORTED else ''}"
                  for name in _COUNTED if getattr(self, name)]
        return "+".join(parts) or "none"


def apply_perturbation(chunks: Sequence[Chunk], perturbation: Perturbation, gold: Collection[str] = (),
             negatives: Sequence[Chunk] = (), rng: random.Random | None = None) -> tuple[Chunk, ...]:
    """Return the chunks after a perturbation, except for `table` and `unnumbered`, which the caller applies.

    Args:
        gold: ids of the gold chunks, for `drop_gold` and `gold_at`.
        negatives: candidates in order. Gold chunks and chunks already present are skipped.
        rng: random generator for `shuffle`.
    """
    kept = [chunk for chunk in chunks if not (perturbation.drop_gold and chunk.id in gold)]
    passed = {*gold, *(chunk.id for chunk in chunks)}
    added = [chunk for chunk in dict.fromkeys(negatives) if chunk.id not in passed]
    kept += added[:perturbation.negatives]
    if perturbation.shuffle:
        (rng or random.Random(0)).shuffle(kept)
    if perturbation.gold_at:
        others = [chunk for chunk in kept if chunk.id not in gold]
        before = perturbation.gold_at - 1
        kept = [*others[:before], *(chunk for chunk in kept if chunk.id in gold), *others[before:]]
    return tuple(kept)


def draw_lazily(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """Yield the items in random order (Fisher and Yates). Each is drawn only when needed."""
    moved: dict[int, int] = {}
    for at in range(len(items)):
        other = rng.randrange(at, len(items))
        yield items[moved.get(other, other)]
        moved[other] = moved.get(at, at)

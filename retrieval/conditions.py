"""Evidence conditions, which stand in for retrieval, and perturbations, seeded changes to it; neither knows gold."""
from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar

from ragbed.documents.errors import SettingsError
from ragbed.documents.types import Chunk
from ragbed.retrieval.types import Hit

T = TypeVar("T")
Condition = Literal["closed-book", "provided", "gold", "retrieved", "full"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Chunks that were placed beforehand: every search returns all of them, in their order, and adds none.

    The retriever of `provided`, `gold` and `full`, whose chunks the caller chose, and, with no chunks, of
    `closed-book`; under `retrieved` an index searches. Scores are 0: nothing was compared.
    """

    chunks: tuple[Chunk, ...]
    found_by: str

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[Hit(chunk, 0.0, rank, self.found_by) for rank, chunk in enumerate(self.chunks, 1)] for _ in queries]


_PLAIN = ("shuffle", "unnumbered", "drop_gold", "table")
_COUNTED = ("negatives", "gold_at", "pool")
_SORTED = ("negatives", "pool")
_PART = re.compile(r"([a-z_]+)(?:@([1-9]\d{0,5})(?::([a-z][a-z0-9_]*))?)?")


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change to the evidence, its parts in this order; `str` of it is the name that settings and tables use.

    Attributes:
        table: the table that the documents were made from stands in their place.
        drop_gold: gold chunks are left out, so that the question counts as unanswerable.
        negatives: so many chunks that are not gold are added, after those that stand there.
        pool: what is searched is the gold and so many negatives, whatever else the question brings.
        sort: which negatives: those of that third of each question's own by hardness (`easy`, `medium`, `hard`), or
            those that were taken in the turn of a miner of that name; empty for any, in the benchmark's order.
        shuffle: the order is drawn anew for each question.
        gold_at: the gold chunks stand together, the first of them at this position, counted from 1.
        unnumbered: chunks are shown without numbers, joined by a blank line; there are no citations then.
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
        """From a name such as `shuffle`, `negatives@5`, `negatives@5:hard` or `shuffle+unnumbered`; `none` does
        nothing. Raises SettingsError where there is no such perturbation, or two of its parts exclude each other."""
        fields: dict[str, Any] = {}
        for part in name.split("+") if name != "none" else ():
            match = _PART.fullmatch(part)
            word, number, sort = match.groups() if match else ("", None, None)
            if word in fields or word not in (_SORTED if sort else _COUNTED if number else _PLAIN):
                raise SettingsError(f"unknown perturbation {name!r}; there are none, {', '.join(_PLAIN)}, "
                                    f"{', '.join(f'{one}@N' for one in _COUNTED)}, of {' and '.join(_SORTED)} also "
                                    "@N:HARDNESS and @N:MINER, and several joined by +")
            fields |= {word: int(number) if number else True} | ({"sort": sort} if sort else {})
        if fields.get("drop_gold") and fields.get("gold_at"):
            raise SettingsError(f"perturbation {name!r}: gold that is dropped has no position")
        if fields.get("negatives") and fields.get("pool"):
            raise SettingsError(f"perturbation {name!r}: negatives are either searched (pool) or added to what is "
                                "found (negatives); give one of the two")
        if fields.get("table") and (fields.get("drop_gold") or fields.get("gold_at")):
            raise SettingsError(f"perturbation {name!r}: beside the table there is no gold chunk to drop or to place")
        return cls(**fields)

    @property
    def moves(self) -> bool:
        """True where other chunks are shown, or in another order; not only in another form."""
        return self not in (Perturbation(), Perturbation(unnumbered=True))

    def __str__(self) -> str:
        parts = [name for name in _PLAIN if getattr(self, name)]
        parts += [f"{name}@{getattr(self, name)}{f':{self.sort}' if self.sort and name in _SORTED else ''}"
                  for name in _COUNTED if getattr(self, name)]
        return "+".join(parts) or "none"


def arranged(chunks: Sequence[Chunk], perturbation: Perturbation, gold: Collection[str] = (),
             negatives: Sequence[Chunk] = (), rng: random.Random | None = None) -> tuple[Chunk, ...]:
    """Return the chunks after the perturbation: pure, and the same for the same `rng`.

    `table` is the caller's, who gives the table in place of the documents; `unnumbered` is the prompt's.
    `drop_gold` drops and `gold_at` places the chunks whose ids are `gold`. The negatives are added in order; gold, and
    what stands there already, is passed over. `rng` draws the order of `shuffle`, and nothing else.
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


def drawn(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """Return all items in an order drawn as it is needed (Fisher and Yates): of many only some are looked at."""
    moved: dict[int, int] = {}
    for at in range(len(items)):
        other = rng.randrange(at, len(items))
        yield items[moved.get(other, other)]
        moved[other] = moved.get(at, at)

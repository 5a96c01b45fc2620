"""Why answers are wrong: one bar a cell, a part for each cause."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.analysis.causes import CAUSES
from experiments.report.cells import Cell, Figure, Table
from experiments.report.text import visible
from experiments.words import part, probability

_ROOMY = 6.0  # percent of a bar's width that a number inside takes
_RIGHT = tuple(cause.name for cause in CAUSES if cause.right)
_UNTOLD = ("not_scored", "unjudged")  # neither right nor wrong
# Colour says whose fault it is, hatching which of its kinds: neither is alone.
_LOOKS = {
    "right": ("blue", "solid"), "citation_only": ("blue", "rising"), "memory": ("blue", "dots"),
    "unsupported": ("blue", "lines"), "retrieval_miss": ("orange", "solid"), "distracted": ("red", "rising"),
    "reasoning_error": ("red", "solid"), "wrong_in_view": ("red", "dots"), "wrong_refusal": ("purple", "solid"),
    "missing_refusal": ("purple", "rising"), "not_known": ("brown", "solid"), "gold_unknown": ("brown", "rising"),
    "failed": ("grey", "solid"), "format": ("grey", "rising"), "unjudged": ("grey", "dots"),
    "not_scored": ("grey", "lines")}


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause, with its colour and hatching.

    Attributes:
        wrong: whether the answer is neither right, for whatever reason, nor beyond telling.
    """

    name: str
    title: str
    definition: str
    colour: str
    hatch: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A cause's part of a bar: where it begins and how wide it is, out of 100, and the share in words where it fits."""

    cause: Cause
    count: int
    at: float
    width: float
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A cell; `shares` by cause."""

    cell: Cell
    n: int
    parts: tuple[Part, ...]
    shares: Mapping[str, Figure]

    @property
    def wrong(self) -> int:
        return sum(part.count for part in self.parts if part.cause.wrong)


@dataclass(frozen=True, slots=True)
class Kept:
    """A cell beside the one that was shown the gold alone, over the questions that both answer.

    Attributes:
        counts: right in both, in the other alone, in this one alone, in neither.
        kept: the share of those right over the gold alone that are right here.
    """

    cell: Cell
    n: int
    counts: tuple[int, int, int, int]
    kept: Figure
    p_holm: str


@dataclass(frozen=True, slots=True)
class Causes:
    """All bars; `causes` are those that occur in any, then `others`."""

    causes: tuple[Cause, ...]
    others: tuple[Cause, ...]
    bars: tuple[Bar, ...]
    kept: tuple[Kept, ...]
    notes: tuple[str, ...]


def causes(stored: Mapping[str, Any] | None, table: Table) -> Causes | None:
    """The summary's attribution; None where it has none."""
    cells = {cell.id: cell for cell in table.cells}
    if not stored or not stored.get("cells"):
        return None
    every = [_cause(one) for one in stored["causes"]]
    bars = tuple(_bar(cells[row["cell"]], row, every) for row in stored["cells"] if row["cell"] in cells)
    seen = {part.cause.name for bar in bars for part in bar.parts}
    return Causes(tuple(one for one in every if one.name in seen), tuple(one for one in every if one.name not in seen),
                  bars,
                  tuple(_kept(cells[row["cell"]], row) for row in stored.get("joint") or () if row["cell"] in cells),
                  tuple(visible(note) for note in stored.get("notes") or ()))


def _cause(stored: Mapping[str, Any]) -> Cause:
    name = stored["name"]
    colour, hatch = _LOOKS.get(name, ("grey", "solid"))
    return Cause(name, visible(stored["title"]), visible(stored["definition"]), colour, hatch,
                 name not in (*_RIGHT, *_UNTOLD))


def _kept(cell: Cell, stored: Mapping[str, Any]) -> Kept:
    counts = stored["both"], stored["lost"], stored["gained"], stored["neither"]
    return Kept(cell, stored["n"], counts, Figure.of(stored["kept"]), probability(stored["p_holm"]))


def _bar(cell: Cell, stored: Mapping[str, Any], every: list[Cause]) -> Bar:
    shares = {name: Figure.of(value) for name, value in stored["causes"].items()}
    parts, at = [], 0.0
    for cause in every:
        share = shares.get(cause.name)
        if share is None or not share.mean:
            continue
        width = 100 * share.mean
        text = part(share.count or 0, share.n) if width >= _ROOMY else ""
        parts.append(Part(cause, share.count or 0, round(at, 2), round(width, 2), text))
        at += width
    return Bar(cell, int(stored["n"]), tuple(parts), shares)

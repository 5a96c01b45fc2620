"""The parts of a kind of construction: stages make items, filters reject them, and both use the library."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from ragbed.documents.chunkers import ChunkerSettings, Sections
from ragbed.documents.types import Chunk, Document, Format
from ragbed.experiments.guests.hard_negatives.guard import GuardedIndex
from ragbed.experiments.guests.review.items import Evidence, Item
from ragbed.strategies.types import Asked

if TYPE_CHECKING:
    from ragbed.experiments.question import Benchmark
    from ragbed.retrieval.types import Embedder

_LOWER = re.compile(r"(?<![\w-])[a-zà-öø-ÿ][\w’'-]*")


def number_lines(lines: Mapping[int, Evidence]) -> str:
    """Return spans as prompts show them: one per line, with its number, as in `[7] ...`."""
    return "\n".join(f"[{number}] {' '.join(one.text.split())}" for number, one in lines.items())


def select_spans(numbers: Iterable[int], lines: Mapping[int, Evidence]) -> tuple[Evidence, ...]:
    """Return the spans that a writer names by number, without repeats. A number that was not shown gives a span from 0
    to 0, which `check_spans` rejects."""
    other = next(iter(lines.values()))
    return tuple(lines[number] if number in lines else replace(other, start=0, end=0, text=f"[{number}]")
                 for number in dict.fromkeys(numbers))


class Dropped(Exception):
    """Raised by a stage or filter to reject an item; the text is the reason, in a few words."""


@dataclass(frozen=True)
class Library:
    """Documents, index and settings that stages and filters use.

    Attributes:
        documents: by id.
        chunks: of the whole index, in the order of the documents.
        solvers: number of solvers; their roles are `solver 1`, `solver 2` and so on.
        judges: number of judges, with roles named the same way.
        options: settings of the kind.
        embedder: opens the embedder on first use.
        benchmark: source of the questions, if the items are not made from documents.
        has_writer: whether a writer model is set.
    """

    documents: Mapping[str, Document]
    chunks: Sequence[Chunk]
    solvers: int
    judges: int
    seed: int
    options: Any
    embedder: Callable[[], Embedder]
    benchmark: Benchmark | None = None
    has_writer: bool = False

    @cached_property
    def guarded_index(self) -> GuardedIndex:
        """All chunks, indexed for the guard against false negatives."""
        return GuardedIndex(self.chunks)

    def rng(self, *parts: str) -> random.Random:
        """Return a generator seeded by the construction's seed and the parts, such as an item's id."""
        return random.Random(":".join((str(self.seed), *parts)))

    def document(self, item: Item, id: str) -> Document | None:
        """Return a document of the item or of the library; None if neither has it."""
        return next((one for one in item.documents if one.id == id), self.documents.get(id))

    @cached_property
    def lowercase_words(self) -> frozenset[str]:
        """Words that a chunk writes in lower case, and that are therefore not names."""
        return frozenset(word for chunk in self.chunks for word in _LOWER.findall(chunk.content))


StageRecipe = Generator[Asked, Any, Any]
Step = Callable[[Item, Library], Any]
"""A function of an item, or a generator that yields searches and calls. A stage returns the changed item or a list of
items made from it. A filter returns the reason to reject the item, the item with new measurements, or None. Both may
raise Dropped."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage or a filter.

    Attributes:
        name: its row in the yield table.
        calls: maximum number of calls per item. An item that needs more fails.
    """

    name: str
    step: Step
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """An item and what happened to it.

    Attributes:
        lost: the stage or filter that ended the item; empty if it was kept.
        why: the reason, in a few words.
        calls: purpose and journal key of each call, including the calls for its instance.
        generated: whether the stages finished the item before a filter rejected it.
    """

    item: Item
    lost: str = ""
    why: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    generated: bool = False


class NoOptions(BaseModel):
    """Settings of a kind that has none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """A method of building a benchmark.

    Attributes:
        paper: the paper and the sections that it follows.
        instances: yields what stages start from, in seeded order.
        stages: turn an instance into items.
        filters: accept or reject each item, in this order.
        write: writes the paper's own format, which `ragbed run KIND DIR` reads.
        max_items: maximum number of items from one instance.
        quota: returns an item's group, and the maximum number of items to keep of that group.
        notes: returns notes for the card.
        options: settings of this kind only.
        chunker, formats: how to cut the index that items are checked against.
        asks_judges, needs_writer, asks_solvers: which roles need a model.
    """

    name: str
    paper: str
    instances: Callable[[Library], Iterator[Item]]
    stages: tuple[Stage, ...]
    filters: tuple[Stage, ...]
    write: Callable[[Sequence[Item], Library, Path], None]
    max_items: int = 1
    quota: Callable[[Item, Library], tuple[str, int] | None] = lambda item, library: None
    notes: Callable[[Sequence[Outcome], Library], Sequence[str]] = lambda outcomes, library: ()
    options: type[BaseModel] = NoOptions
    chunker: ChunkerSettings = field(default_factory=lambda: Sections(target=800, largest=1_000))
    formats: tuple[Format, ...] = ("plain",)
    asks_judges: bool = False
    needs_writer: bool = True
    asks_solvers: bool = True

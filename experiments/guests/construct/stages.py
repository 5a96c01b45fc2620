"""An item, a question under construction, and the steps that make it or let it go."""
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
    from ragbed.experiments.guests.construct.play import Outcome
    from ragbed.experiments.question import Benchmark
    from ragbed.retrieval.types import Embedder

_LOWER = re.compile(r"(?<![\w-])[a-zà-öø-ÿ][\w’'-]*")


def number_lines(lines: Mapping[int, Evidence]) -> str:
    """Return spans as prompts show them: a line each, which begins with its number, as in `[7] ...`."""
    return "\n".join(f"[{number}] {' '.join(one.text.split())}" for number, one in lines.items())


def select_spans(numbers: Iterable[int], lines: Mapping[int, Evidence]) -> tuple[Evidence, ...]:
    """Return the spans that a writer names by their numbers, each once; for a number that it was not shown, a span from
    0 to 0, which the gate of the spans tells."""
    other = next(iter(lines.values()))
    return tuple(lines[number] if number in lines else replace(other, start=0, end=0, text=f"[{number}]")
                 for number in dict.fromkeys(numbers))


class Dropped(Exception):  # it ends an item, not the construction
    """Ends an item at the step that raises it; its text is the reason, in a few words."""


@dataclass(frozen=True)
class Library:
    """What items are made from and checked against."""

    documents: Mapping[str, Document]  # by id
    chunks: Sequence[Chunk]  # of the whole index, in the order of the documents
    solvers: int  # how many there are: their roles are `solver 1` and so on
    judges: int  # likewise
    seed: int
    options: Any  # the kind's own settings
    embedder: Callable[[], Embedder]  # opened when it is first asked for
    benchmark: Benchmark | None = None  # that items are made from, in the place of documents
    has_writer: bool = False  # whether there is a writer

    @cached_property
    def guarded_index(self) -> GuardedIndex:
        """The chunks of the whole index, as the guard of the hard negatives looks through them."""
        return GuardedIndex(self.chunks)

    def rng(self, *parts: str) -> random.Random:
        """Return a generator seeded by the construction's seed and these parts, such as an item's id."""
        return random.Random(":".join((str(self.seed), *parts)))

    def document(self, item: Item, id: str) -> Document | None:
        """Return a document that the item brings, or one that all share; None where there is none."""
        return next((one for one in item.documents if one.id == id), self.documents.get(id))

    @cached_property
    def lowercase_words(self) -> frozenset[str]:
        """The words that some chunk writes in lower case: by itself none of them is a name."""
        return frozenset(word for chunk in self.chunks for word in _LOWER.findall(chunk.content))


StageRecipe = Generator[Asked, Any, Any]
Step = Callable[[Item, Library], Any]
"""A function of an item, or a recipe over it, that yields searches and calls. A stage returns the item as it goes on,
or a list of items that are made of it; a gate returns why the item is lost, in a few words, or None, or the item with
what was measured. Either may raise Dropped."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a construction, or a gate."""

    name: str  # as the yield table has it
    step: Step
    calls: int = 0  # that it may make for one item: the machine ends an item that asks for more


class NoOptions(BaseModel):
    """The settings of a kind that has none of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Kind:
    """A way of building a benchmark."""

    name: str
    paper: str  # that it follows, with its section
    instances: Callable[[Library], Iterator[Item]]  # what stages start from, in seeded order; may end
    stages: tuple[Stage, ...]  # that turn an instance into items
    filters: tuple[Stage, ...]  # that decide over each item, in this order
    write: Callable[[Sequence[Item], Library, Path], None]  # the paper's own format, which `ragbed run KIND DIR` reads
    max_items: int = 1  # items that one instance can become
    quota: Callable[[Item, Library], tuple[str, int] | None] = lambda item, library: None  # and how many are kept of it
    notes: Callable[[Sequence[Outcome], Library], Sequence[str]] = lambda played, library: ()  # for the card
    options: type[BaseModel] = NoOptions  # the settings of this kind alone
    # How the index that items are checked against is cut.
    chunker: ChunkerSettings = field(default_factory=lambda: Sections(target=800, largest=1_000))
    formats: tuple[Format, ...] = ("plain",)
    asks_judges: bool = False  # whether it asks judges
    needs_writer: bool = True  # whether it asks a writer; else `--writer` may be left out
    asks_solvers: bool = True  # likewise of solvers

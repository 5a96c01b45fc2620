"""Match a question's evidence with its gold, and apply perturbations to the evidence."""
from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.conditions import Perturbation, apply_perturbation, draw_lazily
from ragbed.experiments.metrics import contains_answer
from ragbed.experiments.question import Benchmark, Gold, Question, unique_gold
from ragbed.experiments.record import Level
from ragbed.strategies.normalizing import normalize_answer
from ragbed.strategies.types import Passage

SourceOf = Callable[[str], str]
LEVELS: tuple[Level, ...] = ("chunk", "span", "page", "document", "words")


@dataclass(frozen=True, slots=True)
class GoldView:
    """Which gold a question's evidence contains.

    Attributes:
        levels: for each evidence number, the finest level at which it matches gold, or None.
        hits: for each evidence number, the indices of the gold items that it holds.
        total: the number of distinct gold items.
        grades: their relevance; empty if all are 1.
        repeats: if all gold is whole documents, evidence numbers of a document's chunks after its first. They take no
            rank, since documents are ranked by their best chunk (MaxP: Dai and Callan, "Deeper Text Understanding for
            IR with Contextual Neural Language Modeling", SIGIR 2019).
    """

    levels: Mapping[int, Level | None]
    hits: Mapping[int, frozenset[int]]
    total: int
    grades: tuple[int, ...] = ()
    repeats: frozenset[int] = frozenset()

    @property
    def in_view(self) -> frozenset[int]:
        """Indices of the gold items that at least one passage holds."""
        return frozenset[int]().union(*self.hits.values())

    def gold_among(self, numbers: Iterable[int]) -> bool | None:
        """Return whether any passage of these numbers holds gold; None if the question has no gold."""
        return any(self.hits[number] for number in numbers) if self.total else None


def match(gold: Sequence[Gold], evidence: Iterable[Passage], source_of: SourceOf,
          itself: str | None = None, placed: Mapping[int, Level | None] = MappingProxyType({})) -> GoldView:
    """Find which gold items each passage contains.

    A passage and a gold item are compared at the finest level that both have: chunk, span, page or document. Gold names
    a document by its id or source path.

    Args:
        itself: the id of the document that is itself the query; it takes no rank.
        placed: already known levels by evidence number; None for a passage that cannot be gold.
    """
    items = unique_gold(gold)
    whole = bool(items) and all((item.chunk, item.start, item.page) == (None, None, None) for item in items)
    levels: dict[int, Level | None] = {}
    hits: dict[int, frozenset[int]] = {}
    repeats: set[int] = set()
    seen: set[str] = set()
    for passage in evidence:
        if whole and (passage.chunk.document in seen or passage.chunk.document == itself):
            repeats.add(passage.number)
        seen.add(passage.chunk.document)
        source = source_of(passage.chunk.document)
        found = {index: level for index, item in enumerate(items) if placed.get(passage.number, "chunk") is not None
                 and (level := _level(item, passage.chunk, source)) is not None}
        level = min(found.values(), key=LEVELS.index, default=None)
        levels[passage.number] = level and placed.get(passage.number, level)
        hits[passage.number] = frozenset(found)
    grades = tuple(item.relevance for item in items)
    return GoldView(levels, hits, len(items), grades if set(grades) - {1} else (), frozenset(repeats))


def _level(gold: Gold, chunk: Chunk, source: str) -> Level | None:
    if gold.chunk is not None and gold.chunk == chunk.id:
        return "chunk"
    if gold.document not in (chunk.document, source):
        return None
    known = chunk.start < chunk.end  # a pipeline's context may have no span
    if gold.start is not None and gold.end is not None and gold.format == chunk.format and known:
        return "span" if chunk.start < gold.end and gold.start < chunk.end else None
    if gold.page is not None and chunk.pages is not None:
        return "page" if chunk.pages[0] <= gold.page <= chunk.pages[1] else None
    return None if gold.chunk is not None and gold.start is None and gold.page is None else "document"


def gold_by_source(gold: Iterable[Gold], own: Mapping[str, Document]) -> tuple[Gold, ...]:
    """Return the gold in a form that matches an index. Gold in the benchmark's own documents (`own`, by id) becomes a
    source path."""
    return tuple(Gold(own[item.document].source, relevance=item.relevance) if item.document in own else item
                 for item in gold)


def missing_documents(gold: Iterable[Gold], known: Collection[str]) -> tuple[str, ...]:
    """Return the gold documents that match neither the id nor the source path of an indexed document. They are probably
    mistyped."""
    named = (item.document for item in gold if item.document)
    return tuple(name for name in dict.fromkeys(named) if name not in known)


class Places:
    """Look up chunks by the names that gold items use, instead of comparing every chunk with every item."""

    def __init__(self, chunks: Sequence[Chunk], source_of: SourceOf) -> None:
        self.chunks = chunks
        self._source_of = source_of
        self._rows: dict[str, list[int]] = defaultdict(list)
        for row, chunk in enumerate(chunks):
            for name in {chunk.id, chunk.document, source_of(chunk.document)}:
                self._rows[name].append(row)

    def gold(self, gold: Sequence[Gold]) -> tuple[Chunk, ...]:
        """Return the chunks that are gold at any level, in order."""
        named = {name for item in gold for name in (item.chunk, item.document) if name}
        rows = sorted({row for name in named for row in self._rows.get(name, ())})
        view = match(gold, (Passage(row, self.chunks[row]) for row in rows), self._source_of)
        return tuple(self.chunks[row] for row in rows if view.levels[row] is not None)


class ShownTexts:
    """The chunks shown so far, to check whether another chunk adds anything."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._texts: set[str] = set()
        self._spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for chunk in chunks:
            self.add(chunk)

    def lacks(self, chunk: Chunk) -> bool:
        """Return whether neither the chunk's text nor any part of its span has been shown."""
        spans = self._spans.get((chunk.document, chunk.format), ())
        return chunk.content not in self._texts and not any(
            chunk.start < end and start < chunk.end for start, end in spans)

    def add(self, chunk: Chunk) -> None:
        self._texts.add(chunk.content)
        self._spans.setdefault((chunk.document, chunk.format), []).append((chunk.start, chunk.end))


PLACING = ("no_table", "negatives", "pool", "gold_at")  # kinds of notes on evidence that could not be placed
_TOO_COMMON = frozenset({"yes", "no", "true", "false", "noanswer"})


@dataclass(frozen=True, slots=True)
class Changed:
    """Evidence after a perturbation, with notes for its record."""

    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


class Perturber:
    """Perturb the evidence of a benchmark's questions. Random draws are seeded by question, so that every strategy sees
    the same evidence."""

    def __init__(self, benchmark: Benchmark, source_of: SourceOf) -> None:
        self._benchmark, self._source_of = benchmark, source_of

    def changed(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                seed: int, more: Sequence[Chunk] = ()) -> Changed:
        """Return the chunks after the perturbation.

        Negatives are taken first from the benchmark's own, then from the question's chunks that are not shown, then at
        random from other questions and from `more`. A drawn chunk contains no gold answer and is not from a document of
        the question. A mined benchmark uses only its mined negatives, the miners in turn (`Question.interleave_mined`),
        so that all doses of a dose-response curve have the same kind of negatives.

        Args:
            gold: in the form that matches the chunks.
            seed: seed of the order and of the random draws.
            more: chunks of an index that may be drawn as negatives.

        Returns:
            the chunks, with the note `negatives:3 of 5` if there are too few negatives, and `gold_at:3 of 5` if there
            are too few chunks for the position of the gold.
        """
        if not change.moves:
            return Changed(tuple(chunks))
        notes: list[str] = []
        if change.table:
            chunks = () if question.table is None else (question.table,)
            notes += [] if chunks else ["no_table"]
        golden = self._golden(gold, chunks)
        negatives = self._negatives(change, question, chunks, gold, seed, more) if change.negatives else []
        notes += _short("negatives", len(negatives), change.negatives)
        order = random.Random(f"{seed}:{question.id}:order")
        after = apply_perturbation(chunks, change, golden, negatives, order)
        first = next((at for at, chunk in enumerate(after, start=1) if chunk.id in golden), change.gold_at)
        if first < change.gold_at:
            notes.append(f"gold_at:{first} of {change.gold_at}")
        return Changed(after, tuple(notes))

    def searched(self, change: Perturbation, question: Question, own: Sequence[Chunk], seed: int) -> Changed:
        """Return the chunks to search under `pool`: negatives, and the gold among `own` unless it is dropped. `own` are
        the chunks that the question searches without `pool`."""
        golden = self._golden(question.gold, own)
        gold = [chunk for chunk in own if chunk.id in golden]
        negatives = self._negatives(change, question, gold, question.gold, seed, own)
        kept = [] if change.drop_gold else gold
        return Changed((*kept, *negatives), tuple(_short("pool", len(negatives), change.pool)))

    def _golden(self, gold: Sequence[Gold], chunks: Sequence[Chunk]) -> set[str]:
        levels = match(gold, map(Passage, range(len(chunks)), chunks), self._source_of).levels
        return {chunk.id for at, chunk in enumerate(chunks) if levels[at] is not None}

    def _negatives(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                   seed: int, more: Sequence[Chunk]) -> list[Chunk]:
        shown = ShownTexts(chunks)
        every = (*question.gold, *gold)
        chosen: list[Chunk] = []
        for chunk in self._candidates(change, question, seed, more):
            if shown.lacks(chunk) and not self._golden(every, [chunk]):
                shown.add(chunk)
                chosen.append(chunk)
                if len(chosen) == (change.negatives or change.pool):
                    break
        return chosen

    def _candidates(self, change: Perturbation, question: Question, seed: int,
                    more: Sequence[Chunk]) -> Iterator[Chunk]:
        if change.sort or self._mined:
            brought = {chunk.id: chunk for chunk in (*question.provided, *question.negatives)}
            yield from (brought[id] for id in question.interleave_mined(change.sort) if id in brought)
            return
        yield from question.negatives
        if not change.table:  # a table has the same content
            yield from question.provided
            yield from question.pool
        own = {chunk.document for chunk in question.chunks}
        answers = revealing_answers(question)
        rng = random.Random(f"{seed}:{question.id}:negatives")
        for chunk in chain(draw_lazily(self._others, rng), draw_lazily(more, rng)):
            text = normalize_answer(chunk.content) if answers and chunk.document not in own else ""
            if chunk.document not in own and not any(contains_answer(text, answer) for answer in answers):
                yield chunk

    @cached_property
    def _others(self) -> list[Chunk]:
        return self._benchmark.all_chunks

    @cached_property
    def _mined(self) -> bool:
        return self._benchmark.is_mined


def _short(word: str, found: int, wanted: int) -> list[str]:
    return [f"{word}:{found} of {wanted}"] if found < wanted else []


def revealing_answers(question: Question) -> tuple[str, ...]:
    """Return the normalised gold answers that a chunk gives away by containing them; for an option, its text. `yes`,
    single digits and single letters are omitted as too common."""
    options = dict(question.options)
    answers = (normalize_answer(options.get(answer, answer)) for answer in question.answers)
    return tuple(answer for answer in answers if len(answer) > 1 and answer not in _TOO_COMMON)

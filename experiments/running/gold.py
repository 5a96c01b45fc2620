"""Match a question's evidence with its gold, and apply perturbations to the evidence."""
from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from ragbed.documents.types import Chunk, Document
from ragbed.experiments.conditions import Perturbation, apply_perturbation, draw_lazily
from ragbed.experiments.metrics.matching import contains_answer
from ragbed.experiments.question import Benchmark, Gold, Question, unique_gold
from ragbed.experiments.record import Level
from ragbed.strategies.normalizing import normalize_answer, normalize_values
from ragbed.strategies.token_estimates import estimate_tokens
from ragbed.strategies.types import Passage

SourceOf = Callable[[str], str]
_MOST_GOLD = 5  # passages of a page or document
_SHARE, _MIN_WORDS = 0.4, 3
LEVELS: tuple[Level, ...] = ("chunk", "span", "page", "document", "words")


@dataclass(frozen=True, slots=True)
class GoldView:
    """Shows which gold a question's evidence contains.

    Attributes:
        levels: for each evidence number, the finest level at which it matches gold, or None.
        hits: for each evidence number, the indices of the gold items that the passage contains.
        total: the number of distinct gold items.
        grades: their relevance; empty if all are 1.
        repeats: if all gold is whole documents, evidence numbers of a document's chunks after the first. These get no
            rank, since a document is ranked by its best chunk (MaxP: Dai and Callan, "Deeper Text Understanding for IR
            with Contextual Neural Language Modeling", SIGIR 2019).
    """

    levels: Mapping[int, Level | None]
    hits: Mapping[int, frozenset[int]]
    total: int
    grades: tuple[int, ...] = ()
    repeats: frozenset[int] = frozenset()

    @property
    def in_view(self) -> frozenset[int]:
        """Return the indices of the gold items that at least one passage contains."""
        return frozenset[int]().union(*self.hits.values())

    def gold_among(self, numbers: Iterable[int]) -> bool | None:
        """Return whether any passage with these numbers contains gold; None if the question has no gold."""
        return any(self.hits[number] for number in numbers) if self.total else None


_NONE: frozenset[int] = frozenset()


def match(gold: Sequence[Gold], evidence: Iterable[Passage], source_of: SourceOf,
          itself: str | None = None, placed: Mapping[int, Level | None] = MappingProxyType({})) -> GoldView:
    """Find which gold items each passage contains.

    A passage and a gold item are compared at the finest level that both have: chunk, span, page or document. Gold names
    a document by its id or source path.

    Args:
        itself: the id of the document that is the query itself; it gets no rank.
        placed: already known levels by evidence number; None for a passage that cannot be gold.
    """
    items = unique_gold(gold)
    whole = bool(items) and all((item.chunk, item.start, item.page) == (None, None, None) for item in items)
    levels: dict[int, Level | None] = {}
    hits: dict[int, frozenset[int]] = {}
    repeats: set[int] = set()
    seen: set[str] = set()
    named: dict[str, list[int]] = defaultdict(list)  # most passages have no gold of their name
    for index, item in enumerate(items):
        for name in {item.chunk, item.document} - {None}:
            named[str(name)].append(index)
    for passage in evidence:
        number, chunk = passage.number, passage.chunk
        if whole and (chunk.document in seen or chunk.document == itself):
            repeats.add(number)
        seen.add(chunk.document)
        source = source_of(chunk.document)
        if not (chunk.id in named or chunk.document in named or source in named):
            levels[number], hits[number] = None, _NONE
            continue
        near = {index for name in (chunk.id, chunk.document, source) if name in named
                for index in named[name]} if placed.get(number, "chunk") is not None else ()
        found = {index: level for index in sorted(near)
                 if (level := _level(items[index], chunk, source)) is not None}
        level = min(found.values(), key=LEVELS.index) if found else None
        levels[number] = level and placed.get(number, level)
        hits[number] = frozenset(found)
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
    """Return the gold in a form that matches an index. For gold in the benchmark's own documents (`own`, by id), the
    document id is replaced by its source path."""
    return tuple(Gold(own[item.document].source, relevance=item.relevance, quotes=item.quotes)
                 if item.document in own else item for item in gold)


def gold_by_span(gold: Iterable[Gold], chunks: Mapping[str, Chunk]) -> tuple[Gold, ...]:
    """Return the gold in a form that matches documents that were chunked again. A gold chunk of the benchmark
    (`chunks`, by id) becomes its span of the document."""
    return tuple(replace(item, document=chunk.document, format=chunk.format, start=chunk.start, end=chunk.end)
                 if item.start is None and item.chunk is not None and (chunk := chunks.get(item.chunk)) else item
                 for item in gold)


def missing_documents(gold: Iterable[Gold], known: Collection[str]) -> tuple[str, ...]:
    """Return the gold documents, probably mistyped, that match no id or source path of an indexed document."""
    named = (item.document for item in gold if item.document)
    return tuple(name for name in dict.fromkeys(named) if name not in known)


class Places:
    """Look up chunks by the names that gold items use, instead of comparing every chunk with every item."""

    def __init__(self, chunks: Sequence[Chunk], source_of: SourceOf) -> None:
        self.chunks = chunks
        self._source_of = source_of
        self._texts: dict[str, str] = {}
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

    def best_gold(self, gold: Sequence[Gold], question: Question) -> Changed:
        """Return the chunks that the condition `gold` shows, in order.

        Gold that names only a page or a document is narrowed to its passages with the gold's quotes or, if there are
        none, with an answer: at most five, see `_with_words`. If no passage has them, the whole page or document is
        shown. A document of more than five passages is noted with its size in tokens.
        """
        shown: set[str] = set()
        whole: dict[str, Chunk] = {}
        for item in unique_gold(gold):
            chunks = self.gold([item])
            if item.chunk is None and item.start is None and len(chunks) > 1:
                found = (self._with_words(chunks, item.quotes, question.text, "")
                         or self._with_words(chunks, _answer_texts(question), question.text, question.text))
                if not found and item.page is None and len(chunks) > _MOST_GOLD:
                    whole |= {chunk.id: chunk for chunk in chunks}
                chunks = found or chunks
            shown |= {chunk.id for chunk in chunks}
        size = sum(estimate_tokens(chunk.content) for chunk in whole.values())
        return Changed(tuple(chunk for chunk in self.gold(gold) if chunk.id in shown),
                       (f"{GOLD_WHOLE}:{size}",) if whole else ())

    def _with_words(self, chunks: Sequence[Chunk], texts: Iterable[str], question: str,
                    known: str) -> tuple[Chunk, ...]:
        """Return the chunks with one of the texts: literally, with numbers and dates compared by value, or two fifths
        of its words besides those of `known` (of one or two words, all), weighted by their rarity in the chunks. Five
        are kept: those that share the most words with the question or, without a literal match, with the text."""
        values = [self._values(chunk) for chunk in chunks]
        words = [set(value.split()) for value in values]
        kept: set[int] = set()
        for text in map(normalize_values, texts):
            literal = [at for at, value in enumerate(values) if contains_answer(value, text)]
            own = set(text.split()) - set(normalize_values(known).split())
            shares = _share_words(words, set(normalize_values(question).split()) if literal else own)
            least = _SHARE if len(own) >= _MIN_WORDS else 1 - 1e-9
            found = literal or [at for at, share in enumerate(shares) if share >= least]
            kept.update(sorted(found, key=lambda at: -shares[at])[:_MOST_GOLD])
        return tuple(chunk for at, chunk in enumerate(chunks) if at in kept)

    def _values(self, chunk: Chunk) -> str:
        if chunk.id not in self._texts:
            self._texts[chunk.id] = normalize_values(chunk.content)
        return self._texts[chunk.id]


def _share_words(texts: Sequence[set[str]], wanted: Collection[str]) -> list[float]:
    """Return the share of the wanted words that each text has. A word of few texts weighs more."""
    weights = {word: math.log(1 + len(texts) / (sum(word in text for text in texts) or 0.5)) for word in wanted}
    total = sum(weights.values()) or 1.0
    return [sum(weights[word] for word in sorted(weights) if word in text) / total for text in texts]


class ShownTexts:
    """The chunks shown so far. Tells whether another chunk adds anything."""

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


GOLD_WHOLE = "gold_whole"  # note on a question whose gold is shown as whole documents, with their tokens
# Prefixes of notes on evidence that could not be placed.
PLACING = ("no_table", "negatives", "pool", "gold_at", GOLD_WHOLE)
_TOO_COMMON = frozenset({"yes", "no", "true", "false", "noanswer"})


@dataclass(frozen=True, slots=True)
class Changed:
    """Evidence after a perturbation, with notes for its record."""

    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


class Perturber:
    """Perturbs the evidence of questions. Draws are seeded by question, so every strategy sees the same evidence."""

    def __init__(self, benchmark: Benchmark, source_of: SourceOf) -> None:
        self._benchmark, self._source_of = benchmark, source_of

    def changed(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                seed: int, more: Sequence[Chunk] = ()) -> Changed:
        """Return the chunks after the perturbation.

        Negatives are taken first from the benchmark's own, then from the question's chunks that are not shown, then at
        random from other questions and from `more`. A drawn chunk contains no gold answer and is not from a document of
        the question. If the benchmark has mined negatives, only these are used, from each miner in turn
        (`Question.interleave_mined`). So all doses of a dose-response curve have the same kind of negatives.

        Args:
            gold: the gold, in the form that matches the chunks.
            seed: seed for shuffling and for random draws.
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
        golden = self._gold_ids(gold, chunks)
        negatives = self._negatives(change, question, chunks, gold, seed, more) if change.negatives else []
        notes += _shortage_note("negatives", len(negatives), change.negatives)
        order = random.Random(f"{seed}:{question.id}:order")
        after = apply_perturbation(chunks, change, golden, negatives, order)
        first = next((at for at, chunk in enumerate(after, start=1) if chunk.id in golden), change.gold_at)
        if first < change.gold_at:
            notes.append(f"gold_at:{first} of {change.gold_at}")
        return Changed(after, tuple(notes))

    def searched(self, change: Perturbation, question: Question, own: Sequence[Chunk], seed: int) -> Changed:
        """Return the chunks to search with the perturbation `pool`: negatives, and the gold among `own` unless it is
        dropped. `own` are the chunks that the question would search otherwise."""
        golden = self._gold_ids(question.gold, own)
        gold = [chunk for chunk in own if chunk.id in golden]
        negatives = self._negatives(change, question, gold, question.gold, seed, own)
        kept = [] if change.drop_gold else gold
        return Changed((*kept, *negatives), tuple(_shortage_note("pool", len(negatives), change.pool)))

    def _gold_ids(self, gold: Sequence[Gold], chunks: Sequence[Chunk]) -> set[str]:
        levels = match(gold, map(Passage, range(len(chunks)), chunks), self._source_of).levels
        return {chunk.id for at, chunk in enumerate(chunks) if levels[at] is not None}

    def _negatives(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                   seed: int, more: Sequence[Chunk]) -> list[Chunk]:
        shown = ShownTexts(chunks)
        every = (*question.gold, *gold)
        chosen: list[Chunk] = []
        for chunk in self._candidates(change, question, seed, more):
            if shown.lacks(chunk) and not self._gold_ids(every, [chunk]):
                shown.add(chunk)
                chosen.append(chunk)
                if len(chosen) == (change.negatives or change.pool):
                    break
        return chosen

    def _candidates(self, change: Perturbation, question: Question, seed: int,
                    more: Sequence[Chunk]) -> Iterator[Chunk]:
        if change.sort or self._mined_ids:
            brought = {chunk.id: chunk for chunk in (*question.provided, *question.negatives)}
            yield from (brought[id] for id in question.interleave_mined(change.sort) if id in brought)
            return
        yield from question.negatives
        if not change.table:  # a table already has the content of these chunks
            yield from question.provided
            yield from question.pool
        own = {chunk.document for chunk in question.chunks}
        answers = revealing_answers(question)
        rng = random.Random(f"{seed}:{question.id}:negatives")
        for chunk in chain(draw_lazily(self._other_chunks, rng), draw_lazily(more, rng)):
            text = normalize_answer(chunk.content) if answers and chunk.document not in own else ""
            if chunk.document not in own and not any(contains_answer(text, answer) for answer in answers):
                yield chunk

    @cached_property
    def _other_chunks(self) -> list[Chunk]:
        return self._benchmark.all_chunks

    @cached_property
    def _mined_ids(self) -> bool:
        return self._benchmark.is_mined


def _shortage_note(word: str, found: int, wanted: int) -> list[str]:
    return [f"{word}:{found} of {wanted}"] if found < wanted else []


def revealing_answers(question: Question) -> tuple[str, ...]:
    """Return the normalised gold answers, or the text of the right option. A chunk that contains one reveals the
    answer. `yes`, single digits and single letters are omitted because they are too common."""
    return tuple(map(normalize_answer, _answer_texts(question)))


def _answer_texts(question: Question) -> list[str]:
    options = dict(question.options)
    answers = (options.get(answer, answer) for answer in question.answers)
    return [answer for answer in answers if len(normalize_answer(answer)) > 1
            and normalize_answer(answer) not in _TOO_COMMON]

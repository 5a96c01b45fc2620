"""Perturbing a question's evidence: which chunks are gold, and which negatives are added.

What stands among a question's chunks already: no text comes twice, nor a part of one.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from documents.types import Chunk
from experiments.metrics import holds
from experiments.question import Benchmark, Gold, Question
from experiments.running.gold import match
from retrieval.conditions import Perturbation, arranged
from retrieval.mining.miners import drawn
from strategies.normalising import normalize_answer
from strategies.types import Passage


class Shown:
    """Chunks that are shown, and whether another would say anything new."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._texts: set[str] = set()
        self._spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for chunk in chunks:
            self.add(chunk)

    def lacks(self, chunk: Chunk) -> bool:
        """Whether neither the chunk's text nor any part of its span is there."""
        spans = self._spans.get((chunk.document, chunk.format), ())
        return chunk.content not in self._texts and not any(
            chunk.start < end and start < chunk.end for start, end in spans)

    def add(self, chunk: Chunk) -> None:
        self._texts.add(chunk.content)
        self._spans.setdefault((chunk.document, chunk.format), []).append((chunk.start, chunk.end))


PLACING = ("no_table", "negatives", "pool", "gold_at")  # kinds of the notes on what could not be placed
_SAID_ANYWHERE = frozenset({"yes", "no", "true", "false", "noanswer"})


@dataclass(frozen=True, slots=True)
class Changed:
    """Evidence after a perturbation, and what its record has to say of it."""

    chunks: tuple[Chunk, ...]
    notes: tuple[str, ...] = ()


class Perturber:
    """Perturbs the evidence of a benchmark's questions, seeded by question: every strategy sees the same."""

    def __init__(self, benchmark: Benchmark, source_of: Callable[[str], str]) -> None:
        self._benchmark, self._source_of = benchmark, source_of

    def changed(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                seed: int, more: Sequence[Chunk] = ()) -> Changed:
        """The chunks after the perturbation.

        Negatives are, in this order: those of the benchmark, the question's own chunks that are not shown, and drawn
        ones: of other questions, then of `more`. A drawn one holds no gold answer and comes from none of the
        question's own documents. Of a benchmark that was mined they are the mined ones alone, in turns of the miners
        (`Question.in_turns`): beyond these a curve over doses would go on with others than it began with. Where fewer
        can be had than asked for, a note `negatives:3 of 5` says so, and where there are too few chunks for the gold's
        position, `gold_at:3 of 5`, where it stands.

        Args:
            gold: as the chunks can be matched with it.
            seed: of the order and of the draw.
            more: chunks of an index, to draw from.
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
        after = arranged(chunks, change, golden, negatives, order)
        first = next((at for at, chunk in enumerate(after, start=1) if chunk.id in golden), change.gold_at)
        if first < change.gold_at:
            notes.append(f"gold_at:{first} of {change.gold_at}")
        return Changed(after, tuple(notes))

    def searched(self, change: Perturbation, question: Question, own: Sequence[Chunk], seed: int) -> Changed:
        """What is searched under `pool`: the gold of the question's chunks, unless it is dropped, and negatives.

        Args:
            own: the chunks that the question is searched over without it.
        """
        golden = self._golden(question.gold, own)
        gold = [chunk for chunk in own if chunk.id in golden]
        negatives = self._negatives(change, question, gold, question.gold, seed, own)
        kept = [] if change.drop_gold else gold
        return Changed((*kept, *negatives), tuple(_short("pool", len(negatives), change.pool)))

    def _golden(self, gold: Sequence[Gold], chunks: Sequence[Chunk]) -> set[str]:
        """Ids of the chunks that are gold at any level."""
        levels = match(gold, map(Passage, range(len(chunks)), chunks), self._source_of).levels
        return {chunk.id for at, chunk in enumerate(chunks) if levels[at] is not None}

    def _negatives(self, change: Perturbation, question: Question, chunks: Sequence[Chunk], gold: Sequence[Gold],
                   seed: int, more: Sequence[Chunk]) -> list[Chunk]:
        shown = Shown(chunks)
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
            brought = {chunk.id: chunk for chunk in (*question.given, *question.negatives)}
            yield from (brought[id] for id in question.in_turns(change.sort) if id in brought)
            return
        yield from question.negatives
        if not change.table:  # the table says what they say
            yield from question.given
            yield from question.pool
        own = {chunk.document for chunk in question.chunks}
        answers = telling(question)
        rng = random.Random(f"{seed}:{question.id}:negatives")
        for chunk in chain(drawn(self._others, rng), drawn(more, rng)):
            if chunk.document not in own and not _tells(chunk, answers):
                yield chunk

    @cached_property
    def _others(self) -> list[Chunk]:
        return self._benchmark.every_chunk

    @cached_property
    def _mined(self) -> bool:
        return self._benchmark.is_mined


def _short(word: str, found: int, wanted: int) -> list[str]:
    """The note on negatives that could not be had."""
    return [f"{word}:{found} of {wanted}"] if found < wanted else []


def telling(question: Question) -> tuple[str, ...]:
    """The gold answers, normalised, that a chunk which holds them may tell; of an option, its text.

    `yes`, a number of one digit or a lone letter stands anywhere and tells nothing.
    """
    options = dict(question.options)
    answers = (normalize_answer(options.get(answer, answer)) for answer in question.answers)
    return tuple(answer for answer in answers if len(answer) > 1 and answer not in _SAID_ANYWHERE)


def _tells(chunk: Chunk, answers: Collection[str]) -> bool:
    """Whether an answer stands in the chunk."""
    text = normalize_answer(chunk.content) if answers else ""
    return any(holds(text, answer) for answer in answers)

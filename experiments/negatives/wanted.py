"""What each question is to have mined: what is gold and left out, what it keeps, and how many it lacks."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from documents.types import Chunk
from experiments.evidence.gold import by_source, match
from experiments.evidence.placing import Places, SourceOf
from experiments.negatives.settings import MiningSettings
from experiments.negatives.types import Reason, Rejected, Wanted
from experiments.question import Benchmark, Gold, Question
from retrieval.mining import Asked
from strategies.types import Passage

MOST_GOLD = 5
"""Chunks that a question keeps of gold that is known by page or document alone; CReSt has one to five."""
_COARSE: dict[str, Reason] = {"page": "gold_page", "document": "gold_document"}


@dataclass(frozen=True, slots=True)
class Candidates:
    """Where negatives are found.

    Attributes:
        chunks: of the collection.
        indexed: whether they are an index's, which knows the benchmark's documents by their source alone.
        nearest: the chunks that are nearest to a query, best first.
    """

    chunks: Sequence[Chunk]
    source_of: SourceOf
    indexed: bool
    nearest: Callable[[str, Sequence[Chunk]], Sequence[Chunk]]


def wanted_of(benchmark: Benchmark, candidates: Candidates, settings: MiningSettings) -> Iterator[Wanted]:
    """Each question with what is to be mined for it, in order."""
    places = Places(candidates.chunks, candidates.source_of)
    shared = Places(benchmark.shared, candidates.source_of)
    for question in benchmark.questions:
        own = Places(question.own, candidates.source_of).gold(question.gold) or shared.gold(question.gold)
        gold = question.gold + (by_source(question.gold, benchmark.documents) if candidates.indexed else ())
        left_out = places.gold(gold)
        coarse = tuple(_coarse(gold, left_out, candidates.source_of))
        shown = own or left_out
        if coarse and len(shown) > MOST_GOLD:
            shown = tuple(candidates.nearest(question.text, left_out)[:MOST_GOLD])
        yield _wanted(question, tuple(dict.fromkeys((*own, *left_out))), shown, coarse, settings)


def _wanted(question: Question, gold: tuple[Chunk, ...], shown: tuple[Chunk, ...], coarse: tuple[Rejected, ...],
            settings: MiningSettings) -> Wanted:
    keeps_own = bool(question.given) and (settings.keep or (question.answerable and not gold))
    kept = question.given if keeps_own else shown
    out = frozenset(chunk.id for chunk in (*gold, *kept))
    asked = Asked(question.id, question.text, gold or question.given, out)
    fill = max(0, settings.fill - len(kept))
    return Wanted(question, asked, kept, keeps_own, gold, fill, settings.per_question, coarse)


def _coarse(gold: Sequence[Gold], left_out: Sequence[Chunk], source_of: SourceOf) -> Iterator[Rejected]:
    levels = match(gold, map(Passage, range(len(left_out)), left_out), source_of).levels
    for row, chunk in enumerate(left_out):
        reason = _COARSE.get(levels[row] or "")
        if reason:
            yield Rejected(chunk, reason)

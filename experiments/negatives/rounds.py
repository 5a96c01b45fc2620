"""Mining in rounds: where the guard left a question short, the miners look deeper, until they find nothing more."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from documents.types import Chunk
from experiments.negatives.choosing import Scores, choose
from experiments.negatives.guard import Guard, Rarity
from experiments.negatives.types import Chosen, MiningSettings, Reason, Rejected, Wanted
from experiments.question import Benchmark, Question
from experiments.running.gold import Places, SourceOf, by_source, match
from retrieval.mining import Miner, MiningQuery
from retrieval.types import Hit, Progress, Scorer
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
    """Yield each question with what is to be mined for it: gold that is left out, what it keeps, how many it lacks."""
    places = Places(candidates.chunks, candidates.source_of)
    shared = Places(benchmark.shared, candidates.source_of)
    for question in benchmark.questions:
        own = Places(question.own, candidates.source_of).gold(question.gold) or shared.gold(question.gold)
        gold = question.gold + (by_source(question.gold, benchmark.documents) if candidates.indexed else ())
        left_out = places.gold(gold)
        levels = match(gold, map(Passage, range(len(left_out)), left_out), candidates.source_of).levels
        coarse = tuple(Rejected(chunk, reason) for row, chunk in enumerate(left_out)
                       if (reason := _COARSE.get(levels[row] or "")))
        shown = own or left_out
        if coarse and len(shown) > MOST_GOLD:
            shown = tuple(candidates.nearest(question.text, left_out)[:MOST_GOLD])
        yield _wanted(question, tuple(dict.fromkeys((*own, *left_out))), shown, coarse, settings)


def _wanted(question: Question, gold: tuple[Chunk, ...], shown: tuple[Chunk, ...], coarse: tuple[Rejected, ...],
            settings: MiningSettings) -> Wanted:
    keeps_own = bool(question.given) and (settings.keep or (question.answerable and not gold))
    kept = question.given if keeps_own else shown
    out = frozenset(chunk.id for chunk in (*gold, *kept))
    asked = MiningQuery(question.id, question.text, gold or question.given, out)
    fill = max(0, settings.fill - len(kept))
    return Wanted(question, asked, kept, keeps_own, gold, fill, settings.per_question, coarse)


_FIRST = 20  # candidates of each miner in the first round, and at least two for each that is wanted
_DEEPER = 4
_GROUP = 512  # questions that are mined for together

Found = Mapping[str, Sequence[Hit]]


class Rounds:
    """Mine for many questions.

    Args:
        miners: by name, in the order of their turns.
        scorer: the reranker, if any.
        rarity: of words among the candidates.
    """

    def __init__(self, settings: MiningSettings, miners: Mapping[str, Miner], scorer: Scorer | None,
                 rarity: Rarity) -> None:
        self._settings, self._miners, self._scorer, self._rarity = settings, miners, scorer, rarity

    def mined(self, wanted: Sequence[Wanted], progress: Progress) -> list[Chosen]:
        """Choose negatives for each question, in their order.

        Raises:
            UserError: a miner's or the reranker's model is not to be had.
        """
        chosen: list[Chosen] = []
        for first in range(0, len(wanted), _GROUP):
            chosen += self._group(wanted[first:first + _GROUP])
            progress("questions mined", len(chosen), len(wanted))
        return chosen

    def _group(self, wanted: Sequence[Wanted]) -> list[Chosen]:
        guards = {one.question.id: Guard(one, self._settings.thresholds, self._rarity) for one in wanted}
        scores = Scores(self._scorer)
        chosen: dict[str, Chosen] = {}
        depth = min(self._settings.depth, max(_FIRST, 2 * max((one.total for one in wanted), default=0)))
        left = list(wanted)
        while left:
            found = self._found([one.asked for one in left], depth)
            made = self._chosen(left, found, guards, scores)
            chosen |= {one.question.id: self._explained(one, made[one.question.id], found[one.question.id], depth)
                       for one in left}
            left = [one for one in left if len(chosen[one.question.id].chunks) < one.total
                    and chosen[one.question.id].why_short is None]
            depth = min(self._settings.depth, depth * _DEEPER)
        return [chosen[one.question.id] for one in wanted]

    def _explained(self, wanted: Wanted, chosen: Chosen, found: Found, depth: int) -> Chosen:
        """With why there are too few, where looking deeper brings no more."""
        if len(chosen.chunks) == wanted.total:
            return chosen
        if all(len(hits) < depth for hits in found.values()):
            return replace(chosen, why_short="no candidate is left")
        if depth == self._settings.depth:
            return replace(chosen, why_short=f"the first {depth} candidates of each miner were looked at")
        return chosen

    def _found(self, queries: Sequence[MiningQuery], depth: int) -> dict[str, Found]:
        by_miner = {name: miner.mine(queries, depth) for name, miner in self._miners.items()}
        return {one.key: {name: hits[place] for name, hits in by_miner.items()} for place, one in enumerate(queries)}

    def _chosen(self, wanted: Sequence[Wanted], found: Mapping[str, Found], guards: Mapping[str, Guard],
                scores: Scores) -> dict[str, Chosen]:
        """Choose again as long as a candidate that was taken had yet to be scored."""
        chosen: dict[str, Chosen] = {}
        left = {one.question.id: one for one in wanted}
        while left:
            chosen |= {id: choose(one, found[id], guards[id], scores) for id, one in left.items()}
            left = {id: left[id] for id in scores.score()}
        return chosen

"""Select the negatives of each question from what the miners find, past the guard."""
from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.hard_negatives.guard import Guard, RareWords, Reason, Rejected, Thresholds
from ragbed.experiments.guests.hard_negatives.miners import DRAWN, Miner, MiningQuery
from ragbed.experiments.judges.relevance import HELPS
from ragbed.experiments.question import Benchmark, Bucket, FoundBy, Mined, Question
from ragbed.experiments.running.gold import Places, ShownTexts, SourceOf, by_source, match
from ragbed.retrieval.hits import DECIMALS
from ragbed.retrieval.models import MINILM
from ragbed.retrieval.rerankers import JudgeReranker, RerankerSettings
from ragbed.retrieval.types import Hit, Progress, Scorer
from ragbed.strategies.types import Passage


class MiningSettings(BaseModel):
    """How negatives are mined.

    Attributes:
        miners: in the order of their turns (`retrieval.mining.miner_names`); the first alone fills questions up, as
            long as it finds any.
        per_question: how many further negatives each question is to have beside those that fill it up.
        fill: to how many chunks a question is filled up, its gold among them; 0 for not at all.
        keep: whether all chunks that a question was given stay; else only its gold does, and its other chunks are
            candidates like any. Where the gold of an answerable question is not known, they stay in any case.
        index: where candidates come from; None for the benchmark's own chunks.
        embedder: of the benchmark's own chunks; an index has its own.
        reranker: what must not score a candidate above the question's gold, or where it is a judge, which grades, not
            grade it 2 or 3; None for no such check.
        depth: how many candidates of each miner are looked at for a question at the most.
        seed: of what is drawn: the order of a question that was filled up, and the miner `random`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    miners: tuple[str, ...] = Field(default=("dense", "bm25", "same_document", "entity"), min_length=1)
    per_question: int = Field(default=10, ge=0)
    fill: int = Field(default=10, ge=0)
    keep: bool = False
    index: Path | None = None
    embedder: str = MINILM
    reranker: RerankerSettings | None = None
    thresholds: Thresholds = Thresholds()
    depth: int = Field(default=1_000, ge=1)
    seed: int = 0


def best_rank(found: Iterable[FoundBy]) -> int | None:
    """Return the best rank that any miner gave a candidate; None where it was only drawn, in no order."""
    return min((one.rank for one in found if one.miner != DRAWN), default=None)


@dataclass(frozen=True, slots=True)
class MiningTask:
    """A question with what is to be mined for it."""

    question: Question
    asked: MiningQuery
    kept: tuple[Chunk, ...]  # the chunks that it is shown in any case
    keeps_own: bool  # whether these are all that it was given
    gold: tuple[Chunk, ...]  # the gold chunks, as far as any are known: its own, and those of the index
    fill: int  # how many negatives fill it up
    further: int  # how many it is to have beside these
    coarse: tuple[Rejected, ...] = ()  # what is left out because gold is known no better than by page or document

    @property
    def total(self) -> int:
        return self.fill + self.further


@dataclass(frozen=True, slots=True)
class MiningResult:
    """What was mined for a question."""

    chunks: tuple[Chunk, ...]  # those that fill the question up, then the further ones
    fill: int  # how many of them fill it up
    miners: Mapping[str, str]  # by chunk id, whose turn took it
    found: Mapping[str, tuple[FoundBy, ...]]  # by chunk id, which miners found it
    rejected: tuple[Rejected, ...]
    why_short: str | None = None  # why there are fewer than wanted; None where there are not


def add_negatives(wanted: MiningTask, chosen: MiningResult, mined: Mapping[str, Mined], seed: int) -> Question:
    """Return the question with negatives among its chunks and further ones behind these.

    Where any fill it up, the order of its chunks is drawn, so that gold has no place of its own. The benchmark's own
    negatives, where they are kept, follow the mined ones; no dose has them, since nobody knows how hard they are.
    """
    question = wanted.question
    given = (*wanted.kept, *chosen.chunks[:chosen.fill])
    if chosen.fill:
        given = tuple(random.Random(f"{seed}:{question.id}:given").sample(given, len(given)))
    further = chosen.chunks[chosen.fill:]
    there = {chunk.id for chunk in (*given, *further)}
    own = tuple(chunk for chunk in question.negatives if chunk.id not in there) if wanted.keeps_own else ()
    return replace(question, provided=given, pool=question.pool if wanted.keeps_own else (),
                   negatives=(*further, *own), mined=mined)


_THIRDS: tuple[Bucket, ...] = ("hard", "medium", "easy")


def to_hardness(cosine: float) -> float:
    """Return the cosine, or 0 where it is negative."""
    return round(min(max(cosine, 0.0), 1.0), DECIMALS)


def rate_hardness(chosen: MiningResult, cosines: Sequence[float]) -> Mapping[str, Mined]:
    """Return by chunk id, in the order in which they were taken, how each negative was mined, and how hard it is: the
    cosine of the question's vector and that of the chunk's nearest window, by the embedder of the collection, the same
    for whichever miner found the chunk. `cosines` are in the order of `chosen.chunks`."""
    hardness = [to_hardness(cosine) for cosine in cosines]
    order = sorted(range(len(hardness)), key=lambda place: (-hardness[place], place))
    buckets = {place: _THIRDS[rank * len(_THIRDS) // len(order)] for rank, place in enumerate(order)}
    return {chunk.id: Mined(chosen.miners[chunk.id], chosen.found[chunk.id], hardness[place], buckets[place])
            for place, chunk in enumerate(chosen.chunks)}


class RerankerScores:
    """A reranker's scores of candidates; without a scorer nothing is above the gold. Those of many questions are scored
    together, once they are known. Where the scores are `grades`, none may be one that helps, whatever the gold's is."""

    def __init__(self, scorer: Scorer | None, grades: bool = False) -> None:
        self._scorer, self._grades = scorer, grades
        self._known: dict[tuple[str, str], float] = {}
        self._asked: dict[str, tuple[MiningTask, dict[str, Chunk]]] = {}

    def above_gold(self, wanted: MiningTask, chunk: Chunk) -> Rejected | None:
        """Return why the chunk is not taken; None also where it is yet to be scored."""
        gold = () if self._grades else wanted.gold
        if self._scorer is None or not (gold or self._grades):
            return None
        id = wanted.question.id
        scores = [self._known.get((id, one.id)) for one in (chunk, *gold)]
        if None in scores:
            self._asked.setdefault(id, (wanted, {}))[1][chunk.id] = chunk
            return None
        ours, *others = (score for score in scores if score is not None)
        if self._grades:
            return Rejected(chunk, "relevance", {"grade": ours}) if ours >= HELPS else None
        best = max(others)
        return Rejected(chunk, "reranker", {"score": round(ours, 4), "gold": round(best, 4)}) if ours > best else None

    def score(self) -> set[str]:
        """Score what was asked for, and return the ids of the questions that have to be chosen for once more. Raises
        UserError where the reranker's model cannot be loaded."""
        asked, self._asked = self._asked, {}
        if self._scorer is None or not asked:
            return set()
        chunks = [list((chunks | {gold.id: gold for gold in wanted.gold if not self._grades}).values())
                  for wanted, chunks in asked.values()]
        found = self._scorer.scores([wanted.question.text for wanted, _ in asked.values()],
                                    [[chunk.content for chunk in each] for each in chunks])
        for id, each, scores in zip(asked, chunks, found, strict=True):
            self._known |= {(id, chunk.id): score for chunk, score in zip(each, scores, strict=True)}
        return set(asked)


def select(wanted: MiningTask, found: Mapping[str, Sequence[Hit]], guard: Guard,
           scores: RerankerScores) -> MiningResult:
    """Take the first miner's finds until the question is filled up, then one of each miner in turn; `found` has the
    miners in the order of their turns."""
    by: dict[str, tuple[FoundBy, ...]] = defaultdict(tuple)
    for miner, hits in found.items():
        for hit in hits:
            by[hit.chunk.id] += (FoundBy(miner, hit.rank, round(hit.score, DECIMALS)),)
    passing = _Selector(wanted, guard, scores)
    left = {miner: map(attrgetter("chunk"), hits) for miner, hits in found.items()}
    first = next(iter(left))
    while len(passing.taken) < wanted.fill and passing.take(first, left[first]):
        pass
    while left and len(passing.taken) < wanted.total:
        for miner in list(left):
            if len(passing.taken) == wanted.total:
                break
            if not passing.take(miner, left[miner]):
                del left[miner]
    rejected = tuple(replace(one, found=by[one.chunk.id]) for one in passing.rejected)
    chunks = tuple(passing.taken)
    return MiningResult(chunks, min(wanted.fill, len(chunks)),
                        {chunk.id: miner for chunk, miner in passing.taken.items()},
                        {chunk.id: by[chunk.id] for chunk in chunks}, (*wanted.coarse, *rejected))


class _Selector:
    def __init__(self, wanted: MiningTask, guard: Guard, scores: RerankerScores) -> None:
        self.taken: dict[Chunk, str] = {}
        self.rejected: list[Rejected] = []
        self._wanted, self._guard, self._scores = wanted, guard, scores
        self._shown = ShownTexts([*wanted.kept, *wanted.gold])
        self._seen: set[str] = set()

    def take(self, miner: str, candidates: Iterator[Chunk]) -> bool:
        """Take the miner's next candidate that was not seen before and passes; False where there is none."""
        for chunk in candidates:
            if chunk.id in self._seen:
                continue
            self._seen.add(chunk.id)
            why = Rejected(chunk, "repeated") if not self._shown.lacks(chunk) else \
                self._guard.check(chunk) or self._scores.above_gold(self._wanted, chunk)
            if why is None:
                self._shown.add(chunk)
                self.taken[chunk] = miner
                return True
            self.rejected.append(why)
        return False


MOST_GOLD = 5  # chunks that a question keeps of gold that is known by page or document alone; CReSt has one to five
_COARSE: dict[str, Reason] = {"page": "gold_page", "document": "gold_document"}


@dataclass(frozen=True, slots=True)
class Candidates:
    """Where negatives are found."""

    chunks: Sequence[Chunk]  # of the collection
    source_of: SourceOf
    indexed: bool  # whether they are an index's, which knows the benchmark's documents by their source alone
    nearest: Callable[[str, Sequence[Chunk]], Sequence[Chunk]]  # the chunks that are nearest to a query, best first


def plan_tasks(benchmark: Benchmark, candidates: Candidates, settings: MiningSettings) -> Iterator[MiningTask]:
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
        yield _plan_task(question, tuple(dict.fromkeys((*own, *left_out))), shown, coarse, settings)


def _plan_task(question: Question, gold: tuple[Chunk, ...], shown: tuple[Chunk, ...], coarse: tuple[Rejected, ...],
               settings: MiningSettings) -> MiningTask:
    keeps_own = bool(question.provided) and (settings.keep or (question.answerable and not gold))
    kept = question.provided if keeps_own else shown
    out = frozenset(chunk.id for chunk in (*gold, *kept))
    asked = MiningQuery(question.id, question.text, gold or question.provided, out)
    fill = max(0, settings.fill - len(kept))
    return MiningTask(question, asked, kept, keeps_own, gold, fill, settings.per_question, coarse)


_FIRST = 20  # candidates of each miner in the first round, and at least two for each that is wanted
_DEEPER = 4
_GROUP = 512  # questions that are mined for together


def select_negatives(wanted: Sequence[MiningTask], settings: MiningSettings, miners: Mapping[str, Miner],
                     scorer: Scorer | None,
                     rarity: RareWords, progress: Progress) -> list[MiningResult]:
    """Choose negatives for each question, in their order, by the miners in the order of their turns and the reranker,
    if any; `rarity` is of words among the candidates. Raises UserError where a miner's or the reranker's model is not
    to be had."""
    chosen: dict[str, MiningResult] = {}
    for first in range(0, len(wanted), _GROUP):
        group = wanted[first:first + _GROUP]
        guards = {one.question.id: Guard(one.question, one.gold, settings.thresholds, rarity) for one in group}
        scores, left = RerankerScores(scorer, isinstance(settings.reranker, JudgeReranker)), list(group)
        depth = min(settings.depth, max(_FIRST, 2 * max(one.total for one in group)))
        while left:
            queries = [one.asked for one in left]
            by_miner = {name: miner.mine(queries, depth) for name, miner in miners.items()}
            found = {one.question.id: {name: hits[place] for name, hits in by_miner.items()}
                     for place, one in enumerate(left)}
            unsettled = {one.question.id: one for one in left}
            while unsettled:  # once more as long as a candidate that was taken had yet to be scored
                chosen |= {id: select(one, found[id], guards[id], scores) for id, one in unsettled.items()}
                unsettled = {id: unsettled[id] for id in scores.score()}
            short = [one.question.id for one in left if len(chosen[one.question.id].chunks) < one.total]
            for id in short:
                if all(len(hits) < depth for hits in found[id].values()):
                    chosen[id] = replace(chosen[id], why_short="no candidate is left")
                elif depth == settings.depth:
                    why = f"the first {depth} candidates of each miner were looked at"
                    chosen[id] = replace(chosen[id], why_short=why)
            left = [one for one in left if one.question.id in short and chosen[one.question.id].why_short is None]
            depth = min(settings.depth, depth * _DEEPER)
        progress("questions mined", len(chosen), len(wanted))
    return [chosen[one.question.id] for one in wanted]

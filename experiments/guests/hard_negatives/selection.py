"""Select the negatives of each question from the miners' candidates that pass the guard."""
from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.hard_negatives.guard import Guard, Reason, Rejected, Thresholds
from ragbed.experiments.guests.hard_negatives.miners import DRAWN, MiningQuery
from ragbed.experiments.guests.hard_negatives.mining_limits import Limits
from ragbed.experiments.judges.passage_grades import HELPS
from ragbed.experiments.question import Benchmark, Bucket, FoundBy, Mined, Question
from ragbed.experiments.running.gold import Places, ShownTexts, SourceOf, gold_by_source, match
from ragbed.retrieval.model_files import MINILM
from ragbed.retrieval.retrievers.reranked import RerankerSettings
from ragbed.retrieval.types import DECIMALS, Hit, Scorer
from ragbed.strategies.types import Passage


class MiningSettings(BaseModel):
    """How to mine negatives.

    Attributes:
        miners: names in the order of their turns (see `miner_names`). Questions are filled up by the first only, while
            it finds any.
        per_question: extra negatives per question, after filling it up.
        fill: number of chunks to fill each question up to, gold included; 0 for no filling.
        keep: keep all chunks of a question. By default only its gold stays, and its other chunks are candidates. If the
            gold of an answerable question is unknown, all chunks stay anyway.
        index: index that candidates come from; None for the benchmark's own chunks.
        embedder: embedder for the benchmark's own chunks; an index has its own.
        reranker: rejects candidates that it scores above the gold or, if it is a judge, that it grades 2 or 3. `auto`
            is late interaction by the embedder's model, for questions with gold but without answers.
        limits: limits of rank and score.
        depth: maximum number of candidates per miner and question.
        seed: random seed for the order of chunks in a filled question, and for the miner `random`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    miners: tuple[str, ...] = Field(default=("dense", "bm25", "same_document", "entity"), min_length=1)
    per_question: int = Field(default=10, ge=0)
    fill: int = Field(default=10, ge=0)
    keep: bool = False
    index: Path | None = None
    embedder: str = MINILM
    reranker: Literal["auto"] | RerankerSettings | None = "auto"
    thresholds: Thresholds = Thresholds()
    limits: Limits = Limits()
    depth: int = Field(default=1_000, ge=1)
    seed: int = 0

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.limits.range_max is not None and self.limits.range_max > self.depth:
            raise ValueError(f"range_max {self.limits.range_max} is above depth {self.depth}")
        return self


def best_rank(found: Iterable[FoundBy]) -> int | None:
    """Return the best rank that a miner gave a candidate; None if it was only drawn at random."""
    return min((one.rank for one in found if one.miner != DRAWN), default=None)


@dataclass(frozen=True, slots=True)
class MiningTask:
    """A question and the negatives that it needs.

    Attributes:
        kept: chunks that stay in the question.
        keeps_own: whether all of the question's own chunks are kept.
        gold: known gold chunks among the question's chunks and in the index.
        fill: negatives needed to fill the question up.
        further: number of extra negatives needed.
        coarse: candidates left out because the gold is known only by page or document.
    """

    question: Question
    query: MiningQuery
    kept: tuple[Chunk, ...]
    keeps_own: bool
    gold: tuple[Chunk, ...]
    fill: int
    further: int
    coarse: tuple[Rejected, ...] = ()

    @property
    def total(self) -> int:
        return self.fill + self.further

    @property
    def positives(self) -> list[list[Chunk]]:
        """Return the chunks of each gold item: one, or all of a document whose gold chunks are unknown."""
        unsure = {one.chunk.id for one in self.coarse}
        items: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in self.gold:
            items[f"document {chunk.document}" if chunk.id in unsure else chunk.id].append(chunk)
        return list(items.values())


@dataclass(frozen=True, slots=True)
class MiningResult:
    """The negatives of a question.

    Attributes:
        chunks: negatives that fill the question up, then the extra ones.
        fill: number of chunks that fill it up.
        miners: by chunk id, the miner whose turn selected it.
        found: by chunk id, all miners that found it.
        why_short: why there are fewer than needed, or None.
    """

    chunks: tuple[Chunk, ...]
    fill: int
    miners: Mapping[str, str]
    found: Mapping[str, tuple[FoundBy, ...]]
    rejected: tuple[Rejected, ...]
    why_short: str | None = None


def add_negatives(task: MiningTask, result: MiningResult, mined: Mapping[str, Mined], seed: int) -> Question:
    """Return the question with its negatives. In a question that is filled up, the order of the chunks is random, so
    that gold has no fixed position. The benchmark's own negatives, if kept, follow the mined ones; perturbations do not
    use them, because their hardness is unknown."""
    question = task.question
    provided = (*task.kept, *result.chunks[:result.fill])
    if result.fill:
        provided = tuple(random.Random(f"{seed}:{question.id}:given").sample(provided, len(provided)))
    further = result.chunks[result.fill:]
    there = {chunk.id for chunk in (*provided, *further)}
    own = tuple(chunk for chunk in question.negatives if chunk.id not in there) if task.keeps_own else ()
    return replace(question, provided=provided, pool=question.pool if task.keeps_own else (),
                   negatives=(*further, *own), mined=mined)


_THIRDS: tuple[Bucket, ...] = ("hard", "medium", "easy")


def to_hardness(cosine: float) -> float:
    """Return the cosine, or 0 if it is negative."""
    return round(min(max(cosine, 0.0), 1.0), DECIMALS)


def rate_hardness(result: MiningResult, cosines: Sequence[float]) -> Mapping[str, Mined]:
    """Return how each negative was mined and how hard it is, by chunk id, in the order of selection. Hardness is the
    cosine of the question with the chunk's nearest window, whichever miner found it. `cosines` are in the order of
    `result.chunks`."""
    hardness = [to_hardness(cosine) for cosine in cosines]
    order = sorted(range(len(hardness)), key=lambda place: (-hardness[place], place))
    buckets = {place: _THIRDS[rank * len(_THIRDS) // len(order)] for rank, place in enumerate(order)}
    return {chunk.id: Mined(result.miners[chunk.id], result.found[chunk.id], hardness[place], buckets[place])
            for place, chunk in enumerate(result.chunks)}


class RerankerScores:
    """A reranker's scores of candidates, computed for many questions at once. Without a scorer, no candidate is above
    the gold. If the scores are `grades`, candidates graded as helpful are rejected, whatever the gold's grade. With
    `spare_answered`, questions with answers are not checked.
    """

    def __init__(self, scorer: Scorer | None, grades: bool = False, spare_answered: bool = False) -> None:
        self._scorer, self._grades, self._spare = scorer, grades, spare_answered
        self._known: dict[tuple[str, str], float] = {}
        self._asked: dict[str, tuple[MiningTask, dict[str, Chunk]]] = {}

    def above_gold(self, task: MiningTask, chunk: Chunk) -> Rejected | None:
        """Return why the chunk is rejected; None if it is not, or has not been scored yet."""
        gold = () if self._grades else task.gold
        if self._scorer is None or not (gold or self._grades) or (self._spare and task.question.answers):
            return None
        id = task.question.id
        scores = [self._known.get((id, one.id)) for one in (chunk, *gold)]
        if None in scores:
            self._asked.setdefault(id, (task, {}))[1][chunk.id] = chunk
            return None
        ours, *others = (score for score in scores if score is not None)
        if self._grades:
            return Rejected(chunk, "relevance", {"grade": ours}) if ours >= HELPS else None
        best = max(others)
        return Rejected(chunk, "reranker", {"score": round(ours, 4), "gold": round(best, 4)}) if ours > best else None

    def scores_of(self, tasks: Sequence[MiningTask], chunks: Sequence[Sequence[Chunk]]) -> list[list[float]]:
        """Score chunks of each question, and remember the scores. Raises UserError if the model cannot be loaded."""
        if self._scorer is None:
            raise ValueError("there is no reranker")
        found = self._scorer.scores([task.question.text for task in tasks],
                                    [[chunk.content for chunk in each] for each in chunks])
        for task, each, scores in zip(tasks, chunks, found, strict=True):
            self._known |= {(task.question.id, chunk.id): score for chunk, score in zip(each, scores, strict=True)}
        return found

    def score(self) -> set[str]:
        """Score the candidates that `above_gold` was called with. Returns the ids of the questions to select for again.
        Raises UserError if the reranker's model cannot be loaded."""
        asked, self._asked = self._asked, {}
        if self._scorer is None or not asked:
            return set()
        chunks = [list((chunks | {gold.id: gold for gold in task.gold if not self._grades}).values())
                  for task, chunks in asked.values()]
        self.scores_of([task for task, _ in asked.values()], chunks)
        return set(asked)


def select(task: MiningTask, found: Mapping[str, Sequence[Hit]], guard: Guard,
           scores: RerankerScores) -> MiningResult:
    """Take candidates of the first miner until the question is filled up, then one from each miner in turn. `found` has
    each miner's hits, in the order of turns.
    """
    by = found_by(found)
    selector = _Selector(task, guard, scores)
    left = {miner: map(attrgetter("chunk"), hits) for miner, hits in found.items()}
    first = next(iter(left))
    while len(selector.taken) < task.fill and selector.take(first, left[first]):
        pass
    while left and len(selector.taken) < task.total:
        for miner in list(left):
            if len(selector.taken) == task.total:
                break
            if not selector.take(miner, left[miner]):
                del left[miner]
    rejected = tuple(replace(one, found=by[one.chunk.id]) for one in selector.rejected)
    chunks = tuple(selector.taken)
    return MiningResult(chunks, min(task.fill, len(chunks)),
                        {chunk.id: miner for chunk, miner in selector.taken.items()},
                        {chunk.id: by[chunk.id] for chunk in chunks}, (*task.coarse, *rejected))


def found_by(found: Mapping[str, Sequence[Hit]]) -> dict[str, tuple[FoundBy, ...]]:
    """Return by chunk id which miners found it. `found` has each miner's hits."""
    by: dict[str, tuple[FoundBy, ...]] = defaultdict(tuple)
    for miner, hits in found.items():
        for hit in hits:
            by[hit.chunk.id] += (FoundBy(miner, hit.rank, round(hit.score, DECIMALS)),)
    return by


class _Selector:
    def __init__(self, task: MiningTask, guard: Guard, scores: RerankerScores) -> None:
        self.taken: dict[Chunk, str] = {}
        self.rejected: list[Rejected] = []
        self._task, self._guard, self._scores = task, guard, scores
        self._shown = ShownTexts([*task.kept, *task.gold])
        self._seen: set[str] = set()

    def take(self, miner: str, candidates: Iterator[Chunk]) -> bool:
        """Take the miner's next candidate that is new and passes all checks. Returns False if there is none."""
        for chunk in candidates:
            if chunk.id in self._seen:
                continue
            self._seen.add(chunk.id)
            why = Rejected(chunk, "repeated") if not self._shown.lacks(chunk) else \
                self._guard.check(chunk) or self._scores.above_gold(self._task, chunk)
            if why is None:
                self._shown.add(chunk)
                self.taken[chunk] = miner
                return True
            self.rejected.append(why)
        return False


MAX_GOLD = 5  # gold chunks to keep if gold is known only by page or document; CReSt has one to five
_COARSE: dict[str, Reason] = {"page": "gold_page", "document": "gold_document"}


@dataclass(frozen=True, slots=True)
class Candidates:
    """The collection that negatives come from.

    Attributes:
        chunks: all chunks of the collection.
        indexed: whether the chunks come from an index, where only the source path identifies a benchmark's document.
        nearest: sorts chunks by their similarity to a query.
    """

    chunks: Sequence[Chunk]
    source_of: SourceOf
    indexed: bool
    nearest: Callable[[str, Sequence[Chunk]], Sequence[Chunk]]


def plan_tasks(benchmark: Benchmark, candidates: Candidates, settings: MiningSettings) -> Iterator[MiningTask]:
    """Yield a task for each question: its gold, the chunks that it keeps, and the number of negatives that it needs."""
    places = Places(candidates.chunks, candidates.source_of)
    shared = Places(benchmark.shared, candidates.source_of)
    for question in benchmark.questions:
        own = Places(question.own, candidates.source_of).gold(question.gold) or shared.gold(question.gold)
        gold = question.gold + (gold_by_source(question.gold, benchmark.documents) if candidates.indexed else ())
        left_out = places.gold(gold)
        levels = match(gold, map(Passage, range(len(left_out)), left_out), candidates.source_of).levels
        coarse = tuple(Rejected(chunk, reason) for row, chunk in enumerate(left_out)
                       if (reason := _COARSE.get(levels[row] or "")))
        shown = own or left_out
        if coarse and len(shown) > MAX_GOLD:
            shown = tuple(candidates.nearest(question.text, left_out)[:MAX_GOLD])
        yield _plan_task(question, tuple(dict.fromkeys((*own, *left_out))), shown, coarse, settings)


def _plan_task(question: Question, gold: tuple[Chunk, ...], shown: tuple[Chunk, ...], coarse: tuple[Rejected, ...],
               settings: MiningSettings) -> MiningTask:
    keeps_own = bool(question.provided) and (settings.keep or (question.answerable and not gold))
    kept = question.provided if keeps_own else shown
    out = frozenset(chunk.id for chunk in (*gold, *kept))
    query = MiningQuery(question.id, question.text, gold or question.provided, out)
    fill = max(0, settings.fill - len(kept))
    return MiningTask(question, query, kept, keeps_own, gold, fill, settings.per_question, coarse)

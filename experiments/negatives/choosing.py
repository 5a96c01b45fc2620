"""Choosing a question's negatives among what the miners found, in turns and past the guard; and how hard each is."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from documents.types import Chunk
from experiments.negatives.guard import Guard, above_gold
from experiments.negatives.types import Chosen, Rejected, Wanted
from experiments.question import Bucket, FoundBy, Mined
from experiments.running.gold import ShownTexts
from retrieval.hits import DECIMALS
from retrieval.types import Hit, Scorer

_THIRDS: tuple[Bucket, ...] = ("hard", "medium", "easy")


def hardness_of(cosine: float) -> float:
    """Return the cosine, or 0 where it is negative."""
    return round(min(max(cosine, 0.0), 1.0), DECIMALS)


def mined(chosen: Chosen, cosines: Sequence[float]) -> Mapping[str, Mined]:
    """Return by chunk id, in the order in which they were taken, how each negative was mined, and how hard it is.

    Hardness is the cosine of the question's vector and that of the chunk's nearest window, by the embedder of the
    collection: the same for whichever miner found the chunk.

    Args:
        cosines: of the question with each chunk, in the order of `chosen.chunks`.
    """
    hardness = [hardness_of(cosine) for cosine in cosines]
    order = sorted(range(len(hardness)), key=lambda place: (-hardness[place], place))
    buckets = {place: _THIRDS[rank * len(_THIRDS) // len(order)] for rank, place in enumerate(order)}
    return {chunk.id: Mined(chosen.miners[chunk.id], chosen.found[chunk.id], hardness[place], buckets[place])
            for place, chunk in enumerate(chosen.chunks)}


class Scores:
    """A reranker's scores of candidates. Those of many questions are scored together, once they are known.

    Args:
        scorer: None for no reranker, to which nothing is above the gold.
    """

    def __init__(self, scorer: Scorer | None) -> None:
        self._scorer = scorer
        self._known: dict[tuple[str, str], float] = {}
        self._asked: dict[str, tuple[Wanted, dict[str, Chunk]]] = {}

    def above_gold(self, wanted: Wanted, chunk: Chunk) -> Rejected | None:
        """Return why the chunk is not taken; None also where it is yet to be scored."""
        if self._scorer is None or not wanted.gold:
            return None
        id = wanted.question.id
        scores = [self._known.get((id, one.id)) for one in (chunk, *wanted.gold)]
        if None in scores:
            self._asked.setdefault(id, (wanted, {}))[1][chunk.id] = chunk
            return None
        ours, *gold = (score for score in scores if score is not None)
        return above_gold(chunk, ours, gold)

    def score(self) -> set[str]:
        """Score what was asked for, and return the ids of the questions that have to be chosen for once more.

        Raises:
            UserError: the reranker's model cannot be loaded.
        """
        asked, self._asked = self._asked, {}
        if self._scorer is None or not asked:
            return set()
        chunks = [list((chunks | {gold.id: gold for gold in wanted.gold}).values())
                  for wanted, chunks in asked.values()]
        found = self._scorer.scores([wanted.question.text for wanted, _ in asked.values()],
                                    [[chunk.content for chunk in each] for each in chunks])
        for id, each, scores in zip(asked, chunks, found, strict=True):
            self._known |= {(id, chunk.id): score for chunk, score in zip(each, scores, strict=True)}
        return set(asked)


def choose(wanted: Wanted, found: Mapping[str, Sequence[Hit]], guard: Guard, scores: Scores) -> Chosen:
    """Take the first miner's finds until the question is filled up, then one of each miner in turn.

    Args:
        found: what each miner found for the question, in the order of the miners' turns.
    """
    by: dict[str, tuple[FoundBy, ...]] = {}
    for miner, hits in found.items():
        for hit in hits:
            by[hit.chunk.id] = (*by.get(hit.chunk.id, ()), FoundBy(miner, hit.rank, round(hit.score, DECIMALS)))
    passing = _Passing(wanted, guard, scores)
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
    return Chosen(chunks, min(wanted.fill, len(chunks)), {chunk.id: miner for chunk, miner in passing.taken.items()},
                  {chunk.id: by[chunk.id] for chunk in chunks}, (*wanted.coarse, *rejected))


class _Passing:
    def __init__(self, wanted: Wanted, guard: Guard, scores: Scores) -> None:
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

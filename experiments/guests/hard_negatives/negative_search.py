"""Search for the negatives of all questions, deeper and deeper until each has enough."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ragbed.documents.types import Chunk
from ragbed.experiments.guests.hard_negatives.guard import Guard, RareWords
from ragbed.experiments.guests.hard_negatives.miners import Miner
from ragbed.experiments.guests.hard_negatives.mining_limits import Limited, Limits, Scores, apply_limits
from ragbed.experiments.guests.hard_negatives.selection import (
    MiningResult,
    MiningSettings,
    MiningTask,
    RerankerScores,
    found_by,
    select,
)
from ragbed.retrieval.rerankers.reranker import JudgeReranker
from ragbed.retrieval.types import Hit, Progress, Scorer

_FIRST_DEPTH = 20  # candidates of each miner in the first round, or twice the number needed if that is more
_DEEPER = 4  # each further round searches this many times deeper
_GROUP = 512  # questions mined together
Cosines = Callable[[Sequence[str], Sequence[Sequence[Chunk]]], list[list[float]]]


@dataclass(frozen=True)
class NegativeSearch:
    """Selects negatives from the candidates of all miners.

    Args:
        miners: by name, in the order of their turns.
        scorer: the reranker; None for no check by a reranker.
        cosines: returns each query's cosine with each of its chunks.
    """

    settings: MiningSettings
    miners: Mapping[str, Miner]
    scorer: Scorer | None
    rare_words: RareWords
    cosines: Cosines

    def select_all(self, tasks: Sequence[MiningTask], progress: Progress) -> list[MiningResult]:
        """Select negatives for each question, in order. If too many candidates of a question are rejected, its miners
        search deeper, until they find no more or reach the limit. Raises UserError if a model of a miner or of the
        reranker cannot be loaded."""
        results: dict[str, MiningResult] = {}
        most_gold = max((len(one.positives) for one in tasks), default=0)
        for first in range(0, len(tasks), _GROUP):
            results |= self._select_group(tasks[first:first + _GROUP], most_gold)
            progress("questions mined", len(results), len(tasks))
        return [results[one.question.id] for one in tasks]

    def _select_group(self, group: Sequence[MiningTask], most_gold: int) -> dict[str, MiningResult]:
        settings, results = self.settings, dict[str, MiningResult]()
        guards = {one.question.id: Guard(one.question, one.gold, settings.thresholds, self.rare_words) for one in group}
        scores = RerankerScores(self.scorer, isinstance(settings.reranker, JudgeReranker), settings.reranker == "auto")
        limited, left, most = settings.limits != Limits(), list(group), max(one.total for one in group)
        depth = min(settings.depth, settings.limits.last_rank(most, most_gold) + most_gold if limited else
                    max(_FIRST_DEPTH, 2 * most))
        while left:
            queries = [one.query for one in left]
            by_miner = {name: miner.mine(queries, depth) for name, miner in self.miners.items()}
            every = {one.question.id: {name: hits[place] for name, hits in by_miner.items()}
                     for place, one in enumerate(left)}
            within = self._limit(left, every, scores, most_gold) if limited else {}
            found = {id: within[id].hits if limited else hits for id, hits in every.items()}
            unsettled = {one.question.id: one for one in left}
            while unsettled:  # repeat until all selected candidates have been scored
                results |= {id: select(one, found[id], guards[id], scores) for id, one in unsettled.items()}
                unsettled = {id: unsettled[id] for id in scores.score()}
            results |= {id: _add_left_out(results[id], each, every[id]) for id, each in within.items()}
            short = [one.question.id for one in left if len(results[one.question.id].chunks) < one.total]
            for id in short:
                if limited:
                    results[id] = replace(results[id], why_short="no other candidate is within the limits")
                elif all(len(hits) < depth for hits in found[id].values()):
                    results[id] = replace(results[id], why_short="no candidate is left")
                elif depth == settings.depth:
                    why = f"the first {depth} candidates of each miner were checked"
                    results[id] = replace(results[id], why_short=why)
            left = [one for one in left if one.question.id in short and results[one.question.id].why_short is None]
            depth = min(settings.depth, depth * _DEEPER)
        return results

    def _limit(self, tasks: Sequence[MiningTask], found: Mapping[str, Mapping[str, Sequence[Hit]]],
               reranked: RerankerScores, most_gold: int) -> dict[str, Limited]:
        """Apply the limits of rank and score to the hits of each question."""
        chunks = [list({hit.chunk.id: hit.chunk for hits in found[one.question.id].values() for hit in hits}.values())
                  for one in tasks]
        limits, asked = self.settings.limits, [one.question.text for one in tasks]
        near, gold_near = self.cosines(asked, chunks), self.cosines(asked, [one.gold for one in tasks])
        used, gold = near, gold_near
        named = self.settings.reranker not in (None, "auto") and not isinstance(self.settings.reranker, JudgeReranker)
        if named and limits.by_score:
            used = reranked.scores_of(tasks, chunks)
            gold = reranked.scores_of(tasks, [one.gold for one in tasks])
        limited = {}
        for place, one in enumerate(tasks):
            ids = [chunk.id for chunk in chunks[place]]
            by_cosine = dict(zip(ids, near[place], strict=True))
            by_used = dict(zip(ids, used[place], strict=True)) if used is not near else by_cosine
            scores = Scores(by_cosine, _best_of_items(one, gold_near[place]), by_used, _best_of_items(one, gold[place]))
            limited[one.question.id] = apply_limits(
                found[one.question.id], scores, limits, limits.last_rank(one.total, most_gold), most_gold,
                f"{self.settings.seed}:{one.question.id}:sample")
        return limited


def _best_of_items(task: MiningTask, scores: Sequence[float]) -> list[float]:
    """Return the best score among the chunks of each gold item; `scores` are in the order of `task.gold`."""
    by_id = {chunk.id: score for chunk, score in zip(task.gold, scores, strict=True)}
    return [max(by_id[chunk.id] for chunk in item) for item in task.positives]


def _add_left_out(result: MiningResult, limited: Limited, found: Mapping[str, Sequence[Hit]]) -> MiningResult:
    """Add the candidates that the limits left out, unless another miner's turn took or rejected them."""
    decided = {chunk.id for chunk in result.chunks} | {one.chunk.id for one in result.rejected}
    left_out = [one for id, one in limited.left_out.items() if id not in decided]
    by = found_by(found)
    return replace(result, rejected=(*result.rejected, *(replace(one, found=by[one.chunk.id]) for one in left_out)))

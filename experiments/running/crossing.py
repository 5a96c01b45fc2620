"""Crossing the factors of a run: from the combinations that its settings name to the distinct cells.

Combinations that differ only in what has no effect under their condition, whatever the question and the model, are
one cell, run once.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragbed.experiments.cells import OWN, PIPELINE, Cell, Show, finder_name
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Benchmark
from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor, label
from ragbed.retrieval.conditions import Condition, Perturbation
from ragbed.strategies.catalogue import CRESTS, SEARCH_ONLY
from ragbed.strategies.settings.choosing import Strategy
from ragbed.strategies.settings.plugins import FAMILIES, Family

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.matrix import Combination

Strategies = Mapping[Family, Mapping[str, Strategy]]  # by what tables call them


class Crossing:
    """Makes the cells of combinations; `retrievers` are all that the settings describe, by name."""

    def __init__(self, settings: RunSettings, benchmark: Benchmark, combinations: Sequence[Combination],
                 retrievers: Mapping[str, RetrieverFactor], strategies: Strategies) -> None:
        self._settings, self._benchmark, self._strategies = settings, benchmark, strategies
        self._retrievers = {name: retrievers[name] for name in dict.fromkeys(one.retriever for one in combinations)}
        self._shows = next((one.condition for one in combinations if one.condition != "closed-book"), None)
        self._seeded = len({one.seed for one in combinations}) > 1
        self._subs = any(question.sub_questions for question in benchmark.questions)
        self._variations = {name for name in {one.variation for one in combinations} if name == "paraphrase" or any(
            QueryVariation.parse(name).of(question.text) != question.text for question in benchmark.questions)}
        self._worded = any(one.prompt_variant > 1 for one in combinations)
        self._turns = any(question.turns for question in benchmark.questions)
        # All are shown where the reply is to answer each.
        self._answers_subs = self._subs and settings.sub_answers == "in_prompt" and "chain" in benchmark.scheme.groups

    def cell(self, one: Combination) -> Cell:
        """Return the cell of a combination."""
        condition = one.condition
        change = with_effect(Perturbation.parse(one.perturbation), condition, one.retrieval, self._benchmark)
        if change.table and self._shows is not None:
            condition = self._shows
        found = None if change.table else self._found(one)
        searched = condition == "retrieved" and not change.table
        retriever = self._retrievers[one.retriever]
        own = found is not None and retriever.index is None  # what the run itself cuts and embeds
        show: Show = "sub_questions" if self._answers_subs else one.show if self._subs else "question"
        is_pipeline = one.reasoning == PIPELINE
        asked = one.reasoning != SEARCH_ONLY and not is_pipeline
        return Cell(
            model=one.model, retrieval=one.retrieval if searched else None, retriever=found, reasoning=one.reasoning,
            rules="closed-book" if condition == "closed-book" else one.rules, condition=condition,
            perturbation=None if change == Perturbation() else str(change), show=show,
            format=one.format if found and has_index(retriever, self._benchmark) else None,
            benchmark=self._settings.benchmark.kind, repeat=one.repeat,
            seed=one.seed if self._seeded and self._draws(change, one, searched) else None,
            chunker=one.chunker if own else None, embedder=one.embedder if own and retriever.embeds else None,
            history=one.history if self._turns and not is_pipeline else None,
            variation=one.variation if one.variation in self._variations else None,
            framing=one.framing if asked and condition != "closed-book" else None,
            answer_format=one.answer_format if asked else None,
            prompt_variant=one.prompt_variant if self._worded and asked and any(
                part.kind in CRESTS for part in self._strategies["reasoning"][one.reasoning].parts) else None)

    def _draws(self, change: Perturbation, one: Combination, searched: bool) -> bool:
        """Say whether a seed may change anything: ragbed's own strategies draw nothing, others may."""
        used = [] if one.reasoning == PIPELINE else [self._strategies["reasoning"][one.reasoning]]
        used += [self._strategies["retrieval"][one.retrieval]] if searched and one.retrieval != OWN else []
        used += [self._strategies["history"][one.history]] if self._turns else []
        return (change.shuffle or change.negatives > 0 or change.pool > 0 or one.variation.startswith("typos")
                or any(strategy.has_plugins for strategy in used))

    def _found(self, one: Combination) -> str | None:
        """Return the retriever that the evidence comes from; None where the questions bring it, or there is none."""
        if one.condition == "retrieved":
            return one.retriever if one.retrieval not in ("none", OWN) else None
        brought = {"gold": self._benchmark.gives_chunks, "full": self._benchmark.has_whole}.get(one.condition, True)
        if brought:
            return None
        wanted = self._retrievers[one.retriever]  # whichever searches the same index stands for all that do
        return next(name for name, other in self._retrievers.items()
                    if (other.index, other.build) == (wanted.index, wanted.build))


def with_effect(change: Perturbation, condition: Condition, gathering: str, benchmark: Benchmark) -> Perturbation:
    """Return the perturbation without what has no effect, so that cells that would show the same are one cell."""
    if condition == "closed-book":
        return Perturbation()
    if condition == "retrieved" and gathering == "none":
        return Perturbation(unnumbered=change.unnumbered)  # nothing is shown, but citations are not asked for
    if not any(question.gold for question in benchmark.questions):
        change = replace(change, drop_gold=False, gold_at=0)
    if condition != "retrieved" or benchmark.corpus is not None:
        change = replace(change, pool=0, sort=change.sort if change.negatives else "")
    if condition == "gold" and not change.negatives:
        change = replace(change, gold_at=0)  # all that stands there is gold
    most = _most(change, condition, benchmark)
    return change if most is None or most > 1 else replace(change, shuffle=False, gold_at=0)


def _most(change: Perturbation, condition: Condition, benchmark: Benchmark) -> int | None:
    """Return how many chunks any question shows at most; None where that is not known before it is asked."""
    if change.table:
        return 1 + change.negatives
    if condition == "gold":
        return change.negatives if change.drop_gold else None
    if condition == "provided":
        return max(len(question.provided) for question in benchmark.questions) + change.negatives
    if condition == "full" and benchmark.has_whole:
        return max(len(question.whole) for question in benchmark.questions) + change.negatives
    return None


def has_index(retriever: RetrieverFactor, benchmark: Benchmark) -> bool:
    """Say whether the retriever searches an index, rather than the chunks that the questions bring."""
    return retriever.index is not None or benchmark.corpus is not None


def on_cells(combinations: Sequence[Combination], cells: Sequence[Cell], strategies: Strategies) -> list[str]:
    """Say that some combinations are one cell, and what the seeds are of."""
    notes = [] if len(combinations) == len(cells) else [
        f"{len(combinations)} combinations of the settings are {len(cells)} cells: those that differ only in what has "
        "no effect under their condition are one cell, run once."]
    if len({one.seed for one in combinations}) > 1 and all(cell.seed is None for cell in cells):
        notes.append("The seeds change nothing: neither a perturbation nor a strategy draws anything. It is repeats "
                     "that ask again.")
    unknown = dict.fromkeys(name for cell in cells if cell.seed is not None for family in FAMILIES
                            if (name := getattr(cell, family)) and strategies[family][name].has_plugins)
    return notes + ([f"Each seed is a cell of its own under {' and '.join(unknown)}: whether a strategy that is none "
                     "of ragbed's draws anything is not known."] if unknown else [])


def finders_of(settings: RunSettings, retrievers: Sequence[RetrieverFactor]) -> dict[str, Finder]:
    """Return every finder that the settings describe, by name, whether or not a cell uses it."""
    found: dict[str, Finder] = {}
    for retriever in retrievers:
        for chunker in (None, *settings.chunkers):
            for embedder in (None, *settings.embedders):
                parts = (label(one) if one else None for one in (chunker, embedder))
                name = finder_name(retriever.name, *parts) or ""
                made: dict[str, Any] = {"chunker": chunker} if chunker else {}
                made |= {"embedder": embedder} if embedder else {}
                build = retriever.build.model_copy(update=made)
                found[name] = Finder(retriever.model_copy(update={"name": name, "build": build}), chunker is not None)
    return found


def strategies_of(settings: RunSettings, made: Callable[[Strategy], Strategy] = lambda one: one) -> Strategies:
    """Return every strategy that any part of the matrix names, by family and label; as data where not loaded."""
    parts = (settings, *settings.include)
    return {family: {one.label: made(one) for part in parts for one in getattr(part, family) or ()}
            for family in FAMILIES}

"""Turn the combinations of factor levels in a run's settings into distinct cells. Combinations that differ only in
factors without effect become one cell, which is run once."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragbed.agents.model_settings import NO_MODEL
from ragbed.experiments.cells import OWN, PIPELINE, Cell, Show, finder_name
from ragbed.experiments.conditions import Condition, Perturbation
from ragbed.experiments.metrics import may_refuse
from ragbed.experiments.query_variations import QueryVariation
from ragbed.experiments.question import Benchmark
from ragbed.experiments.settings.retrievers import Finder, RetrieverFactor, label
from ragbed.strategies.catalogue import CRESTS, SEARCH_ONLY
from ragbed.strategies.settings.prompt_texts import DEFAULT_PROMPTS
from ragbed.strategies.settings.strategy_config import Strategy
from ragbed.strategies.types import FAMILIES, Family

if TYPE_CHECKING:
    from ragbed.experiments.settings import RunSettings
    from ragbed.experiments.settings.matrix import Combination

Strategies = Mapping[Family, Mapping[str, Strategy]]  # by label


def expand_matrix(settings: RunSettings, benchmark: Benchmark, combinations: Sequence[Combination],
                  retrievers: Mapping[str, RetrieverFactor], strategies: Strategies) -> tuple[Cell, ...]:
    """Return the distinct cells of the combinations, in order. `retrievers` has all retrievers in the settings."""
    make = _CellMaker(settings, benchmark, combinations, retrievers, strategies)
    return tuple(dict.fromkeys(map(make.cell, combinations)))


OF_CHUNKS = ("index", "build", "over", "where")  # settings of a retriever that also choose what can be read


class _CellMaker:
    def __init__(self, settings: RunSettings, benchmark: Benchmark, combinations: Sequence[Combination],
                 retrievers: Mapping[str, RetrieverFactor], strategies: Strategies) -> None:
        self._settings, self._benchmark, self._strategies = settings, benchmark, strategies
        self._retrievers = {name: retrievers[name] for name in dict.fromkeys(one.retriever for one in combinations)}
        self._shows = next((one.condition for one in combinations if one.condition != "closed-book"), None)
        self._searching = next((one.retrieval for one in combinations if one.retrieval not in ("none", OWN)), "none")
        self._seeded = len({one.seed for one in combinations}) > 1
        self._subs = any(question.sub_questions for question in benchmark.questions)
        self._variations = {name for name in {one.variation for one in combinations} if name == "paraphrase" or any(
            QueryVariation.parse(name).apply(question.text) != question.text for question in benchmark.questions)}
        self._worded = any(one.prompt_variant > 1 for one in combinations)
        self._languages = any(one.language != "english" for one in combinations)
        self._headers = any(one.headers for one in combinations)
        self._prompts = any(one.prompts != DEFAULT_PROMPTS for one in combinations)
        self._turns = any(question.turns for question in benchmark.questions)
        # If one reply must answer all sub-questions, the prompt shows all of them.
        self._answers_subs = self._subs and settings.sub_answers == "in_prompt" and "chain" in benchmark.scheme.groups

    def cell(self, one: Combination) -> Cell:
        strategy = self._strategies["reasoning"].get(one.reasoning)
        if strategy is not None and not strategy.gathers:  # equal cells are merged
            one = replace(one, retrieval=self._searching,
                          retriever=one.retriever if strategy.searches else self._like(one.retriever))
        condition = one.condition
        change = effective_change(Perturbation.parse(one.perturbation), condition, one.retrieval, self._benchmark)
        if change.table and self._shows is not None:
            condition = self._shows
        found = None if change.table else self._finder(one)
        searched = condition == "retrieved" and not change.table
        retriever = self._retrievers[one.retriever]
        own = found is not None and retriever.index is None  # the run chunks and embeds by itself
        show: Show = "sub_questions" if self._answers_subs else one.show if self._subs else "question"
        is_pipeline = one.reasoning == PIPELINE
        asked = one.reasoning != SEARCH_ONLY and not is_pipeline
        return Cell(
            model=one.model, retrieval=one.retrieval if searched else None, retriever=found, reasoning=one.reasoning,
            rules="closed-book" if condition == "closed-book" else one.rules, condition=condition,
            perturbation=None if change == Perturbation() else str(change), show=show,
            format=one.format if found and has_index(retriever, self._benchmark) else None,
            benchmark=self._settings.benchmark.kind, repeat=one.repeat,
            seed=one.seed if self._seeded and self._uses_seed(change, one, searched) else None,
            chunker=one.chunker if own else None, embedder=one.embedder if own and retriever.embeds else None,
            history=one.history if self._turns and not is_pipeline else None,
            variation=one.variation if one.variation in self._variations else None,
            framing=one.framing if asked and condition != "closed-book" else None,
            headers=one.headers if self._headers and asked and condition != "closed-book" else None,
            answer_format=one.answer_format if asked else None,
            language=one.language if self._languages and asked and condition != "closed-book" and may_refuse(
                one.rules) else None,
            prompts=one.prompts if self._prompts and not is_pipeline and one.model != NO_MODEL else None,
            prompt_variant=one.prompt_variant if self._worded and asked and any(
                part.kind in CRESTS for part in self._strategies["reasoning"][one.reasoning].parts) else None)

    def _uses_seed(self, change: Perturbation, one: Combination, searched: bool) -> bool:
        """Return whether the seed can have an effect. ragbed's own strategies are not random, but plug-ins may be."""
        used = [] if one.reasoning == PIPELINE else [self._strategies["reasoning"][one.reasoning]]
        used += [self._strategies["retrieval"][one.retrieval]] if searched and one.retrieval != OWN else []
        used += [self._strategies["history"][one.history]] if self._turns else []
        return (change.shuffle or change.negatives > 0 or change.pool > 0 or one.variation.startswith("typos")
                or any(strategy.has_plugins for strategy in used))

    def _finder(self, one: Combination) -> str | None:
        """Return the retriever, chunker and embedder of the evidence; None if questions contain it or there is none."""
        if one.condition == "retrieved":
            return one.retriever if one.retrieval not in ("none", OWN) else None
        if {"gold": self._benchmark.gives_chunks, "full": self._benchmark.has_whole}.get(one.condition, True):
            return None
        return self._like(one.retriever)

    def _like(self, retriever: str) -> str:
        """Return the first retriever over the same chunks."""
        wanted = self._retrievers[retriever]
        return next(name for name, other in self._retrievers.items() if all(
            getattr(other, field) == getattr(wanted, field) for field in OF_CHUNKS))


def effective_change(change: Perturbation, condition: Condition, retrieval: str, benchmark: Benchmark) -> Perturbation:
    """Return the perturbation without its parts that have no effect, so that equal cells are merged."""
    if condition == "closed-book":
        return Perturbation()
    if condition == "retrieved" and retrieval == "none":
        return Perturbation(unnumbered=change.unnumbered)  # unnumbered also means no citations
    if not any(question.gold for question in benchmark.questions):
        change = replace(change, drop_gold=False, gold_at=0)
    if condition != "retrieved" or benchmark.corpus is not None:
        change = replace(change, pool=0, sort=change.sort if change.negatives else "")
    if condition == "gold" and not change.negatives:
        change = replace(change, gold_at=0)  # only gold is shown
    most = _max_chunks(change, condition, benchmark)
    return change if most is None or most > 1 else replace(change, shuffle=False, gold_at=0)


def _max_chunks(change: Perturbation, condition: Condition, benchmark: Benchmark) -> int | None:
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
    """Return whether the retriever searches an index rather than the questions' chunks."""
    return retriever.index is not None or benchmark.corpus is not None


def matrix_notes(combinations: Sequence[Combination], cells: Sequence[Cell], strategies: Strategies) -> list[str]:
    """Return notes on combinations that were merged into one cell, and on the effect of seeds."""
    notes = [] if len(combinations) == len(cells) else [
        f"{len(combinations)} combinations of the settings make {len(cells)} cells: combinations that differ only in "
        "factors without effect share a cell."]
    if len({one.seed for one in combinations}) > 1 and all(cell.seed is None for cell in cells):
        notes.append("The seeds have no effect: no perturbation or strategy is random. To ask questions several times, "
                     "use repeats.")
    unknown = dict.fromkeys(name for cell in cells if cell.seed is not None for family in FAMILIES
                            if (name := getattr(cell, family)) and strategies[family][name].has_plugins)
    return notes + ([f"Each seed is a separate cell under {' and '.join(unknown)}: ragbed cannot tell whether a custom "
                     "strategy uses it."] if unknown else [])


def list_finders(settings: RunSettings, retrievers: Sequence[RetrieverFactor]) -> dict[str, Finder]:
    """Return every finder that the settings describe (a retriever with a chunker and an embedder), by name."""
    found: dict[str, Finder] = {}
    for retriever in retrievers:
        for chunker in (None, *settings.chunkers):
            for embedder in (None, *settings.embedders):
                parts = (label(one) if one else None for one in (chunker, embedder))
                name = finder_name(retriever.name, *parts) or ""
                made: dict[str, Any] = {"chunker": chunker} if chunker else {}
                made |= {"embedder": embedder} if embedder else {}
                build = retriever.build.model_copy(update=made)
                found[name] = Finder(retriever.model_copy(update={"name": name, "build": build}))
    return found


def list_strategies(settings: RunSettings, load: Callable[[Strategy], Strategy] = lambda one: one) -> Strategies:
    """Return every strategy in the settings, by family and label. They are not loaded by default."""
    parts = (settings, *settings.include)
    return {family: {one.label: load(one) for part in parts for one in getattr(part, family) or ()}
            for family in FAMILIES}

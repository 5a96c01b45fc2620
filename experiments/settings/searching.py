"""A run that only searches: it asks for no answers, and what it measures is what was found."""
from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from agents.models import NO_MODEL
from experiments.question import Question
from experiments.scheme import RANKED, SPANS, Scheme
from strategies.catalogue import RETRIEVAL, SEARCH_ONLY, UNAIDED

# All of a batch of searches counts against each question of it, so that the deadline is no deadline of one.
_DEEP = 100  # chunks of a search where nothing else is said: the deepest cut of the columns
_SETTINGS = {"models": [NO_MODEL], "conditions": ["retrieved"], "limits": {"seconds": 86_400.0}}


def with_defaults(paper: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are given, with what is left out as the benchmark's paper has it, or as only searching needs
    it. A model that is given is asked, though the paper only searches."""
    if "models" in given and "reasoning" not in given and _only_searches(paper):
        paper = {name: value for name, value in paper.items() if name != "reasoning"}
    if not _only_searches({**paper, **given}):
        return {**paper, **given}
    usual = paper.get("retriever")
    k = usual.get("k", _DEEP) if isinstance(usual, Mapping) else _DEEP
    deep = {"retriever": _at_depth(given["retriever"], k)} if "retriever" in given else {}
    return {**paper, **_SETTINGS, **given, **deep}


def _at_depth(retriever: Any, k: int) -> Any:
    """Retrievers that say no `k` find as many as the columns look at."""
    if isinstance(retriever, list):
        return [_at_depth(one, k) for one in retriever]
    if isinstance(retriever, str):
        return {"kind": retriever, "k": k}
    return {"k": k, **retriever} if isinstance(retriever, Mapping) else retriever


def _only_searches(fields: Mapping[str, Any]) -> bool:
    return fields.get("reasoning") in (SEARCH_ONLY, [SEARCH_ONLY])


def check_searching(reasoning: Collection[str], retrieval: Collection[str], models: Collection[str],
                    conditions: Collection[str]) -> bool:
    """Whether a run only searches.

    Args:
        reasoning, retrieval, models, conditions: all that any of its combinations has.

    Raises:
        ValueError: it does so in a part of its cells, has a model that nothing asks, or none for a retrieval strategy
            that asks one, or lets nothing be searched.
    """
    if SEARCH_ONLY not in reasoning:
        if NO_MODEL in models:
            raise ValueError(f"models: {NO_MODEL} goes with reasoning: {SEARCH_ONLY} alone; name a model to ask")
        return False
    if len(reasoning) > 1:
        raise ValueError(f"reasoning: {SEARCH_ONLY} has other figures than strategies that answer; give it a run of "
                         "its own")
    asking = sorted(kind for kind in retrieval if kind not in UNAIDED)
    if set(models) != {NO_MODEL} and not asking:
        raise ValueError(f"models: {SEARCH_ONLY} asks no model; leave models out")
    if NO_MODEL in models and any(kind in RETRIEVAL for kind in asking):
        raise ValueError(f"models: {SEARCH_ONLY} asks none, but the retrieval strategy {asking[0]} does; name a model")
    if set(conditions) != {"retrieved"}:
        raise ValueError(f"conditions: {SEARCH_ONLY} measures what a search finds; leave conditions out")
    return True


def searching_scheme(questions: Collection[Question], usual: Scheme) -> Scheme:
    """What is measured of searches for these questions: characters too, where some gold is spans of them.

    Args:
        usual: the benchmark's own scheme.
    """
    gold = [item for question in questions for item in question.gold]
    spans = any(item.start is not None and item.chunk is None for item in gold)
    return replace(SPANS if spans else RANKED, published=usual.published, itself_ignored=usual.itself_ignored)

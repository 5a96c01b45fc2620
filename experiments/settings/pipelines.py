"""Pipelines of others in a run's matrix."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from ragbed.agents.pipelines.annotated import ChatCompletions
from ragbed.agents.pipelines.base import PipelineSettings
from ragbed.agents.pipelines.code import Python
from ragbed.agents.pipelines.command import CommandPipeline
from ragbed.agents.pipelines.frameworks import Haystack, LangChain, LlamaIndex
from ragbed.agents.pipelines.http import Http
from ragbed.agents.pipelines.predictions import Predictions
from ragbed.strategies.reasoning.pipeline import OWN, PIPELINE

Pipeline = Annotated[
    Http | ChatCompletions | LangChain | Haystack | LlamaIndex | Python | CommandPipeline | Predictions,
    Field(discriminator="kind")]


def check_pipelines(pipelines: Sequence[PipelineSettings], models: Sequence[str], only_searches: bool,
                    sub_answers: str) -> None:
    """Make sure that somebody is asked, that no two pipelines have one name, and that the run asks nothing of them that
    they cannot do; ValueError says what."""
    if not models and not pipelines:
        raise ValueError("models: an empty list; name at least one, or leave the key out")
    twice = next((name for name, count in Counter(one.name for one in pipelines).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two pipelines are called {twice}; give each a `name` of its own")
    if pipelines and (only_searches or sub_answers == "in_prompt"):
        raise ValueError("pipelines: each is asked one question at a time, for an answer; leave "
                         f"{'reasoning: search_only' if only_searches else 'sub_answers: in_prompt'} out")


def lists_of(one: PipelineSettings, base: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Return the lists that a pipeline has in the place of the run's: what it is sent no documents for, it finds by
    itself, in one way."""
    own: dict[str, Sequence[Any]] = {"model": [one.cell_model], "reasoning": [PIPELINE],
                                     "rules": [one.rules] if one.rules else base["rules"][:1],
                                     "show": ["question"], "retrieval": ["once"]}
    alone = ["framing", "history", "answer_format", "wording"]
    if not one.takes_documents:
        own |= {"condition": ["retrieved"], "perturbation": ["none"], "retrieval": [OWN]}
        alone += ["retriever", "format", "chunker", "embedder", "seed"]
    if one.recorded:
        own["variation"] = ["as_asked"]
    return {**base, **{name: base[name][:1] for name in alone}, **own}

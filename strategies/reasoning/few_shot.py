"""Few-shot prompting: worked examples before the question, around any strategy (Brown et al. 2020).

The examples come from a file, are checked against the benchmark's questions, and are shown as those of a run's own
setting `exemplars` are: after the documents, in the form that the strategy asks for. The paper shows no documents; an
example may bring its own.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.reasoning.chain_of_thought import chain_of_thought
from ragbed.strategies.settings.exemplars import Exemplars
from ragbed.strategies.types import Reasoning, Recipe, Task


def few_shot(task: Task, *, exemplars: Exemplars, of: Reasoning = chain_of_thought,
             count: Annotated[int, Field(ge=1)] | None = None) -> Recipe:
    """A strategy whose prompts show worked examples from a file: the first `count` of them, or all there are.

    They take the place of the run's own.
    """
    return (yield from of(replace(task, exemplars=exemplars.examples[:count])))

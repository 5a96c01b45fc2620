"""Few-shot prompting: worked examples before the question, around any strategy (Brown et al. 2020).

The examples come from a file and are checked against the benchmark's questions. They are shown after the documents, in
the form that the strategy asks for, like the run's setting `exemplars`. Unlike in the paper, an example may have
documents.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.reasoning.direct import chain_of_thought
from ragbed.strategies.settings.exemplars import Exemplars
from ragbed.strategies.types import Reasoning, Recipe, Task


def few_shot(task: Task, *, exemplars: Exemplars, of: Reasoning = chain_of_thought,
             count: Annotated[int, Field(ge=1)] | None = None) -> Recipe:
    """Show worked examples from a file, the first `count` or all, in the prompts of another strategy.

    These examples replace the run's setting `exemplars`.
    """
    return (yield from of(replace(task, exemplars=exemplars.examples[:count])))


few_shot.gathers = "of"  # type: ignore[attr-defined]

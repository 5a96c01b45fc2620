"""A reasoning model left to itself: no scaffold, and how hard it thinks as a setting (OpenAI 2024; Guo et al. 2025).

What such a model thinks the server sends apart, or in `<think>`, and the record keeps it; the reply itself is asked to
be the answer alone.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from ragbed.strategies.answering import ask_for_answer, draft
from ragbed.strategies.prompting import template
from ragbed.strategies.types import Recipe, Task

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


def native(task: Task, *, effort: Effort | None = None,
           max_tokens: Annotated[int, Field(ge=16, le=1_000_000)] | None = None) -> Recipe:
    """One call that says nothing of how to reason; for models that do so by themselves.

    The effort is sent as `reasoning_effort`, of which each server knows some; without, what the run's settings say.
    Thinking counts among the tokens of the reply, of which there are as many as in every other call unless `max_tokens`
    says otherwise: what is cut while it thinks holds no answer.
    """
    evidence = yield from task.gather(task.question)
    call = ask_for_answer(task, template("native"), evidence, thinks=False)
    return (yield from draft(replace(call, effort=effort, max_tokens=max_tokens), task, thinks=False,
                              last=True))

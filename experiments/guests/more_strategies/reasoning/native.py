"""Native reasoning: let a reasoning model think without instructions (OpenAI 2024; Guo et al. 2025).

The server sends the model's thinking separately or in `<think>`, and the record keeps it. The reply itself is the
answer.
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
    """Answer in one call without reasoning instructions; for reasoning models.

    `effort` is sent as `reasoning_effort`; servers support different values. Thinking counts towards the reply's
    tokens, so set `max_tokens` higher: a reply that is cut off while thinking has no answer.
    """
    evidence = yield from task.gather(task.question)
    call = ask_for_answer(task, template("native"), evidence, thinks=False)
    return (yield from draft(replace(call, effort=effort, max_tokens=max_tokens), task, thinks=False,
                              last=True))

"""Calls of a configuration's model alone, without a search: prompts of client programs, such as for a title."""
from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ragbed.agents.types import Answer, GenerateStep, Outcome, failed_answer
from ragbed.strategies.reading import strip_thinking
from ragbed.strategies.types import Failure, Generate, Message, Usage

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant

TASKS = "task:"  # before a configuration's name, in records and metrics of such calls
_TASK = "### Task:"  # how Open WebUI's own prompts begin: titles, tags, follow-up questions
_TASK_TOKENS = 256  # limit of a reply
_OUTCOMES: Mapping[str, Outcome] = {"timeout": "timeout", "too_long": "too_long", "budget": "budget"}


def is_task(prompt: str) -> bool:
    """Tell whether a client program wrote this prompt for itself."""
    return prompt.lstrip().startswith(_TASK)


def task_call(prompt: str) -> Generate:
    """Return the call that answers such a prompt."""
    return Generate((Message("user", (prompt,)),), "task", max_tokens=_TASK_TOKENS)


async def answer_call(assistant: Assistant, call: Generate) -> Answer:
    """Call an assistant's model once, and return the reply as an answer without evidence."""
    started = time.monotonic()
    asked = await assistant.model.ask(call, started + assistant.client.limits.seconds)
    cost = replace(asked.cost, seconds=time.monotonic() - started)
    reply = asked.outcome
    if isinstance(reply, Failure):
        step = GenerateStep(call.purpose, asked.key, call.messages, (), "", "", "", Usage(), reply)
        return replace(failed_answer(reply), outcome=_OUTCOMES.get(reply.kind, "error"), trace=(step,), cost=cost)
    step = GenerateStep(call.purpose, asked.key, call.messages, (), reply.text, reply.reasoning, reply.finish_reason,
                        reply.usage)
    return Answer("answered", strip_thinking(reply.text).strip(), False, (), (), (), (step,), reply.usage,
                  notes=("cut",) if reply.finish_reason == "length" else (), cost=cost)

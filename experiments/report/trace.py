"""The steps of one answer as the page gets them: what was searched, what was sent, what came back."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.asked import called as in_words
from experiments.record import StoredMessage, StoredPassage, StoredStep
from experiments.report.text import bounded, shown, visible
from experiments.report.texts import Texts

REPLY = 12_000


def steps(trace: Sequence[StoredStep], evidence: Sequence[StoredPassage], texts: Texts) -> list[dict[str, Any]]:
    """The trace, each step without the fields that are empty."""
    keys = tuple(passage.text for passage in evidence)
    return [{name: value for name, value in _step(step, keys, texts).items() if value} for step in trace]


def _step(step: StoredStep, evidence: tuple[str, ...], texts: Texts) -> dict[str, Any]:
    failure = shown(f"{step.failure.kind}: {step.failure.message}", REPLY) if step.failure else ""
    if step.kind == "search":
        return {"query": shown(step.query or "(no words)", REPLY), "found": step.found, "failure": failure}
    if step.kind == "decision":
        return {"decided": shown(step.purpose or "", REPLY), "why": shown(step.text, REPLY)}
    usage = step.usage
    return {"purpose": visible(step.purpose or step.kind),
            "messages": [_message(message, evidence, texts) for message in step.messages],
            "reply": shown(step.text, REPLY), "reasoning": shown(step.reasoning, REPLY),
            "calls": list(map(_called, step.tool_calls)),
            "ended": visible(step.finish_reason), "failure": failure,
            "tokens": [usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens]}


def _message(message: StoredMessage, evidence: tuple[str, ...], texts: Texts) -> list[Any]:
    """The role, the numbers of its parts, and in words the tools that it calls and the call that it answers."""
    return [visible(message.role), *(texts.prompt(key, evidence) for key in message.parts),
            *map(_called, message.tool_calls), *([visible(f"answers {message.call_id}")] if message.call_id else [])]


def _called(call: Mapping[str, Any]) -> str:
    return bounded(in_words(call), REPLY).text

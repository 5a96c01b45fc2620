"""The steps of one answer: what was searched, what was sent, what came back."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from experiments.record import StoredMessage, StoredStep
from experiments.report.store import Ref, TextStore
from experiments.report.text import Bounded, bounded, visible

REPLY = 12_000
LONG = 1_200
SHARED = 300


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message. `folded` pieces are long, or are the documents that several prompts share."""

    ref: Ref
    folded: bool
    shared: bool


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step as shown. A search has `query`; a model call has `messages`."""

    number: int
    kind: str
    title: str
    query: Bounded
    found: tuple[int, ...]
    messages: tuple[Message, ...]
    reply: Bounded
    reasoning: Bounded
    finish_reason: str
    tokens: str
    failure: str


def steps(trace: Sequence[StoredStep], store: TextStore, shared: Collection[str]) -> list[Step]:
    """The trace as shown.

    Args:
        shared: hashes of parts that more than one prompt of this question holds.
    """
    return [_step(number, step, store, shared) for number, step in enumerate(trace, 1)]


def _step(number: int, step: StoredStep, store: TextStore, shared: Collection[str]) -> Step:
    return Step(
        number=number, kind=step.kind, title=visible(step.purpose or step.kind), query=bounded(step.query or "", REPLY),
        found=step.found, messages=tuple(_message(message, store, shared) for message in step.messages),
        reply=bounded(step.text, REPLY), reasoning=bounded(step.reasoning, REPLY),
        finish_reason=visible(step.finish_reason), tokens=_tokens(step), failure=_failure(step))


def _message(message: StoredMessage, store: TextStore, shared: Collection[str]) -> Message:
    return Message(visible(message.role),
                   tuple(_part(key, store, key in shared and message.role == "user") for key in message.parts))


def _part(key: str, store: TextStore, shared: bool) -> Part:
    ref = store.ref(key)
    return Part(ref, folded=ref.size > (SHARED if shared else LONG), shared=shared)


def _tokens(step: StoredStep) -> str:
    usage = step.usage
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    return f"{usage.prompt_tokens:,} prompt tokens{cached}, {usage.completion_tokens:,} completion tokens"


def _failure(step: StoredStep) -> str:
    return visible(f"{step.failure.kind}: {step.failure.message}"[:REPLY]) if step.failure else ""

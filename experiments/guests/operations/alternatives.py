"""Answer from a cache, or with a second model if the first one fails or is slow."""
from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ragbed.agents.models import open_model
from ragbed.agents.types import Answer, Cost, ToolStep
from ragbed.documents.errors import SettingsError
from ragbed.documents.keys import redact_keys
from ragbed.documents.types import digest
from ragbed.experiments.guests.operations.request_log import current_request
from ragbed.experiments.guests.operations.serve_settings import ServeSettings
from ragbed.strategies.prompting import prompts_hash
from ragbed.strategies.types import Turn, Usage

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.agents.client import ModelClient
    from ragbed.experiments.guests.serving.configurations import ConfigurationSettings
    from ragbed.experiments.guests.traffic.turns import ChatTurn

Emit = Callable[[dict[str, Any]], None]
Play = Callable[["ChatTurn", Emit], Awaitable[Answer]]  # plays a turn to its end, also if it is cancelled
_MAX_ANSWERS, _MAX_CHARACTERS = 1_000, 50_000_000  # in the cache
_MAX_FAILURES = 3  # in a row, after which the first model is not asked for a while
_PAUSE_SECONDS = 30.0
_KEPT = ("stopped", "settings", "internal", "interrupted", "budget", "too_long", "strategy",
         "store", "withheld")  # not the model's failures


class AnswerCache:
    """Answers by the content of their request, for a limited time. The oldest are removed first."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[float, int, Answer]] = OrderedDict()
        self._characters = 0

    def find(self, key: str) -> Answer | None:
        """Return a stored answer that has not expired. It costs nothing, so it has no usage and no steps."""
        until, _, answer = self._answers.get(key, (0.0, 0, None))
        if answer is None or time.monotonic() >= until:
            return None
        return replace(answer, usage=Usage(), cost=Cost(), trace=(), notes=(*answer.notes, "cached"))

    def keep(self, key: str, answer: Answer, seconds: float) -> None:
        """Store an answer or a refusal. Failed and malformed answers are not stored, and neither are those of agents
        that called tools, because what these read is not all in the answer."""
        if answer.failure is not None or answer.outcome not in ("answered", "refused") or any(
                isinstance(step, ToolStep) for step in answer.trace):
            return
        self._remove(key)
        size = len(answer.text) + sum(len(one.chunk.content) for one in answer.evidence)
        self._answers[key] = time.monotonic() + seconds, size, replace(answer, trace=())
        self._characters += size
        while len(self._answers) > _MAX_ANSWERS or self._characters > _MAX_CHARACTERS:
            self._remove(next(iter(self._answers)))

    def clear(self) -> None:
        """Remove all answers."""
        self._answers.clear()
        self._characters = 0

    def _remove(self, key: str) -> None:
        _, size, _ = self._answers.pop(key, (0.0, 0, None))
        self._characters -= size


def cache_key(turn: ChatTurn, earlier: Sequence[Turn], deletion: str) -> str:
    """Return a hash of everything that an answer depends on: settings, model, prompts, the part of the index that the
    key's owner may read, filter, history, question, and the last deletion before it."""
    asked = [turn.question, list(turn.where), list(map(asdict, earlier))]
    return digest(turn.configuration, json.dumps(turn.assistant.made, sort_keys=True, default=str), prompts_hash(),
                  turn.assistant.index.content, json.dumps(asked), deletion)


@dataclass(slots=True)
class _Plan:
    """How the questions to one configuration are answered."""

    settings: ServeSettings
    client: ModelClient | None = None
    failures: int = 0  # of the first model, in a row
    until: float = 0.0  # when the first model is asked again, in `time.monotonic` seconds
    spare: WeakKeyDictionary[Assistant, Assistant] = field(default_factory=WeakKeyDictionary)

    def note(self, failed: bool) -> None:
        self.failures = self.failures + 1 if failed else 0
        if self.failures >= _MAX_FAILURES:
            self.until = time.monotonic() + _PAUSE_SECONDS

    def with_fallback(self, assistant: Assistant) -> Assistant:
        """Return an assistant with the second model and without a checkpointer."""
        from ragbed.agents.assistant import Assistant

        if assistant not in self.spare:
            assert self.client is not None
            settings = assistant.settings.model_copy(update={"model": self.settings.fallback})
            self.spare[assistant] = Assistant(settings, assistant.index, self.client, None, assistant.deps,
                                              assistant.strategies, assistant.searcher, assistant.tools)
        return self.spare[assistant]


class Alternatives:
    """The answer cache and the fallback models of a server. `last_deletion` is that of `Traffic`."""

    def __init__(self, last_deletion: Callable[[], Awaitable[str]]) -> None:
        self.cache, self._last_deletion = AnswerCache(), last_deletion
        self._plans: dict[str, _Plan] = {}

    @property
    def clients(self) -> list[ModelClient]:
        """Return the clients of the fallback models."""
        return [plan.client for plan in self._plans.values() if plan.client is not None]

    async def open(self, stack: AsyncExitStack, settings: Sequence[ConfigurationSettings],
                   options: Mapping[str, Any]) -> None:
        """Open the fallback models of configurations; `options` come from the command line. Raises UserError if a
        model cannot be opened, or an option has no effect."""
        clients: dict[tuple[str, str], ModelClient] = {}
        for one in settings:
            serve, own = one.serve.merged(options), one.settings
            if serve.fallback == own.model:
                raise SettingsError(f"fallback {serve.fallback}: this is the model of {one.name}; name another one")
            key = serve.fallback or "", own.calls.model_dump_json()
            if serve.fallback and key not in clients:
                clients[key] = await stack.enter_async_context(open_model(serve.fallback, own.calls))
            self._plans[one.name] = _Plan(serve, clients.get(key))

    async def answer(self, turn: ChatTurn, emit: Emit, play: Play, restart: Callable[[], None],
                     has_text: Callable[[], bool]) -> tuple[ChatTurn, Answer]:
        """Answer a turn from the cache, or by playing it, if need be again with the second model.

        Args:
            restart: called before the turn is played again.
            has_text: whether text of the answer was sent. After that, the first model's answer is final.

        Returns:
            The turn, with the assistant that answered, and the answer, with the note `cached` or `fallback`.
        """
        plan = self._plans.get(turn.configuration)
        if plan is None or (plan.client is None and not plan.settings.cache):
            return turn, await play(turn, emit)
        earlier = await turn.assistant.turns(turn.thread) if turn.history is None else turn.history
        key = cache_key(turn, earlier, await self._last_deletion()) if plan.settings.cache else ""
        if key and not current_request().fresh and (found := self.cache.find(key)):
            await _save(turn, earlier, found)
            return turn, found
        first: Answer | None = None
        if plan.client is None or time.monotonic() >= plan.until:
            first, failed = await self._try(plan, turn, emit, play, has_text)
            if not failed:
                if key:
                    self.cache.keep(key, first, plan.settings.cache)
                return turn, first
        restart()
        spare = replace(turn, assistant=plan.with_fallback(turn.assistant), history=tuple(earlier))
        answer = await play(spare, emit)
        answer = replace(answer, notes=(*answer.notes, "fallback"),
                         usage=answer.usage + first.usage if first else answer.usage)
        await _save(turn, earlier, answer)
        configured = turn.configured and plan.with_fallback(turn.configured)
        return replace(turn, assistant=spare.assistant, configured=configured), answer

    async def _try(self, plan: _Plan, turn: ChatTurn, emit: Emit, play: Play,
                   has_text: Callable[[], bool]) -> tuple[Answer, bool]:
        """Play a turn with the first model. Return its answer, and whether the second model should answer instead."""
        if plan.client is None:
            return await play(turn, emit), False
        task = asyncio.ensure_future(play(turn, emit))
        end = time.monotonic() + plan.settings.fallback_after
        slow = False
        try:
            while not task.done() and not has_text() and not slow:
                await asyncio.wait({task}, timeout=min(0.05, max(end - time.monotonic(), 0.0)))
                slow = time.monotonic() >= end
            slow = slow and not task.done() and not has_text()
            if not slow:
                await asyncio.wait({task})
        except asyncio.CancelledError:  # the client has left
            task.cancel()
            return await task, False
        if slow:
            task.cancel()
        answer = await task
        failed = slow or (answer.failure is not None and answer.failure.kind not in _KEPT and not has_text())
        plan.note(failed)
        if failed:
            why = "no text in time" if slow or answer.failure is None else redact_keys(answer.failure.message)
            logging.getLogger("ragbed").warning("%s: the fallback model answers: %s", turn.configuration, why[:500])
        return answer, failed


async def _save(turn: ChatTurn, earlier: Sequence[Turn], answer: Answer) -> None:
    """Store an answer in a thread that the server keeps, so that the next question continues it."""
    from ragbed.agents.graph import answer_to_json

    if turn.history is None:
        state = turn.assistant.begin(turn.question, thread=turn.thread, turns=earlier)
        await turn.assistant.graph.aupdate_state(
            {"configurable": {"thread_id": turn.thread}}, {**state, "answer": answer_to_json(answer)}, as_node="finish")

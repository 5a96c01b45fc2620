"""The client of a pipeline: a model's, whose deadlines, retries and places it shares."""
from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.models import NoCalls
from ragbed.agents.pipelines.base import Channel, PipelineSettings, fields_of
from ragbed.agents.replies import Tell, priced
from ragbed.agents.settings import ModelSettings
from ragbed.agents.types import without_key
from ragbed.documents.http import MAX_REPLY_BYTES, Address, BadReply
from ragbed.documents.json import loads
from ragbed.strategies.types import Generate, Reply, Usage

if TYPE_CHECKING:
    from ragbed.agents.openai_chat import Chat
    from ragbed.agents.refusals import Way
    from ragbed.documents.http import Response


class PipelineClient(ModelClient):
    """Asks one pipeline. Args: `channel` is None in a replay, which makes no call."""

    def __init__(self, pipeline: PipelineSettings, identity: str, channel: Channel | None,
                 calls: ModelSettings) -> None:
        given = calls.prices.get(pipeline.cell_model)
        limits = calls.calls
        if pipeline.concurrency is not None:
            limits = limits.model_copy(update={"concurrency": pipeline.concurrency})
        at = NoCalls("this pipeline was opened for a replay, which makes no calls") if channel is None else \
            Address(channel.url, channel.key)
        super().__init__(pipeline.cell_model, identity, pipeline.name, at,
                         (lambda *tokens: None) if given is None else priced(given), limits)
        self._pipeline = pipeline
        if isinstance(at, Address):
            self._chat, self._at = cast("Chat", channel), at

    @property
    def estimated(self) -> bool:
        """Say no: what it asks its models is not known here."""
        return False

    @property
    def priced(self) -> bool:
        """Say yes: a reply that has no price makes what was paid unknown."""
        return True

    def parameters(self, action: Generate, max_tokens: int, repeat: int = 0) -> dict[str, Any]:
        """Return the repeat, if it is not the first: what a pipeline is set to is its own business, and part of its
        identity as far as it is known."""
        return {"repeat": repeat} if repeat else {}

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: Tell | None = None) -> Completion:
        """Make one call, whose answer comes whole; raises as `ModelClient.complete`."""
        return await super().complete(action, max_tokens=max_tokens, deadline=deadline, repeat=repeat)

    def _read(self, answer: Response, at: Address, action: Generate, way: Way) -> tuple[Reply, Mapping[str, Any]]:
        if len(answer.body) > MAX_REPLY_BYTES:
            raise BadReply(f"it returned more than {MAX_REPLY_BYTES >> 20} MB")
        returned = self._pipeline.read(loads(answer.body, mend=True), fields_of(action.messages[0].content))
        tokens = returned.prompt_tokens, returned.completion_tokens
        price = returned.price if returned.price is not None else self.price_of(*tokens)
        reply = Reply(returned.model_dump_json(exclude_defaults=True),
                      parsed=returned.model_dump(mode="json", exclude_defaults=True), usage=Usage(*tokens, 0, 1, price))
        return without_key(reply, at.key), {}


@contextlib.asynccontextmanager
async def open_pipeline(pipeline: PipelineSettings, calls: ModelSettings,
                        known: str | None = None) -> AsyncIterator[PipelineClient]:
    """Open a client of a pipeline, closed at the end. In a replay its identity is `known`, and nothing of it is read,
    executed or reached. Raises UserError where it cannot be opened."""
    channel = None if known is not None else pipeline.open(calls.calls)
    client = PipelineClient(pipeline, known or pipeline.identity, channel, calls)
    try:
        yield client
    finally:
        await client.aclose()

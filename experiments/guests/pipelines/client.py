"""A pipeline's client: a model's client, with its deadlines, retries and concurrency, that sends another request."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ragbed.agents.client import Completion, ModelClient
from ragbed.agents.models import NoCalls
from ragbed.agents.replies import OnEvent, fixed_price
from ragbed.agents.settings import ModelSettings
from ragbed.agents.types import redact_reply
from ragbed.documents.http import MAX_REPLY_BYTES, Address, BadReply
from ragbed.documents.json import loads
from ragbed.experiments.guests.pipelines.base import Channel, JSONPipeline, parse_fields
from ragbed.strategies.types import Generate, Reply, Usage

if TYPE_CHECKING:
    from ragbed.agents.http_errors import StreamMode
    from ragbed.agents.openai_chat import Chat
    from ragbed.documents.http import Response


class PipelineClient(ModelClient):
    """Asks one pipeline. `channel` is None in a replay, which makes no call."""

    def __init__(self, pipeline: JSONPipeline, identity: str, channel: Channel | None, calls: ModelSettings) -> None:
        prices = calls.prices.get(pipeline.cell_model)
        limits = calls.calls
        if pipeline.concurrency is not None:
            limits = limits.model_copy(update={"concurrency": pipeline.concurrency})
        at = NoCalls("this pipeline was opened for a replay, which makes no calls") if channel is None else \
            Address(channel.url, channel.key)
        super().__init__(pipeline.cell_model, identity, pipeline.name, at,
                         (lambda *tokens: None) if prices is None else fixed_price(prices), limits)
        self._pipeline = pipeline
        if isinstance(at, Address):
            self._chat, self._at = cast("Chat", channel), at

    @property
    def estimated(self) -> bool:
        """Return False: the calls that the pipeline makes to its models are unknown."""
        return False

    @property
    def fixed_price(self) -> bool:
        """Return True: a reply without a price makes the run's cost unknown."""
        return True

    def parameters(self, action: Generate, max_tokens: int, repeat: int = 0) -> dict[str, Any]:
        """Return the repeat if it is not the first. A pipeline's other parameters are part of its identity."""
        return {"repeat": repeat} if repeat else {}

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None, repeat: int = 0,
                       tell: OnEvent | None = None) -> Completion:
        """Make one call, whose answer is not streamed. Raises as `ModelClient.complete`."""
        return await super().complete(action, max_tokens=max_tokens, deadline=deadline, repeat=repeat)

    def _read(self, answer: Response, at: Address, action: Generate,
              way: StreamMode) -> tuple[Reply, Mapping[str, Any]]:
        if len(answer.body) > MAX_REPLY_BYTES:
            raise BadReply(f"it returned more than {MAX_REPLY_BYTES >> 20} MB")
        returned = self._pipeline.read(loads(answer.body, mend=True), parse_fields(action.messages[0].content))
        tokens = returned.prompt_tokens, returned.completion_tokens
        price = returned.price if returned.price is not None else self.price_of(*tokens)
        reply = Reply(returned.model_dump_json(exclude_defaults=True),
                      parsed=returned.model_dump(mode="json", exclude_defaults=True), usage=Usage(*tokens, 0, 1, price))
        return redact_reply(reply, at.key), {}

"""Send a strategy's calls to a model, with deadlines and retries, and return replies and their cost."""
from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from ragbed.agents.http_errors import (
    NOT_STREAMED,
    StreamMode,
    StreamNegotiator,
    error_from_response,
    is_overload,
    other_limit,
    refused_parameter,
)
from ragbed.agents.limits import CallClock, CallSlot, CallSlots, Pace
from ragbed.agents.model_settings import MAX_IN_FLIGHT, CallLimits, Context, Endpoint, ModelConfig
from ragbed.agents.replies import OnEvent, Pricer, read_reply, server_timings
from ragbed.agents.types import message_to_json, redact_reply
from ragbed.documents.errors import CallError, CallTimeout
from ragbed.documents.http import Address, BadReply, backoff_delay, is_transient, retry_after, sanitize_line
from ragbed.documents.json import loads
from ragbed.strategies.types import Generate, Reply

if TYPE_CHECKING:
    from ragbed.documents.http import Response


class Chat(Protocol):
    """A connection to a model's server, as in `ragbed.agents.openai_chat`. Guests add other protocols."""

    def body(self, messages: list[dict[str, Any]], parameters: Mapping[str, Any]) -> dict[str, Any]: ...

    async def post(self, body: Mapping[str, Any]) -> Response: ...

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response: ...

    async def aclose(self) -> None: ...


Connect = Callable[[Address, str, CallLimits], Chat]
"""Function from an address, a served model and limits to a connection, which makes no retries."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A successful call: its reply, number of requests, seconds in total, and llama.cpp's timings."""

    reply: Reply
    attempts: int
    seconds: float
    server_timings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Progress:
    attempts: int = 0
    failed: int = 0  # failed attempts, except rate-limited ones
    last: str = ""


class ModelClient:
    """Client of one model. It handles deadlines and retries, and makes as many concurrent calls as the server accepts.

    Args:
        name: name to display, as the user wrote it.
        identity: identifies the model in the journal: its served name, or `sha256:` and the weights' hash.
        served: name in the request body.
        price: function that returns the price of prompt, completion and cached tokens in US dollars.
        temperature: default for actions without one. If None, no temperature is ever sent.
        effort: sent as `reasoning_effort`; None sends none.
        context: the model's context, if known. Longer prompts are not sent.
        config: the model's own settings, of which the body's fields and the pace are used here.
        connect: connects to the server; by default, one that speaks OpenAI's protocol.
        served_by: what serves the model, such as its address; None if other runs must not reuse its replies.
    """

    def __init__(self, name: str, identity: str, served: str, endpoint: Endpoint | Address, price: Pricer,
                 limits: CallLimits, temperature: float | None = 0.0, effort: str | None = None,
                 context: Context | None = None, config: ModelConfig | None = None, connect: Connect | None = None,
                 served_by: str | None = None) -> None:
        self.name, self.identity, self.limits, self.context = name, identity, limits, context
        self.served_by, self._connect = served_by, connect or _connect
        self._temperature, self._effort = temperature, effort
        self._config = config or ModelConfig.model_construct(model=name)
        self._pace = Pace(self._config.requests_per_minute)
        self._refused: dict[str, str | None] = {}  # what to send instead of each refused parameter
        self._served, self._endpoint, self._price = served, endpoint, price
        self._places = CallSlots(limits.concurrency, limits.seconds)
        self._connecting = asyncio.Lock()
        self._accepted = False
        self._ways = StreamNegotiator()
        self._chat: Chat | None = None
        self._at: Address | None = None

    @property
    def places(self) -> int:
        """Return the current limit on concurrent calls, at most `limits.concurrency`."""
        return self._places.count

    def allow(self, concurrency: int | None) -> int:
        """Return how many questions may be in progress if the user wants this many; None for the number of the limits.
        A server gets more call slots for more. Local models and pipelines get no more than the limits allow."""
        most = self.limits.concurrency
        if concurrency is None or not (self.served_by or "").startswith("http"):
            return min(concurrency or most, most)
        self._places.raise_ceiling(concurrency)
        return concurrency

    @property
    def waiting(self) -> int:
        return self._places.waiting

    @property
    def rate_limited(self) -> int:
        """Return the number of rate-limited requests so far."""
        return self._places.rate_limits

    @property
    def estimated(self) -> bool:
        """Tell whether to estimate tokens from the texts if the server does not count them."""
        return True

    @property
    def priced(self) -> bool:
        """Tell whether the price of calls is known."""
        return self.price_of(1000, 1000) is not None

    def price_of(self, prompt: int, completion: int) -> float | None:
        """Return the price of a call in US dollars; None if it is unknown."""
        return self._price(prompt, completion, 0)

    def reprice(self, reply: Reply) -> Reply:
        """Return an earlier reply at the present price."""
        usage = reply.usage
        price = self._price(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        return replace(reply, usage=replace(usage, price=price))

    def parameters(self, action: Generate, max_tokens: int, repeat: int = 0) -> dict[str, Any]:
        """Return all parameters of the request body except the messages, as JSON. They are part of a call's key, so
        parameters that the server refused stay among them."""
        sent: dict[str, Any] = {"max_tokens": self._limit(action, max_tokens)}
        if self._config.extra_body:
            sent["extra_body"] = self._config.extra_body
        temperature = self._temperature
        if temperature is not None:
            temperature = sent["temperature"] = temperature if action.temperature is None else action.temperature
        if (effort := action.effort or self._effort) is not None:
            sent["reasoning_effort"] = effort
        if action.stop:
            sent["stop"] = list(action.stop)
        if action.tools:
            sent["tools"] = [dict(tool) for tool in action.tools]
            if action.tool_choice != "auto":
                sent["tool_choice"] = action.tool_choice
        if action.schema is not None:
            sent["response_format"] = {"type": "json_schema", "json_schema": {
                "name": "reply", "strict": True, "schema": dict(action.schema)}}
        # The first greedy sample needs no seed, and some servers reject unknown parameters.
        if repeat or action.sample or (temperature or 0) > 0:
            sent["seed"] = repeat * 1000 + action.sample
        return sent

    def _limit(self, action: Generate, max_tokens: int) -> int:
        return self._config.max_tokens if self._config.max_tokens and action.max_tokens is None else max_tokens

    async def ready(self) -> None:
        """Connect, or start a local server, ahead of the first question. Raises ModelError if that fails."""
        await self.connection()

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None,
                       repeat: int = 0, tell: OnEvent | None = None) -> Completion:
        """Make one call.

        Args:
            tell: called with pieces of the reply as they arrive. If None, the reply is not streamed.
            deadline: deadline of the question, in `time.monotonic` seconds. See `CallClock` for that of the call.

        Raises:
            CallTimeout: the deadline of the call or of the question has passed; the message says which.
            CallTooLong: the prompt does not fit the model's context.
            CallError: the call failed after all attempts.
            ModelError: every call would fail, because the key is rejected or the model is unknown.
        """
        if self.context is not None:
            self.context.check(action.messages, self._limit(action, max_tokens))
        loop = asyncio.get_running_loop()
        question = None if deadline is None else loop.time() + deadline - time.monotonic()
        progress, place = _Progress(), self._places.claim()
        try:
            async with asyncio.timeout_at(question) as timeout:
                clock = CallClock(timeout, self.limits.seconds, question)
                parameters = self.parameters(action, max_tokens, repeat)
                return await self._send_with_retries(action, parameters, clock, place, progress, tell)
        except TimeoutError:
            tries = f" after {progress.attempts} attempts" if progress.attempts > 1 else ""
            last = f"; previous failure: {progress.last}" if progress.last else ""
            if question is not None and loop.time() >= question:
                when = tries if progress.attempts else " before the call was sent"
                raise CallTimeout(f"the question's deadline passed{when}{last}", "timeout_question",
                                  progress.attempts) from None
            raise CallTimeout(f"no reply within the call's {self.limits.seconds:g} s{tries}{last}", "timeout_call",
                              progress.attempts) from None
        finally:
            self._places.give_back(place)

    async def aclose(self) -> None:
        """Close the connections, and stop a local server."""
        if self._chat is not None:
            await self._chat.aclose()
            self._chat = self._at = None
        if not isinstance(self._endpoint, Address):
            await self._endpoint.aclose()

    async def _send_with_retries(self, action: Generate, parameters: Mapping[str, Any], clock: CallClock,
                                 place: CallSlot, progress: _Progress, tell: OnEvent | None) -> Completion:
        messages = [message_to_json(message) for message in action.messages]
        started = 0.0
        while True:
            await self._wait_for_turn(place, clock)
            started = started or time.monotonic()
            chat, at = await self.connection()
            progress.attempts += 1
            if tell is not None and progress.last:
                tell("retry", progress.last)
            wait, way = None, NOT_STREAMED if tell is None else self._ways.next()
            body, unsent = self.without_refused(chat.body(messages, parameters))
            try:
                answer = await (chat.post_streamed(way.body(body), tell, at.key) if tell and way.pieces else
                                chat.post(body))
                if answer.status == 200:
                    self._accepted = True
                    self._places.count_success()
                    reply, speed = self._read(answer, at, action, way)
                    reply = replace(reply, unsent=(self._served, *unsent)) if unsent else reply
                    return Completion(reply, progress.attempts, time.monotonic() - started, speed)
                if self._ways.refuses(way, answer.status, answer.body) or self._refuses(answer, body):
                    continue
                failure = error_from_response(answer.status, answer.body, at, self.name, progress.attempts,
                                              self._accepted)
                if not isinstance(failure, CallError) or not is_transient(answer.status, answer.body):
                    raise failure
                wait = retry_after(answer.headers)
                if is_overload(answer.status, answer.body, wait):
                    progress.last = str(failure)
                    seconds = self._places.count_rate_limit(place, wait)
                    _check_time(failure, wait, seconds, clock.left)
                    clock.pause(seconds)
                    await asyncio.sleep(seconds)
                    continue
            except ConnectionError as error:
                failure = CallError(f"{self.name}: no complete reply: {sanitize_line(str(error), at.key)}",
                                    "connection", progress.attempts)
            except BadReply as error:
                raise CallError(f"{self.name}: {error}", "bad_response", progress.attempts) from None
            except ValueError:
                failure = CallError(f"{self.name}: the reply is not JSON", "bad_json", progress.attempts)
            await self._wait_before_retry(failure, wait, clock, progress)

    async def _wait_for_turn(self, place: CallSlot, clock: CallClock) -> None:
        """Wait for a slot and, if requests per minute are limited, for the next request's time."""
        paced = not self._pace.limits
        while not (paced and self._places.may_send(place)):
            clock.pause()
            if not self._places.may_send(place):
                await self._places.take(place)
            if not paced:
                await self._pace.turn()
                paced = True
            clock.run()

    def without_refused(self, body: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return a body without the parameters that the server refused, and their names."""
        field, unsent = self._config.max_tokens_field, []
        if field and (other := str(other_limit(field))) in body:
            body[field] = body.pop(other)
        for name, instead in self._refused.items():
            if name in body:
                value = body.pop(name)
                unsent.append(f"{name} (sent as {instead})" if instead else name)
                if instead:
                    body[instead] = value
        return body, unsent

    def _refuses(self, answer: Response, body: Mapping[str, Any]) -> bool:
        """Tell whether the server refused a parameter of this body, which can be sent again without it."""
        name = refused_parameter(answer.status, answer.body, body)
        instead = name and other_limit(name)
        if name is None or instead in self._refused:  # the server refuses both names of the limit
            return False
        if name not in self._refused:
            self._refused[name] = instead
            logging.getLogger(__name__).warning("%s: the server refuses %s, so calls are sent %s", self.name, name,
                                                f"with {instead}" if instead else "without it")
        return True

    def _read(self, answer: Response, at: Address, action: Generate,
              way: StreamMode) -> tuple[Reply, Mapping[str, Any]]:
        data = loads(answer.body, mend=True)
        reply = redact_reply(read_reply(data, action.schema, self._price), at.key)
        if not reply.usage.prompt_tokens:
            self._ways.note_missing_counts(way)
        return reply, server_timings(data)

    async def _wait_before_retry(self, failure: CallError, asked: float | None, clock: CallClock,
                                 progress: _Progress) -> None:
        progress.failed += 1
        progress.last = str(failure)
        if progress.failed >= self.limits.attempts:
            raise failure
        # Add jitter to the requested wait, so that waiting calls do not all return at once.
        wait = backoff_delay(progress.failed)
        wait = wait if asked is None else asked + min(0.1 * wait, 1.0)
        _check_time(failure, asked, wait, clock.left)
        await asyncio.sleep(wait)

    async def connection(self) -> tuple[Chat, Address]:
        """Return the client for chat requests, and the server's address."""
        at = self._endpoint if isinstance(self._endpoint, Address) else await self._endpoint.address()
        if self._chat is None or at != self._at:
            async with self._connecting:
                if self._chat is None or at != self._at:
                    most = max(self.limits.concurrency, MAX_IN_FLIGHT)  # slots may be added
                    limits = self.limits.model_copy(update={"concurrency": most})
                    fresh = await asyncio.to_thread(self._connect, at, self._served, limits)
                    stale, self._chat, self._at = self._chat, fresh, at
                    if stale is not None:
                        await stale.aclose()
        return self._chat, at


def _connect(at: Address, served: str, limits: CallLimits) -> Chat:
    # Importing the library takes a second, so this runs in a thread.
    from ragbed.agents.openai_chat import connect
    return connect(at, served, limits.concurrency)


def _check_time(failure: CallError, asked: float | None, wait: float, left: float) -> None:
    if wait >= left:
        asks = f"; the server asks to wait {asked:.0f} s" if asked else ""
        raise CallError(f"{failure}{asks}; only {max(left, 0):.0f} s were left", failure.kind, failure.attempts)

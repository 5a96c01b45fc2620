"""The model client: sends a strategy's calls with deadlines and retries, and returns replies and their cost."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragbed.agents.http_errors import NOT_STREAMED, StreamMode, StreamNegotiator, error_from_response, is_overload
from ragbed.agents.limits import CallClock, CallSlot, CallSlots
from ragbed.agents.replies import OnEvent, Pricer, read_reply, server_timings
from ragbed.agents.settings import CallLimits, Context, Endpoint
from ragbed.agents.types import message_to_json, redact_reply
from ragbed.documents.errors import CallError, CallTimeout
from ragbed.documents.http import Address, BadReply, backoff_delay, is_transient, retry_after, sanitize_line
from ragbed.documents.json import loads
from ragbed.strategies.types import Generate, Reply

if TYPE_CHECKING:
    from ragbed.agents.openai_chat import Chat
    from ragbed.documents.http import Response


@dataclass(frozen=True, slots=True)
class Completion:
    """A successful call: number of requests, seconds from the first to the end, and llama.cpp's own timings."""

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
    """One model behind one endpoint, with deadlines, retries, and as many concurrent calls as its server accepts.

    Args:
        name: name that the user wrote, for display.
        identity: identifies the model in the journal: its served name, or `sha256:` and the weights' hash.
        served: name in the request body.
        price: US dollars of prompt, completion and cached tokens.
        temperature: used if an action has none; None never sends one.
        effort: sent as `reasoning_effort`; None sends none.
        context: prompts that do not fit are not sent; None if the size is unknown.
    """

    def __init__(self, name: str, identity: str, served: str, endpoint: Endpoint | Address, price: Pricer,
                 limits: CallLimits, temperature: float | None = 0.0, effort: str | None = None,
                 context: Context | None = None) -> None:
        self.name, self.identity, self.limits, self.context = name, identity, limits, context
        self._temperature, self._effort = temperature, effort
        self._served, self._endpoint, self._price = served, endpoint, price
        self._places = CallSlots(limits.concurrency, limits.seconds)
        self._connecting = asyncio.Lock()
        self._accepted = False
        self._ways = StreamNegotiator()
        self._chat: Chat | None = None
        self._at: Address | None = None

    @property
    def places(self) -> int:
        """Return the current limit on concurrent calls; at most `limits.concurrency`."""
        return self._places.count

    @property
    def waiting(self) -> int:
        """Return the number of calls in the queue."""
        return self._places.waiting

    @property
    def rate_limited(self) -> int:
        """Return the number of rate-limited requests so far."""
        return self._places.refusals

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

    def parameters(self, action: Generate, max_tokens: int, repeat: int = 0) -> dict[str, Any]:
        """Return all parameters of the request body except the messages, as JSON."""
        sent: dict[str, Any] = {"max_tokens": max_tokens}
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

    async def ready(self) -> None:
        """Connect, or start a local server, ahead of the first question. Raises ModelError if that fails."""
        await self._connected()

    async def complete(self, action: Generate, *, max_tokens: int, deadline: float | None = None,
                       repeat: int = 0, tell: OnEvent | None = None) -> Completion:
        """Make one call.

        Args:
            tell: called with pieces of the reply as they arrive; None to not stream.
            deadline: deadline of the question, in `time.monotonic` seconds. For that of the call see `CallClock`.

        Raises:
            CallTimeout: the deadline of the call or of the question has passed; the message says which.
            CallTooLong: the prompt does not fit the model's context.
            CallError: the call failed after all attempts.
            ModelError: every call would fail, because the key is rejected or the model is unknown.
        """
        if self.context is not None:
            self.context.check(action.messages, max_tokens)
        loop = asyncio.get_running_loop()
        question = None if deadline is None else loop.time() + deadline - time.monotonic()
        progress, place = _Progress(), self._places.claim()
        try:
            async with asyncio.timeout_at(question) as timeout:
                clock = CallClock(timeout, self.limits.seconds, question)
                parameters = self.parameters(action, max_tokens, repeat)
                return await self._persist(action, parameters, clock, place, progress, tell)
        except TimeoutError:
            tries = f" after {progress.attempts} attempts" if progress.attempts > 1 else ""
            last = f"; before that: {progress.last}" if progress.last else ""
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

    async def _persist(self, action: Generate, parameters: Mapping[str, Any], clock: CallClock, place: CallSlot,
                       progress: _Progress, tell: OnEvent | None) -> Completion:
        """Retry until there is a reply, a final failure, or no time for another attempt."""
        messages = [message_to_json(message) for message in action.messages]
        started = 0.0
        while True:
            while not self._places.may_send(place):
                clock.pause()
                await self._places.take(place)
                clock.run()
            started = started or time.monotonic()
            chat, at = await self._connected()
            progress.attempts += 1
            if tell is not None and progress.last:
                tell("retry", progress.last)
            wait, way, body = None, NOT_STREAMED if tell is None else self._ways.next(), chat.body(messages, parameters)
            try:
                answer = await (chat.post_streamed(way.body(body), tell, at.key) if tell and way.pieces else
                                chat.post(body))
                if answer.status == 200:
                    self._accepted = True
                    self._places.succeeded()
                    reply, speed = self._read(answer, at, action, way)
                    return Completion(reply, progress.attempts, time.monotonic() - started, speed)
                if self._ways.refuses(way, answer.status, answer.body):
                    continue
                failure = error_from_response(answer.status, answer.body, at, self.name, progress.attempts,
                                              self._accepted)
                if not isinstance(failure, CallError) or not is_transient(answer.status, answer.body):
                    raise failure
                wait = retry_after(answer.headers)
                if is_overload(answer.status, answer.body, wait):
                    progress.last = str(failure)
                    stands = self._places.refused(place, wait)
                    _check_time(failure, wait, stands, clock.left)
                    clock.pause(stands)
                    continue
            except ConnectionError as error:
                failure = CallError(f"{self.name}: no whole reply: {sanitize_line(str(error), at.key)}", "connection",
                                    progress.attempts)
            except BadReply as error:
                raise CallError(f"{self.name}: {error}", "bad_response", progress.attempts) from None
            except ValueError:
                failure = CallError(f"{self.name}: the reply is not JSON", "bad_json", progress.attempts)
            await self._pause(failure, wait, clock, progress)

    def _read(self, answer: Response, at: Address, action: Generate,
              way: StreamMode) -> tuple[Reply, Mapping[str, Any]]:
        data = loads(answer.body, mend=True)
        reply = redact_reply(read_reply(data, action.schema is not None, self._price), at.key)
        if not reply.usage.prompt_tokens:
            self._ways.came_uncounted(way)
        return reply, server_timings(data)

    async def _pause(self, failure: CallError, asked: float | None, clock: CallClock, progress: _Progress) -> None:
        progress.failed += 1
        progress.last = str(failure)
        if progress.failed >= self.limits.attempts:
            raise failure
        # Add jitter to the requested wait, so that waiting calls do not all return at once.
        wait = backoff_delay(progress.failed)
        wait = wait if asked is None else asked + min(0.1 * wait, 1.0)
        _check_time(failure, asked, wait, clock.left)
        await asyncio.sleep(wait)

    async def _connected(self) -> tuple[Chat, Address]:
        at = self._endpoint if isinstance(self._endpoint, Address) else await self._endpoint.address()
        if self._chat is None or at != self._at:
            async with self._connecting:
                if self._chat is None or at != self._at:
                    fresh = await asyncio.to_thread(_connect, at, self._served, self.limits.concurrency)
                    stale, self._chat, self._at = self._chat, fresh, at
                    if stale is not None:
                        await stale.aclose()
        return self._chat, at


def _connect(at: Address, served: str, connections: int) -> Chat:
    # Importing the library takes a second, so this runs in a thread.
    from ragbed.agents.openai_chat import connect
    return connect(at, served, connections)


def _check_time(failure: CallError, asked: float | None, wait: float, left: float) -> None:
    if wait >= left:
        asks = f"; the server asks to wait {asked:.0f} s" if asked else ""
        raise CallError(f"{failure}{asks}; {max(left, 0):.0f} s were left", failure.kind, failure.attempts)

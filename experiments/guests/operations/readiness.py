"""Tell load balancers whether the server is alive (`/health`) and whether it can answer now (`/ready`)."""
from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import JSONResponse

from ragbed.agents.types import Answer, GenerateStep
from ragbed.documents.errors import CallError, RagbedError
from ragbed.documents.http import transport_errors
from ragbed.documents.http_client import bounded_client
from ragbed.documents.keys import redact_keys
from ragbed.experiments.guests.serving.supervisor import FAILURES, SharedNumbers

if TYPE_CHECKING:
    from ragbed.agents.assistant import Assistant
    from ragbed.agents.client import ModelClient
    from ragbed.experiments.guests.operations.turn_times import TurnTimes
    from ragbed.experiments.guests.serving.state import ServerState
    from ragbed.experiments.guests.traffic.turns import ChatTurn

_MANY_FAILURES = 5  # failed calls of a model in a row, after which the server is not ready
_RECENT_SECONDS = 60.0  # after the last of them, it is ready again: without questions it would never find out
_OF_SERVER = re.compile(r"timeout|connection|bad_json|bad_response|server|http_(408|429|5\d\d)")  # not of a prompt
Check = Callable[[], Awaitable[None]]  # raises an error if its part does not answer
_FRESH_SECONDS = 5.0  # seconds for which a result is returned again
_CHECK_SECONDS = 3.0  # seconds that a part may take
_KEY_REFUSED = (401, 403)


class FailedCalls:
    """Counts how many calls of each model have failed in a row, over all processes of the server.

    Only failures of the model's server count, so that no client's prompts make the server seem unable to answer.
    """

    def __init__(self, numbers: SharedNumbers | None = None) -> None:
        self._numbers = numbers or SharedNumbers()

    def __call__(self, turn: ChatTurn, answer: Answer, times: TurnTimes) -> None:
        """Count the calls of an answer."""
        ends = [step.failure for step in answer.trace if isinstance(step, GenerateStep)]
        if not ends and answer.failure is not None:
            ends = [answer.failure]  # the key or the name of the model was rejected
        failed = [one is not None for one in ends if one is None or _OF_SERVER.fullmatch(one.kind)]
        self.count(turn.assistant.client.name, failed)

    def count(self, model: str, failed: Sequence[bool]) -> None:
        """Count calls of a model, in order."""
        with self._numbers.locked():
            for one in failed:
                count, _ = self._numbers.read(FAILURES, model) or (0.0, 0.0)
                self._numbers.write(FAILURES, model, count + 1 if one else 0, time.monotonic())

    def check(self, model: str) -> None:
        """Raise CallError if the last calls of a model have all failed."""
        count, last = self._numbers.read(FAILURES, model) or (0.0, 0.0)
        if count >= _MANY_FAILURES and time.monotonic() - last < _RECENT_SECONDS:
            raise CallError(f"{model}: the last {count:.0f} calls have failed", "failing", 1)


class Readiness:
    """Checks the parts of a server: at most one check at a time, and at most one every few seconds.

    Clients learn which part fails. Why it fails is logged when that changes.
    """

    def __init__(self, checks: Mapping[str, Check]) -> None:
        self._checks, self._lock, self._until = checks, asyncio.Lock(), 0.0
        self._found: dict[str, str] = {}

    async def parts(self) -> Mapping[str, str]:
        """Return each part with `ok` or `failed`."""
        async with self._lock:
            if time.monotonic() >= self._until:
                states = await asyncio.gather(*(self._check(name, check) for name, check in self._checks.items()))
                self._found = dict(zip(self._checks, states, strict=True))
                self._until = time.monotonic() + _FRESH_SECONDS
        return self._found

    async def _check(self, name: str, check: Check) -> str:
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await check()
        except (RagbedError, OSError, ValueError, LookupError, RuntimeError) as error:
            if self._found.get(name) != "failed":
                why = " ".join(redact_keys(f"{type(error).__name__} {error}").split())[:500]
                logging.getLogger("ragbed").warning("not ready: %s: %s", name, why)
            return "failed"
        return "ok"


def ready_routes(server: ServerState) -> APIRouter:
    """Return the routes `/health` and `/ready`, which need no key."""
    router, readiness = APIRouter(), Readiness({
        "model": lambda: _check_models(server), "store": lambda: _check_store(server),
        "index": lambda: _check_indexes(server)})

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @router.get("/ready")
    async def ready() -> JSONResponse:
        parts = await readiness.parts()
        good = set(parts.values()) == {"ok"}
        return JSONResponse({"status": "ready" if good else "not ready", **parts}, 200 if good else 503)

    return router


def _assistants(server: ServerState) -> Iterator[Assistant]:
    return (one.assistant for one in server.configurations.values())


async def _check_models(server: ServerState) -> None:
    for client in server.clients:
        server.failed_calls.check(client.name)
    await asyncio.gather(*map(_check_model, {id(one.client): one.client for one in _assistants(server)}.values()))


async def _check_model(client: ModelClient) -> None:
    """List the models of a server, which costs nothing. A local model starts with its first question."""
    if not (client.served_by or "").startswith("http"):
        return
    from ragbed.agents.openai_chat import Chat

    chat, at = await client.connection()
    headers = {"Authorization": f"Bearer {at.key}", **dict(at.headers)}
    async with bounded_client(at.url, 1) as http:
        with transport_errors():
            reply = await http.get(f"{at.url}/models", params=dict(at.query), headers=headers)
    # other protocols have other paths and headers, so any reply shows that the server is there
    if reply.status_code >= 500 or (isinstance(chat, Chat) and reply.status_code in _KEY_REFUSED):
        raise CallError(f"{at.url}: HTTP {reply.status_code}", f"http_{reply.status_code}", 1)


async def _check_store(server: ServerState) -> None:
    await server.sessions.traffic.check({name: one.assistant for name, one in server.configurations.items()})


async def _check_indexes(server: ServerState) -> None:
    for one in {id(one.index): one for one in _assistants(server)}.values():
        await asyncio.to_thread(_read_index, one)


def _read_index(assistant: Assistant) -> None:
    """Read a chunk and its document, and search by a vector if questions do. The embedder is not asked."""
    import numpy as np

    index = assistant.index
    index.document(index.chunks[0].document)
    if assistant.settings.retriever.embeds:
        query = np.zeros((1, index.manifest.embedder.dimension), np.float32)
        query[0, 0] = 1
        index.nearest(query, 1)

"""The one module that imports `langchain_openai`: it builds request bodies and sends them.

`ChatOpenAI` resolves and shapes the request. The body goes out through its own client's `post`, and the reply is
handed back as bytes: the stock path drops what compatible servers add (`reasoning_content`, `timings`), and
converting typed bodies twice costs more processor time than the request itself.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from ragbed.agents.replies import OnEvent, StreamAssembler
from ragbed.documents.http import (
    MAX_REPLY_BYTES,
    OPENAI_HOST,
    Address,
    BadReply,
    BoundedStream,
    Response,
    bounded_client,
    describe_error,
    transport_errors,
)

_MOST_STREAMED = 4 * MAX_REPLY_BYTES  # of a reply in pieces, each of which repeats the names of its fields


class Chat(ChatOpenAI):
    """`ChatOpenAI` for one address, over the chat completions interface only."""

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        # The stock class renames the limit for OpenAI; many compatible servers know only the older name.
        if "max_completion_tokens" in payload and urlsplit(self.openai_api_base or "").hostname != OPENAI_HOST:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def body(self, messages: list[dict[str, str]], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request body for these messages and parameters."""
        payload = self._get_request_payload(messages, **parameters)
        payload.pop("stream", None)
        if "temperature" not in parameters:
            payload.pop("temperature", None)  # the stock class has one of its own for some names
        return payload

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send one body once; raise ConnectionError where no whole reply comes back, BadReply where it is larger than
        any may be, or compressed though that was not asked for."""
        with _named_errors():
            try:
                got = await self.root_async_client.post("/chat/completions", cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as error:
                got = error.response
            return Response(got.status_code, got.headers, got.content)

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response:
        """Send one body that asks for the reply in pieces: `tell` is told each, and they come back as one. An error
        that is sent in the middle comes back as the status that it names, else 500. What is told does not hold the
        server's key. Raises as `post`, and ValueError where a piece is not JSON."""
        with _named_errors():
            try:
                got = await self.root_async_client.post("/chat/completions", cast_to=httpx2.Response, body=body,
                                                        stream=True, stream_cls=openai.AsyncStream[object])
            except openai.APIStatusError as error:
                return Response(error.response.status_code, error.response.headers, error.response.content)
            try:
                if got.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
                    return Response(got.status_code, got.headers, await got.aread())
                return await self._pieces(got, StreamAssembler(tell, key))
            finally:
                await got.aclose()

    async def _pieces(self, got: httpx2.Response, whole: StreamAssembler) -> Response:
        if isinstance(got.stream, BoundedStream):
            got.stream.max_bytes = _MOST_STREAMED
        pieces = openai.AsyncStream(cast_to=object, response=got, client=self.root_async_client)
        try:
            async for piece in pieces:
                whole.add(piece)
        except (openai.APIConnectionError, BadReply):
            raise
        except openai.APIError as error:
            code = error.body.get("code") if isinstance(error.body, dict) else None
            status = code if type(code) is int and 400 <= code < 600 else 500
            return Response(status, got.headers, json.dumps({"error": error.body}).encode())
        except RecursionError:
            raise ValueError("nested beyond reason") from None
        if not whole.whole:
            raise ConnectionError("the stream ended before the reply did")
        return Response(got.status_code, got.headers, whole.body())

    async def aclose(self) -> None:
        """Close the connections."""
        await self.root_async_client.close()


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        with transport_errors():
            yield
    except openai.APIConnectionError as error:
        if isinstance(error.__cause__, BadReply):
            raise error.__cause__ from None
        raise ConnectionError(describe_error(error.__cause__ or error)) from None


def connect(address: Address, served: str, connections: int) -> Chat:
    """Make a chat client for one address and a model's served name, with so many connections at most and without
    deadlines and retries, which are the caller's; raise ModelError where the environment's proxy or certificates cannot
    be used."""
    client = bounded_client(address.url, connections)
    chat = Chat(model=served, base_url=address.url, api_key=SecretStr(address.key), max_retries=0, timeout=None,
                use_responses_api=False, openai_proxy=None, http_async_client=client,
                # Only for a client that it would make; otherwise it warns of proxies that ours does use.
                http_socket_options=(),
                # Never used; the one that would be made otherwise reads the proxy variables.
                http_client=httpx2.Client(trust_env=False))
    if urlsplit(address.url).hostname != OPENAI_HOST:
        # The environment's OpenAI organisation and project are nobody else's business.
        chat.root_async_client.organization = None
        chat.root_async_client.project = None
    return chat

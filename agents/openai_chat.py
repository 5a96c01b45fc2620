"""Build request bodies and send them. Only this module imports `langchain_openai`.

`ChatOpenAI` builds the request. The body is sent with its client's `post`, and the reply is returned as bytes.
LangChain's own path drops fields of compatible servers (`reasoning_content`, `timings`), and converts typed bodies
twice, which costs more CPU time than the request itself."""
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

_MAX_STREAMED = 4 * MAX_REPLY_BYTES  # factor for streams, in which each piece repeats its field names


class Chat(ChatOpenAI):
    """`ChatOpenAI` for one address, with chat completions only."""

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        # The base class uses OpenAI's new name for the limit, which many compatible servers do not know.
        if "max_completion_tokens" in payload and urlsplit(self.openai_api_base or "").hostname != OPENAI_HOST:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def body(self, messages: list[dict[str, str]], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request body for these messages and parameters."""
        payload = self._get_request_payload(messages, **parameters)
        payload.pop("stream", None)
        if "temperature" not in parameters:
            payload.pop("temperature", None)  # the base class has a default for some models
        return payload

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a body once. Raises ConnectionError if there is no complete reply, and BadReply if it is too large or
        compressed."""
        with _named_errors():
            try:
                got = await self.root_async_client.post("/chat/completions", cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as error:
                got = error.response
            return Response(got.status_code, got.headers, got.content)

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response:
        """Send a body that requests a stream. Call `tell` with each piece, with the server's key removed, and return
        the whole reply. An error in the stream sets the reply's status, or 500. Raises as `post` does, and ValueError
        for a piece that is not JSON."""
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
            got.stream.max_bytes = _MAX_STREAMED
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
            raise ValueError("nested too deeply") from None
        if not whole.whole:
            raise ConnectionError("the stream ended early")
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
    """Make a chat client for one address and model, without deadlines and retries. Raises ModelError if the
    environment's proxy or certificates are unusable."""
    client = bounded_client(address.url, connections)
    chat = Chat(model=served, base_url=address.url, api_key=SecretStr(address.key), max_retries=0, timeout=None,
                use_responses_api=False, openai_proxy=None, http_async_client=client,
                # avoids a warning about proxies, which our client does use
                http_socket_options=(),
                # never used, but the default would read the proxy variables
                http_client=httpx2.Client(trust_env=False))
    if urlsplit(address.url).hostname != OPENAI_HOST:
        # do not send OpenAI's organisation and project to other servers
        chat.root_async_client.organization = None
        chat.root_async_client.project = None
    return chat

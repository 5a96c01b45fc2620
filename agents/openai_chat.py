"""Build chat requests and send them. Only this module imports `langchain_openai`.

`ChatOpenAI` builds the request, but its own way of reading replies is not used: it drops fields of compatible servers
(`reasoning_content`, `timings`), and takes more CPU time than the request itself. Replies are returned as bytes."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
from langchain_openai import ChatOpenAI
from pydantic import PrivateAttr, SecretStr

from ragbed.agents.replies import OnEvent, StreamAssembler
from ragbed.documents.http import (
    MAX_REPLY_BYTES,
    OPENAI_HOST,
    Address,
    BadReply,
    Response,
    describe_error,
    transport_errors,
    unwrap_error,
)
from ragbed.documents.http_client import BoundedStream, bounded_client

_MAX_STREAMED = 4 * MAX_REPLY_BYTES  # larger for streams, because each piece repeats the field names


class Chat(ChatOpenAI):
    """`ChatOpenAI` for one server, with chat completions only."""

    _rename: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def _get_request_payload(self, input_: Any, *, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        # The base class uses OpenAI's new name for the limit, which many compatible servers do not know.
        if "max_completion_tokens" in payload and urlsplit(self.openai_api_base or "").hostname != OPENAI_HOST:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def body(self, messages: list[dict[str, str]], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request body for these messages and parameters."""
        extra: dict[str, Any] = parameters.get("extra_body", {})
        payload: dict[str, Any] = self._get_request_payload(messages, **{
            name: value for name, value in parameters.items() if name != "extra_body"})
        payload.pop("stream", None)
        if "temperature" not in parameters:
            payload.pop("temperature", None)  # the base class has a default for some models
        for name, sent in self._rename.items():
            if name in payload:
                payload[sent] = payload.pop(name)
        return payload | extra

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a body once. An error inside HTTP 200 gets its own status. Raises ConnectionError if no complete reply
        arrives, and BadReply if it is too large or compressed."""
        with _convert_errors():
            try:
                got = await self.root_async_client.post("/chat/completions", cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as error:
                got = error.response
            return unwrap_error(Response(got.status_code, got.headers, got.content))

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response:
        """Send a body that requests a stream. Call `tell` with each piece, without the server's key, and return the
        whole reply, or the error that ended the stream. Raises the same errors as `post`, and ValueError for a
        piece that is not JSON."""
        with _convert_errors():
            try:
                got = await self.root_async_client.post("/chat/completions", cast_to=httpx2.Response, body=body,
                                                        stream=True, stream_cls=openai.AsyncStream[object])
            except openai.APIStatusError as error:
                return Response(error.response.status_code, error.response.headers, error.response.content)
            try:
                if got.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
                    return unwrap_error(Response(got.status_code, got.headers, await got.aread()))
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
                if whole.failed:
                    break
        except (openai.APIConnectionError, BadReply):
            raise
        except openai.APIError as error:
            return unwrap_error(Response(200, got.headers, json.dumps({"error": error.body}).encode()))
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not whole.whole:
            raise ConnectionError("the stream ended early")
        return unwrap_error(Response(got.status_code, got.headers, whole.body()))

    async def aclose(self) -> None:
        await self.root_async_client.close()


@contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        with transport_errors():
            yield
    except openai.APIConnectionError as error:
        if isinstance(error.__cause__, BadReply):
            raise error.__cause__ from None
        cause = error.__cause__ or error
        advice = "; check that the server runs and can be reached" if isinstance(cause, httpx2.ConnectError) else ""
        raise ConnectionError(f"{describe_error(cause)}{advice}") from None


def connect(address: Address, served: str, connections: int, rename: Mapping[str, str] | None = None) -> Chat:
    """Make a chat client for one address and model, without deadlines and retries. `rename` has the server's names of
    parameters. Raises ModelError if the environment's proxy or certificates are unusable."""
    client = bounded_client(address.url, connections)
    left_out = [name for name, value in address.headers if not value]

    async def leave_out(request: httpx2.Request) -> None:
        for name in left_out:
            request.headers.pop(name, None)

    client.event_hooks = {**client.event_hooks, "request": [*client.event_hooks["request"], leave_out]}
    chat = Chat(model=served, base_url=address.url, api_key=SecretStr(address.key), max_retries=0, timeout=None,
                default_headers=dict(address.headers) or None, default_query=dict(address.query) or None,
                use_responses_api=False, openai_proxy=None, http_async_client=client,
                # avoids a warning about proxies; our client uses them
                http_socket_options=(),
                # not used, but the default would read the proxy variables
                http_client=httpx2.Client(trust_env=False))
    if urlsplit(address.url).hostname != OPENAI_HOST:
        # do not send OpenAI's organisation and project to other servers
        chat.root_async_client.organization = None
        chat.root_async_client.project = None
    chat._rename = rename or {}
    return chat

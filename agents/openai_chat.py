"""Build chat requests and send them. Only this module imports `langchain_openai`.

`ChatOpenAI` builds the request's body, and `connect` prepares the URL and headers once for a model. httpx sends the
request directly, because `ChatOpenAI` and OpenAI's client take more processor time than the request itself.
`ChatOpenAI` also drops fields of compatible servers (`reasoning_content`, `timings`). Replies are returned as bytes."""
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
    connection_errors,
    describe_error,
    unwrap_error,
)
from ragbed.documents.http_client import BoundedStream, bounded_client

_MAX_STREAMED = 4 * MAX_REPLY_BYTES  # larger for streams, because each piece repeats the field names


class Chat(ChatOpenAI):
    """`ChatOpenAI` for one server, with chat completions only."""

    _rename: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _http: httpx2.AsyncClient = PrivateAttr()
    _model_request: httpx2.Request = PrivateAttr()  # template with the URL and headers of every request

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
            return await _read(await self._send(body))

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response:
        """Send a body that requests a stream. Call `tell` with each piece, without the server's key, and return the
        whole reply, or the error that ended the stream. Raises the same errors as `post`, and ValueError for a
        piece that is not JSON."""
        with _convert_errors():
            got = await self._send({**body, "stream": True}, stream=True)
            try:
                kind = got.headers.get("content-type", "").partition(";")[0].strip().lower()
                if got.status_code != 200 or kind != "text/event-stream":
                    return await _read(got)
                return await self._pieces(got, StreamAssembler(tell, key))
            finally:
                await got.aclose()

    async def _send(self, body: Mapping[str, Any], stream: bool = False) -> httpx2.Response:
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        model, cookies = self._model_request, self._http.cookies or None
        request = httpx2.Request("POST", model.url, headers=model.headers, cookies=cookies, content=content)
        return await self._http.send(request, stream=stream)

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
        await self._http.aclose()


async def _read(got: httpx2.Response) -> Response:
    return unwrap_error(Response(got.status_code, got.headers, await got.aread()))


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turn errors of the HTTP client, and of the library that reads streams, into ConnectionError."""
    errors: tuple[type[Exception], ...] = (*connection_errors(), openai.APIConnectionError)
    try:
        yield
    except errors as error:
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
        advice = "; check that the server runs and can be reached" if isinstance(cause, httpx2.ConnectError) else ""
        raise ConnectionError(f"{describe_error(cause)}{advice}") from None


def connect(address: Address, served: str, connections: int, rename: Mapping[str, str] | None = None) -> Chat:
    """Make a chat client for one address and model, without deadlines and retries. `rename` has the server's names of
    parameters. Raises ModelError if the environment's proxy or certificates are unusable."""
    client = bounded_client(address.url, connections)
    chat = Chat(model=served, base_url=address.url, api_key=SecretStr(address.key), max_retries=0, timeout=None,
                use_responses_api=False, openai_proxy=None, http_async_client=client,
                # avoids a warning about proxies; our client uses them
                http_socket_options=(),
                # not used, but the default would read the proxy variables
                http_client=httpx2.Client(trust_env=False))
    sdk, given = chat.root_async_client, {name.lower(): value for name, value in address.headers}
    headers = {"accept": "application/json", "authorization": f"Bearer {address.key}",
               "content-type": "application/json", "user-agent": sdk.user_agent}
    if urlsplit(address.url).hostname == OPENAI_HOST:  # other servers do not learn OpenAI's organisation and project
        headers |= {"openai-organization": sdk.organization or "", "openai-project": sdk.project or ""}
    headers |= given
    if left_out := [name for name, value in headers.items() if not value]:
        async def leave_out(request: httpx2.Request) -> None:
            for name in left_out:
                request.headers.pop(name, None)

        client.event_hooks = {**client.event_hooks, "request": [*client.event_hooks["request"], leave_out]}
    chat._rename, chat._http = rename or {}, client
    chat._model_request = client.build_request("POST", f"{address.url}/chat/completions", headers=headers,
                                               params=address.query or None)
    del chat._model_request.headers["content-length"]
    return chat

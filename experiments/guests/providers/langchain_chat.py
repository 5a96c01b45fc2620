"""Call a model through LangChain's client for its provider, which speaks the provider's own protocol.

Replies and errors are converted to the form of chat completions, so that retries, limits, prices and the journal work
as for every other model. A parameter that the client does not have is answered like one that a server refuses.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import ceil
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ragbed.agents.replies import StreamAssembler
from ragbed.documents.errors import ModelError
from ragbed.documents.http import BadReply, Response, describe_error, unwrap_error
from ragbed.documents.http_client import bounded_client
from ragbed.documents.user_code import UserCode

if TYPE_CHECKING:
    import httpx2
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable

    from ragbed.agents.model_settings import CallLimits, ModelConfig
    from ragbed.agents.replies import OnEvent
    from ragbed.documents.http import Address

_HEADERS = {"google_genai": "additional_headers"}  # argument for headers, if it is not `default_headers`
_PARAMETERS = ("temperature", "max_tokens", "seed", "reasoning_effort")  # arguments with the names of chat completions
_NO_TOOL = {"anthropic": {"type": "none"}, "bedrock_converse": None}  # tool choice that forbids calls; None: no such
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls",
           "guardrail_intervened": "content_filter"}
_FINISHES = ("finish_reason", "stop_reason", "stopReason")  # names of the finish reason by provider
_OFFLINE = {"APIConnectionError", "TransportError", "HTTPClientError", "ClientError", "ConnectError", "ConnectionError"}
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"}


def connect(provider: str, config: ModelConfig, at: Address, served: str, limits: CallLimits) -> LangChainChat:
    """Open LangChain's client for a model, without retries.

    Raises:
        ModelError: LangChain does not know the provider, its package is missing, or its client rejects a setting.
    """
    from langchain.chat_models import init_chat_model

    given: dict[str, Any] = dict(config.extra_body)
    if at.headers:
        given[_HEADERS.get(provider, "default_headers")] = dict(at.headers)
    named = [*given]
    if at.key and at.key != "none":
        given["api_key"] = at.key
    if at.url and (config.base_url or provider != "bedrock_converse"):
        given["base_url"] = at.url
    try:
        with UserCode(lambda why: ModelError(f"{config.model}: {why.rpartition('Error: ')[2]}"), ImportError):
            model: BaseChatModel = init_chat_model(served, model_provider=provider, max_retries=0,
                                                   timeout=ceil(limits.seconds), **given)
    except ImportError as error:  # its text names the package to install
        raise ModelError(f"{config.model}: {' '.join(str(error).split())}") from None
    if unknown := next((name for name in named if name not in _fields(model)), None):
        raise ModelError(f"{config.model}: {type(model).__name__} has no argument {unknown}; remove it from "
                         f"{'extra_body' if unknown in config.extra_body else 'headers'}")
    return LangChainChat(model, provider, _use_bounded_client(model, provider, at, limits.concurrency))


def _fields(model: BaseChatModel) -> dict[str, str]:
    """Return the name of each field of a client by its name and its alias."""
    fields = type(model).model_fields
    return {**{one.alias: name for name, one in fields.items() if one.alias}, **{name: name for name in fields}}


def _use_bounded_client(model: Any, provider: str, at: Address, connections: int) -> httpx2.AsyncClient | None:
    """Let a client send its requests with limits on replies and without redirects, which would send the key and the
    prompts to another host. Return the HTTP client, if the provider's client can use one of ours."""
    http = None
    if provider == "anthropic":
        import anthropic

        http = bounded_client(at.url, connections)
        model.__dict__["_async_client"] = anthropic.AsyncAnthropic(**{**model._client_params, "http_client": http})
    elif provider == "google_genai":
        from google.genai import Client
        from google.genai.types import HttpOptions

        model.client.close()
        http = bounded_client(at.url, connections)
        model.client = Client(api_key=at.key, vertexai=False, http_options=HttpOptions(
            base_url=at.url, headers=dict(at.headers), httpx_async_client=http))
    for one in vars(model).values():  # of other providers, the client that most of them have
        for client in (one, inner := getattr(one, "_client", None), getattr(inner, "_client", None)):
            if client is not None and hasattr(client, "follow_redirects"):
                client.follow_redirects = False
    return http


class LangChainChat:
    """A connection through LangChain; see `ragbed.agents.client.Chat`."""

    def __init__(self, model: BaseChatModel, provider: str, http: httpx2.AsyncClient | None = None) -> None:
        self._model, self._provider, self._known, self._http = model, provider, _fields(model), http

    def body(self, messages: list[dict[str, Any]], parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return messages and parameters as one object. Extra fields of the body are arguments of the client."""
        return {"messages": messages, **{key: value for key, value in parameters.items() if key != "extra_body"}}

    async def post(self, body: Mapping[str, Any]) -> Response:
        """Send a request once."""
        from langchain_core.messages.utils import convert_to_messages

        if refused := self._refused(body):
            return refused
        with _ErrorReply() as failed:
            reply = await self._prepare(body).ainvoke(convert_to_messages(body["messages"]), stop=body.get("stop"))
            return unwrap_error(Response(200, {}, json.dumps(_completion(reply)).encode()))
        return failed.response()

    async def post_streamed(self, body: Mapping[str, Any], tell: OnEvent, key: str) -> Response:
        """Send a request, and call `tell` with each piece of the reply."""
        from langchain_core.messages.utils import convert_to_messages

        if refused := self._refused(body):
            return refused
        whole: Any = None
        pieces = StreamAssembler(tell, key)
        with _ErrorReply() as failed:
            messages = convert_to_messages(body["messages"])
            async for piece in self._prepare(body).astream(messages, stop=body.get("stop")):
                whole = piece if whole is None else whole + piece
                delta = _completion(piece)["choices"][0]["message"]
                pieces.add({"choices": [{"delta": {**delta, "tool_calls": None}}]})
        if failed.error is not None:
            return failed.response()
        if whole is None or not any(whole.response_metadata.get(name) for name in _FINISHES):
            raise ConnectionError("the stream ended early")
        end = _completion(whole)
        calls = [{**call, "index": place} for place, call in enumerate(end["choices"][0]["message"]["tool_calls"])]
        pieces.add({"choices": [{"delta": {"tool_calls": calls},
                                 "finish_reason": end["choices"][0]["finish_reason"]}], "usage": end["usage"]})
        return unwrap_error(Response(200, {}, pieces.body()))

    async def aclose(self) -> None:
        """Close the connections that ragbed opened."""
        if self._http is not None:
            await self._http.aclose()

    def _refused(self, body: Mapping[str, Any]) -> Response | None:
        """Return an error like a server's if LangChain's client lacks a parameter of this request."""
        lacking = [name for name in _PARAMETERS if name in body and name not in self._known]
        if body.get("tool_choice") == "none" and _NO_TOOL.get(self._provider, "none") is None:
            lacking.append("tool_choice")
        if not lacking:
            return None
        return _error(400, {"error": {"param": lacking[0], "code": "unsupported_parameter", "message": (
            f"{type(self._model).__name__} does not support {lacking[0]}")}})

    def _prepare(self, body: Mapping[str, Any]) -> Runnable[Any, AIMessage]:
        """Return the client with the parameters, tools and schema of a request."""
        own = {self._known[name]: body[name] for name in _PARAMETERS if name in body}
        model: Any = self._model.model_copy(update=own)
        bound: dict[str, Any] = {}
        if schema := body.get("response_format", {}).get("json_schema", {}).get("schema"):
            named = {"title": "reply", **schema}
            # the first step calls the model; the others would parse its reply
            bound |= model.with_structured_output(named, method="json_schema").first.kwargs
        if tools := body.get("tools"):
            choice = {"tool_choice": _NO_TOOL.get(self._provider, "none")} if body.get("tool_choice") == "none" else {}
            bound |= model.bind_tools(tools, **choice).kwargs
        runnable: Runnable[Any, AIMessage] = model.bind(**bound) if bound else model
        return runnable


def _completion(message: Any) -> dict[str, Any]:
    """Return a message as a chat completion."""
    calls = [{"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(
        call["args"], ensure_ascii=False) if isinstance(call["args"], dict) else str(call["args"])}}
        for call in (*message.tool_calls, *message.invalid_tool_calls)]
    reasoning = "".join(one.get("reasoning") or "" for one in message.content_blocks if one["type"] == "reasoning")
    of_finish = next(filter(None, map(message.response_metadata.get, _FINISHES)), None)
    finish = str(getattr(of_finish, "name", of_finish)).lower()
    usage = message.usage_metadata or {}
    details = usage.get("input_token_details") or {}
    return {"choices": [{"index": 0, "finish_reason": _FINISH.get(finish, finish), "message": {
        "role": "assistant", "content": str(message.text), "reasoning_content": reasoning, "tool_calls": calls}}],
        "usage": {"prompt_tokens": usage.get("input_tokens"), "completion_tokens": usage.get("output_tokens"),
                  "prompt_tokens_details": {"cached_tokens": details.get("cache_read")}}}


class _ErrorReply:
    """Catches what a provider's client raises, because these errors have no class in common."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> _ErrorReply:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool:
        self.error = error if isinstance(error, Exception) and not isinstance(error, BadReply) else None
        return self.error is not None

    def response(self) -> Response:
        """Return the server's error. Raises ConnectionError if there was no reply, and BadReply for other causes."""
        assert self.error is not None
        for one in _causes(self.error):
            if isinstance(one, BadReply):
                raise one
            if found := _read_error(one):
                return found
        for one in _causes(self.error):
            classes = {base.__name__ for base in type(one).__mro__}
            if classes & _NO_CREDENTIALS:
                return _error(401, {"error": {"message": str(one)}})
            if classes & _OFFLINE or isinstance(one, OSError):
                raise ConnectionError(describe_error(one)) from None
        raise BadReply(f"LangChain's client failed: {describe_error(self.error)}") from None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that led to it."""
    one: BaseException | None = error
    for _ in range(8):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def _read_error(error: Any) -> Response | None:
    """Return the server's reply that an error of a provider's client describes; None if it has none."""
    reply = getattr(error, "response", None)
    if isinstance(reply, dict):  # of botocore
        about, said = reply.get("ResponseMetadata", {}), reply.get("Error", {})
        status, headers = about.get("HTTPStatusCode"), about.get("HTTPHeaders", {})
        body: Any = {"error": {"message": said.get("Message"), "code": said.get("Code")}}
    else:
        status = next((value for value in (getattr(error, "status_code", None), getattr(error, "code", None),
                                           getattr(reply, "status_code", None)) if isinstance(value, int)), None)
        headers = getattr(reply, "headers", {})
        body = next((value for value in (getattr(error, "body", None), getattr(error, "details", None))
                     if isinstance(value, dict)), {"error": {"message": str(error)}})
    return _error(status, body, headers) if isinstance(status, int) and 300 <= status < 600 else None


def _error(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {str(name).lower(): str(value) for name, value in (headers or {}).items()},
                    json.dumps(body, default=str).encode())

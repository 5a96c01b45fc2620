"""Serve the tools of questions to pipelines over the Model Context Protocol (MCP).

Each question under way has its own address, `http://127.0.0.1:PORT/TOKEN/mcp`. The token is secret, is never stored,
and is void once the pipeline has answered.
"""
from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from ragbed.agents.tools import TOOL_FAILED, QuestionTools
from ragbed.documents.errors import CallError
from ragbed.strategies.types import Failure, Passage, ToolCall, ToolResult

_MAX_BODY = 1 << 20  # bytes of a request
_SESSION = "ragbed.session"


class ToolSession:
    """The calls that a pipeline makes for one question, with the evidence numbers that the question's record will have.

    Attributes:
        url: address of the question's MCP server.
        token: the secret in it.
        log: the calls of the current attempt, each as tool and arguments, in the order of their results.
    """

    def __init__(self, tools: QuestionTools, url: str, token: str) -> None:
        self.tools, self.url, self.token = tools, url, token
        self.begin()

    def begin(self) -> None:
        """Begin an attempt. Calls of an earlier one no longer count."""
        self.log: list[tuple[str, Mapping[str, Any]]] = []
        self._numbers: dict[str, int] = {}
        self._count = 0

    async def call(self, call: ToolCall) -> ToolResult:
        """Call a tool. Beyond the limit of calls, the result is a failure that is not logged."""
        if self._count >= self.tools.most:
            return ToolResult((), Failure(TOOL_FAILED, f"limit of {self.tools.most} tool calls per question reached; "
                                                       "answer with what was found"))
        self._count += 1
        log, numbers = self.log, self._numbers
        try:
            output = await self.tools.call(call)
        except CallError as error:  # the record will fail with the same error
            log.append((call.tool, call.arguments))
            return ToolResult((), Failure(TOOL_FAILED, f"{call.tool}: {error}"))
        log.append((call.tool, call.arguments))
        parts = tuple(one if isinstance(one, str) else Passage(numbers.setdefault(one.id, len(numbers) + 1), one)
                      for one in output.parts)
        return ToolResult(parts, Failure(TOOL_FAILED, output.failure) if output.failure else None)


class ToolServer:
    """A server on this machine, with an address for each question under way. It starts with the first one."""

    def __init__(self) -> None:
        self._sessions: dict[str, ToolSession] = {}
        self._server: _Uvicorn | None = None
        self._port = 0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def session(self, tools: QuestionTools) -> Iterator[ToolSession]:
        """Serve the tools of a question for a while."""
        self._start()
        token = secrets.token_urlsafe(32)
        self._sessions[token] = ToolSession(tools, f"http://127.0.0.1:{self._port}/{token}/mcp", token)
        try:
            yield self._sessions[token]
        finally:
            del self._sessions[token]

    async def close(self) -> None:
        """Stop the server. Requests under way are cut off."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = self._server.force_exit = True
            await self._task

    def _start(self) -> None:
        if self._server is None:
            place = socket.create_server(("127.0.0.1", 0), backlog=512)
            self._port = place.getsockname()[1]
            self._server = _Uvicorn(uvicorn.Config(self._answer, log_config=None, log_level="critical", lifespan="off",
                                                   access_log=False, ws="none", interface="asgi3"))
            self._task = asyncio.create_task(self._serve(self._server, place))

    async def _serve(self, server: uvicorn.Server, place: socket.socket) -> None:
        protocol: Server[Any] = Server("ragbed", on_list_tools=_list_tools, on_call_tool=_call_tool)
        self._manager = StreamableHTTPSessionManager(
            protocol, json_response=True, stateless=True, max_request_body_size=_MAX_BODY,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False))  # the token is secret
        async with self._manager.run():
            await server.serve(sockets=[place])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        token, _, rest = scope["path"].strip("/").partition("/")
        if (session := self._sessions.get(token)) is None or rest != "mcp":
            await PlainTextResponse("no question has this address", 404)(scope, receive, send)
        else:
            await self._manager.handle_request({**scope, _SESSION: session}, receive, send)


class _Uvicorn(uvicorn.Server):
    def capture_signals(self) -> Any:
        """Leave the signals to the run."""
        return nullcontext()


def _session(context: Any) -> ToolSession:
    session: ToolSession = context.request.scope[_SESSION]
    return session


async def _list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[
        types.Tool(name=one.name, description=one.description, input_schema=dict(one.parameters))
        for one in _session(context).tools.specs])


async def _call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    result = await _session(context).call(ToolCall(params.name, params.arguments or {}))
    return types.CallToolResult(content=[types.TextContent(type="text", text=result.text)],
                                is_error=result.failure is not None)

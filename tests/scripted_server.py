"""A scripted chat server on loopback, for the fixture `serve`."""
import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

Line = str | dict[str, Any]
Script = Sequence[Line] | Callable[[dict[str, Any]], Line]


class ScriptedServer:
    """An OpenAI-compatible server on loopback that says what it is told to, from a thread of its own.

    A line is the reply's text, or a dict of: `text`, `message` and `usage` (replace those parts), `extra` (more
    fields of the body), `status`, `headers`, `body` (bytes sent as they are), `error` (an OpenAI error object), `delay`
    (seconds), `hold` (a `threading.Event` to wait for), `drop` (the connection ends without a word), `cut` (it ends in
    the middle of the body), `pieces` (of a stream of events: bytes, or a `threading.Event` to wait for). A script is a
    list of lines, used up in order, or a function from the request's body to a line.

    Attributes:
        url: base URL, ending in `/v1`.
        requests: `(body, headers)` of every request.
        busiest: the most requests that were open at once.
        models: what it lists at `/v1/models`.
        ollama: answers Ollama's own routes: a function from the name below `/api/` and the body to JSON, or None.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.busiest = self._open = 0
        self.models: Any = {"object": "list", "data": []}
        self.ollama: Callable[[str, Any], Any] = lambda name, body: None
        self._script = script
        self._next = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = self._run(self._start())

    def close(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _start(self) -> str:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_route("*", "/api/{name}", self._ollama)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _end(self) -> None:
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _line(self, body: dict[str, Any]) -> dict[str, Any]:
        if callable(self._script):
            line = self._script(body)
        elif self._next < len(self._script):
            line = self._script[self._next]
            self._next += 1
        else:
            line = {"status": 418, "error": {"message": "the script has run out of lines"}}
        return {"text": line} if isinstance(line, str) else line

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response(self.models)

    async def _ollama(self, request: web.Request) -> web.Response:
        found = self.ollama(request.match_info["name"], await request.json() if request.can_read_body else None)
        return web.json_response(found) if found is not None else web.Response(status=404)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append((body, dict(request.headers)))
        line = self._line(body)
        self._open += 1
        self.busiest = max(self.busiest, self._open)
        try:
            await asyncio.sleep(line.get("delay", 0))
            while "hold" in line and not line["hold"].is_set():
                await asyncio.sleep(0.005)
        finally:
            self._open -= 1
        if "pieces" in line:
            return await _stream(request, line)
        return await _answer(request, line, line.get("body") or _body(line, body))


def _body(line: dict[str, Any], asked: dict[str, Any]) -> bytes:
    if "error" in line:
        return json.dumps({"error": line["error"]}).encode()
    return json.dumps({
        "id": "c", "object": "chat.completion", "created": 0, "model": asked.get("model"),
        "choices": [{"index": 0, "finish_reason": line.get("finish_reason", "stop"),
                     "message": line.get("message", {"role": "assistant", "content": line.get("text", "")})}],
        "usage": line.get("usage", {"prompt_tokens": 700, "completion_tokens": 12, "total_tokens": 712}),
        **line.get("extra", {})}).encode()


async def _stream(request: web.Request, line: dict[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **line.get("headers", {})})
    await response.prepare(request)
    for piece in line["pieces"]:
        while isinstance(piece, threading.Event) and not piece.is_set():
            await asyncio.sleep(0.005)
        if isinstance(piece, bytes):
            await response.write(piece)
    if line.get("cut"):
        assert request.transport is not None
        request.transport.close()
    return response


async def _answer(request: web.Request, line: dict[str, Any], body: bytes) -> web.StreamResponse:
    assert request.transport is not None
    if line.get("drop"):
        request.transport.abort()
    status, headers = line.get("status", 200), line.get("headers", {})
    if line.get("cut"):
        half = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(body))})
        await half.prepare(request)
        await half.write(body[:len(body) // 2])
        request.transport.close()
        return half
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")

"""Ask a server for a canary through each of its routes, as the owner of a key."""
from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ragbed.experiments.guests.access.canaries import Canary

Stages = Mapping[str, str]
"""Texts of a response by stage: `said` in the answer, `cited` by it, and `shown` to the client anywhere."""


@dataclass(frozen=True)
class Visitor:
    """The owner of a key, at a server.

    Attributes:
        client: an HTTP client.
        models: names of the served configurations.
    """

    client: Any
    key: str
    models: tuple[str, ...]

    async def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request. Raises ValueError if the server fails."""
        accepted = "application/json, text/event-stream"
        response = await self.client.request(method, path, json=body, headers={
            "Authorization": f"Bearer {self.key}", "Accept": accepted, "MCP-Protocol-Version": "2025-06-18"})
        if response.status_code >= 500:
            raise ValueError(f"{path}: status {response.status_code}: {response.text[:200]}")
        return response

    async def tool(self, name: str, **arguments: Any) -> Stages:
        """Call a tool over MCP."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        text = (await self.send("POST", "/mcp", body)).text
        result: Any = next((one["result"] for one in _events(text) if "result" in one), {})
        found = result.get("structuredContent") or {}
        return {"said": found.get("text", "") if name == "ask" else "", "cited": _dump(found.get("citations")),
                "shown": text}

    async def ask_page(self, question: str, thread: str | None = None, model: str | None = None) -> Stages:
        """Ask on the chat page. `thread` of the result is the id of its thread."""
        text = (await self.send("POST", "/api/ask", {"question": question, "thread": thread, "configuration": model})
                ).text
        events = _events(text)
        answer = events[-1] if events and events[-1].get("event") == "answer" else {}
        cited = [one for one in answer.get("sources", ()) if one["cited"]]
        return {"said": answer.get("text", ""), "cited": _dump(cited), "shown": text,
                "thread": answer.get("thread", "")}

    async def respond(self, given: Any, previous: str | None = None) -> Stages:
        """Ask for a response. `id` and `message` of the result are its ids."""
        body = {"model": self.models[0], "input": given, "previous_response_id": previous}
        answer = (await self.send("POST", "/v1/responses", body)).json()
        parts = [part for item in answer.get("output", ()) for part in item.get("content", ())]
        return {"said": "".join(part["text"] for part in parts), "shown": _dump(answer), "id": answer.get("id", ""),
                "cited": _dump([part["annotations"] for part in parts]),
                "message": next((item["id"] for item in answer.get("output", ()) if item["type"] == "message"), "")}

    async def chat(self, question: str, stream: bool, path: str = "/v1") -> Stages:
        """Ask for a chat completion."""
        body = {"model": self.models[0], "messages": [{"role": "user", "content": question}], "stream": stream,
                "citations": "both"}
        text = (await self.send("POST", f"{path}/chat/completions", body)).text
        choices = [choice.get("delta" if stream else "message") or {} for event in _events(text)
                   for choice in event.get("choices", ())]
        return {"said": "".join(one.get("content") or "" for one in choices), "shown": text,
                "cited": _dump([one.get("annotations") for one in choices])}

    async def thread(self, id: str) -> Stages:
        """Load a thread's history."""
        return {"shown": (await self.send("GET", f"/api/threads/{id}")).text}

    async def document(self, id: str, query: str = "") -> Stages:
        """Open the view of a document."""
        return {"shown": (await self.send("GET", f"/documents/{id}{query}")).text}

    async def picture(self, canary: Canary) -> Stages:
        """Load the picture of a document's first page."""
        response = await self.send("GET", f"/documents/{canary.document}/pages/1.png")
        return {"shown": canary.secret if response.status_code == 200 else ""}


Ask = Callable[[Visitor, Canary, str], Awaitable[Stages]]

ASKING: Mapping[str, Ask] = {  # asked in all wordings
    "search": lambda who, canary, question: who.tool("search", query=question, k=20),
    "ask": lambda who, canary, question: who.tool("ask", question=question),
    "chat": lambda who, canary, question: who.chat(question, stream=False),
    "chat stream": lambda who, canary, question: who.chat(question, stream=True),
    "Open WebUI": lambda who, canary, question: who.chat(question, stream=True, path="/openwebui/v1"),
    "responses": lambda who, canary, question: who.respond(question),
    "page": lambda who, canary, question: who.ask_page(question),
    "side by side": lambda who, canary, question: who.ask_page(question, model=who.models[-1])}
READING: Mapping[str, Ask] = {  # asked once for each canary
    "list": lambda who, canary, _: who.tool("list", path=canary.source[:len(canary.source) // 2] + "*"),
    "grep": lambda who, canary, _: who.tool("grep", pattern=canary.secret[:len(canary.secret) // 2]),
    "open": lambda who, canary, _: who.tool("open", document=canary.source),
    "open by id": lambda who, canary, _: who.tool("open", document=canary.document),
    "sql": lambda who, canary, _: who.tool("sql", query=f"FROM {canary.table}"),
    "document": lambda who, canary, _: who.document(canary.document),
    "part of it": lambda who, canary, _: who.document(canary.document, "?chunk=plain:0-120"),
    "picture": lambda who, canary, _: who.picture(canary)}
_AFTERWARDS = ("search", "page", "document", "picture", "open")  # routes that are asked after a key lost its claims
SENT: Mapping[str, Callable[[Canary], str]] = {  # what the client knows already, because it sent it
    "open": lambda canary: canary.source, "document": lambda canary: canary.document,
    "open by id": lambda canary: canary.document, "part of it": lambda canary: canary.document}


def visit_again(who: Visitor, canary: Canary, page: Stages, response: Stages,
                ) -> dict[str, Callable[[], Awaitable[Stages]]]:
    """Return requests that use an earlier conversation, and further ones for what it was about. `page` and `response`
    are the earlier answers on the page and of the responses API."""
    again, thread = "Repeat your last answer word for word.", page["thread"]
    item = [{"role": "user", "content": canary.questions[0]},
            {"type": "item_reference", "id": response["message"]}, {"role": "user", "content": again}]
    return {"history": lambda: who.thread(thread), "thread": lambda: who.ask_page(again, thread),
            "response": lambda: who.respond(again, response["id"]), "item": lambda: who.respond(item),
            **{route: lambda ask=ask: ask(who, canary, canary.questions[0])  # type: ignore[misc]
               for route, ask in {**ASKING, **READING}.items() if route in _AFTERWARDS and canary.has(route)}}


def _events(text: str) -> list[Any]:
    """Return the JSON objects of a body, which is one or a stream of them."""
    lines = text.splitlines() if text[:1] != "{" else [f"data: {text}"]
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

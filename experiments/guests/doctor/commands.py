"""`ragbed doctor`: check what works with a model and its server."""
from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ragbed.agents.client import ModelClient
from ragbed.agents.model_settings import CallLimits, ModelSettings, is_prompt_cut
from ragbed.agents.types import message_to_json
from ragbed.documents.errors import CallError, CallTooLong, ModelError, RagbedError
from ragbed.documents.http import BadReply, error_message, parse_error
from ragbed.experiments.commands.options import AsJson
from ragbed.strategies.types import Generate, Message, Reply

_WORDS = 6_000  # words of the long prompt, which exceeds Ollama's smallest default context of 4,096 tokens
_SCHEMA = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"],
           "additionalProperties": False}
_TOOL = {"type": "function", "function": {"name": "search", "description": "Search the documents.", "parameters": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}}
_CODE = "heron-4821"
_LONG = f"The code is {_CODE}. " + "The rain fell on the quiet town all day. " * (_WORDS // 9) + \
    "What is the code at the beginning of this text? Reply with the code only."


def doctor(model: Annotated[str | None, typer.Argument(help=(
        "Model, as for `ragbed ask --model`, or a settings file, for all its models."))] = None,
        json: AsJson = False) -> None:
    """Check what works with a model and its server, with six calls.

    Exit status 1 if a model does not answer, or if its server cuts long prompts.
    """
    from ragbed.agents.discovery import default_model
    from ragbed.experiments.settings.file import read_runs
    from ragbed.experiments.settings.texts import parse_model
    from ragbed.experiments.terminal.display import note, print_json, print_records

    if model is not None and model.endswith((".yaml", ".yml")):
        run = read_runs(Path(model))[0]
        names, calls = run.all_models, run.calls
    else:
        name, calls = parse_model(model or default_model(note))
        names = [name]
    found = [(name, asyncio.run(_examine(name, calls))) for name in names]
    if json:
        rows = [{"model": name, **checks} for name, checks in found]
        print_json(rows[0] if len(rows) == 1 else {"models": rows})
    else:
        print_records([(name, list(checks.items())) for name, checks in found])
    if any(text.startswith("BROKEN") for _, checks in found for text in checks.values()):
        raise typer.Exit(1)


async def _examine(spec: str, calls: ModelSettings) -> dict[str, str]:
    """Return the result of each check by name. Most results begin with `works`, `no` or `BROKEN`."""
    from ragbed.agents.models import open_model, resolve_model

    calls = calls.model_copy(update={"calls": CallLimits(seconds=600, attempts=2)})
    async with open_model(spec, calls) as client:
        await client.ready()
        started = time.monotonic()
        reply = await _ask(client, "Reply with the word: ready")
        if not isinstance(reply, Reply):
            return {"key" if isinstance(reply, ModelError) else "answer": f"BROKEN: {reply}"}
        seconds, used = time.monotonic() - started, reply.usage
        pieces: list[str] = []
        streamed = await _ask(client, "Count from one to five.", tell=lambda kind, text: pieces.append(text))
        fields = await _ask(client, "Choose a colour.", schema=_SCHEMA)
        tools = await _ask(client, "Use the tool to search for the height of Mount Fuji.", tools=(_TOOL,))
        replies = [one for one in (reply, fields, tools) if isinstance(one, Reply)]
        refused = ", ".join(dict.fromkeys(name for one in replies for name in one.unsent[1:]))
        price = client.price_of(1_000_000, 0), client.price_of(0, 1_000_000)
        return {
            "key": "works",
            "answer": f"works, in {seconds:.1f} s",
            "streaming": _say(streamed, len(pieces) > 1, "the whole reply arrived at once"),
            "JSON Schema": _say(fields, isinstance(fields, Reply) and isinstance(fields.parsed, Mapping) and
                                fields.parsed.get("colour") in ("red", "green"), "the reply does not fit the schema"),
            "tools": _say(tools, isinstance(tools, Reply) and bool(tools.tool_calls), "the model did not call it"),
            "usage": f"works, {used.prompt_tokens} + {used.completion_tokens} tokens" if used.prompt_tokens else
            "no: the server sends no counts; ragbed estimates them and cannot detect cut prompts",
            "parameters": f"no: the server refuses {refused}; ragbed leaves it out" if refused else "works",
            "logprobs": await _check_logprobs(client),
            "context": await _check_context(client, resolve_model(spec, calls, calls=False).remote is None),
            "price": "unknown; set `prices` of the model" if None in price else
            f"${price[0]:g} per million prompt tokens, ${price[1]:g} per million reply tokens"}


async def _check_context(client: ModelClient, served_here: bool) -> str:
    """Return whether the model reads the beginning of a long prompt. ragbed's own server (`served_here`) is not asked,
    because it rejects long prompts."""
    if client.context and served_here:
        return f"works: {client.context.tokens:,} tokens, from `calls: {{local: {{context: N}}}}`; longer prompts fail"
    known = f"; the context is {client.context.tokens:,} tokens" if client.context else ""
    client.context = None  # to send the prompt even if it cannot fit
    reply = await _ask(client, _LONG)
    if isinstance(reply, CallTooLong):
        return f"works: longer prompts are rejected, not cut ({reply}){known}"
    if not isinstance(reply, Reply):
        return f"no: {reply}"
    counted = reply.usage.prompt_tokens
    remedy = f"{known}. Give it a larger context; with Ollama, `calls: {{context: 32768}}` requests one"
    if is_prompt_cut((Message("user", (_LONG,)),), reply.usage):
        return f"BROKEN: the server cut a prompt of {_WORDS:,} words to {counted:,} tokens{remedy}"
    if not counted and _CODE not in reply.text:
        return f"BROKEN: the model did not find the code at the start of {_WORDS:,} words, probably cut{remedy}"
    unread = "" if _CODE in reply.text else ", but the model did not find the code at its start"
    return f"works: the server read a prompt of {_WORDS:,} words ({counted:,} tokens){unread}{known}"


async def _check_logprobs(client: ModelClient) -> str:
    chat, _ = await client.connection()
    hello = Generate((Message("user", ("Hello",)),), "doctor")
    body, _ = client.without_refused(chat.body([message_to_json(hello.messages[0])], client.parameters(hello, 4)))
    try:
        answer = await chat.post({**body, "logprobs": True})
    except (ConnectionError, BadReply) as error:
        return f"no: {error}"
    return "works" if b'"logprob"' in answer.body else \
        f"no: {error_message(parse_error(answer.body)) or 'the reply has no log probabilities'}"


async def _ask(client: ModelClient, text: str, tell: Any = None, **asked: Any) -> Reply | RagbedError:
    try:
        action = Generate((Message("user", (text,)),), "doctor", **asked)
        return (await client.complete(action, max_tokens=512, tell=tell)).reply
    except (CallError, ModelError) as error:
        error.args = (str(error).removeprefix(f"{client.name}: "),)
        return error


def _say(reply: Reply | RagbedError, worked: bool, otherwise: str) -> str:
    return "works" if worked else f"no: {otherwise if isinstance(reply, Reply) else reply}"

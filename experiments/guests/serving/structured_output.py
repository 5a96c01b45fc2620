"""Answers as JSON objects that fit a client's schema.

The strategy answers as it was measured. Then one more call of the model writes its answer as JSON, which is checked. A
record of this call is kept, apart from those of answers.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from ragbed.documents.json import find_object
from ragbed.experiments.guests.serving.client_parameters import AnswerSchema
from ragbed.strategies.prompting import fill_untrusted_text
from ragbed.strategies.types import Generate, Message

if TYPE_CHECKING:
    from ragbed.agents.graph import Event
    from ragbed.experiments.guests.serving.sessions import ChatSessions
    from ragbed.experiments.guests.traffic.turns import ChatTurn

_ATTEMPTS = 2


async def play_as_json(sessions: ChatSessions, turn: ChatTurn, wanted: AnswerSchema | None) -> AsyncGenerator[Event]:
    """Answer a turn, and yield its events like `ChatSessions.play`. With a schema, the text is a JSON object that fits
    it, in one piece, and the answer has its own text as `plain`. A refusal stays text, and has the field `refusal`."""
    async with contextlib.aclosing(sessions.play(turn)) as events:
        async for event in events:
            if wanted is None or event["event"] not in ("text", "answer"):
                yield event
            elif event["event"] == "answer" and event["outcome"] == "refused":
                yield {**event, "refusal": event["text"]}
            elif event["event"] == "answer":
                written = await _write(sessions, turn, wanted, event) if event["outcome"] == "answered" else event
                if written["outcome"] == "answered":
                    yield {"event": "text", "text": written["text"]}
                yield written


async def answer_as_json(sessions: ChatSessions, turn: ChatTurn, wanted: AnswerSchema | None) -> Event:
    """Answer a turn like `play_as_json`, and return its last event."""
    async with contextlib.aclosing(play_as_json(sessions, turn, wanted)) as events:
        *_, last = [event async for event in events]
    return last


async def _write(sessions: ChatSessions, turn: ChatTurn, wanted: AnswerSchema, answer: Event) -> Event:
    """Return the event `answer` with its text as JSON, or with the outcome `error` if the model cannot write it."""
    usage, complaint = answer["usage"], ""
    schema: Mapping[str, Any] | None = wanted.schema
    for _ in range(_ATTEMPTS):
        prompt = fill_untrusted_text(
            resources.files(__package__).joinpath("answer_as_json.md").read_text(encoding="utf-8"), "answer_as_json",
            {"question": turn.question, "answer": answer["text"], "schema": json.dumps(wanted.schema),
             "complaint": complaint and f"\nAn earlier reply did not fit: {complaint}\n"})
        call = Generate((Message("user", (prompt,)),), "format", schema=schema)
        reply = await sessions.answer(await sessions.start_call(turn.owner, turn.configuration, prompt, call))
        usage = _add(usage, reply["usage"])
        if reply["outcome"] != "answered":
            schema = None  # the model's server may not accept it
            continue
        value = find_object(reply["text"])
        complaint = await asyncio.to_thread(wanted.complaint, value)
        if not complaint:
            return {**answer, "text": json.dumps(value, ensure_ascii=False), "plain": answer["text"], "citations": [],
                    "usage": usage}
    return {**answer, "outcome": "error", "usage": usage,
            "text": f"No answer: the model could not write it as JSON that fits the schema. {complaint}".strip()}


def _add(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum of two usages; a figure that one of them does not know is unknown."""
    return {name: None if value is None or second.get(name) is None else value + second[name]
            for name, value in first.items()}

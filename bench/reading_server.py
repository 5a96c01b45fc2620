"""Serve a scripted reader on loopback through an OpenAI-compatible chat API, deterministic and without a model.

    python bench/reading_server.py

It answers with the sentence of the documents that shares the most words with the question, in the form that the last
message asks for: a line, a list, a JSON object, a tool call, or the answer in its tags. It knows no benchmark and no
strategy. A strategy's scores with it show how the strategy searches and loops, not how good it is. It prints its base
URL, and serves until its standard input closes.
"""
from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from chat_server import completion, serve

_DOCUMENT = re.compile(r"^\[(\d+)\]\n(.*?)(?=^\[\d+\]\n|^</documents>|\Z)", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"^Question: (.+)$", re.MULTILINE)
_QUERY = re.compile(r"<query>\n(.+?)\n</query>", re.DOTALL)
_PASSAGE = re.compile(r"<passage>\n(.+?)\n</passage>", re.DOTALL)
_WORD = re.compile(r"\w{3,}")
_ENOUGH = 4  # documents: what one search brings is never enough
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
# What the last message may ask for, and the reply to it: of the sentence, its document, the question and the lap.
_FORMS = (
    ("Grade: 0, 1, 2 or 3", "Grade: {grade}"),
    ("simple, moderate or complex", "complex"),
    ("begins with Sufficiency:", "Needed: {asked}\nMissing: {words}\nSufficiency: {sure}"),
    ("begins with `Fault:`", "{fault}"),
    ("`Follow-up: none`", "So far: {sentence}\nFollow-up: {follow}"),
    ("Write only the next step", "{step}"),
    ("Write only the first step", "{step}"),
    ("`Finish`", "Thought: it says that {sentence}\n{action}"),
    ("write the next two lines", "Thought: it says that {sentence}\n{action}"),
    ("Copy at most", '[{number}] "{sentence}"'),
    ("fact in each row", "| {words} | says | {sentence} | [{number}] |"),
    ("name = expression", "first = 1900 + 26\nlast = first + 10"),
    ("Write all lines once more", "first = 1900 + 26\nlast = first + 10"),
    ("end with this line, and nothing after it", "Best: 1"),
    ("yes, partly or no", "1: yes"),
    ("one on each line", "What is {words}?\nWho is {words}?\nWhen was {words}?"),
    ("on one line and nothing else", "What is known of {words}?"),
    ("Write the passage", "{asked} is known, and so is what it is about."),
)


def reply_to(messages: Sequence[dict[str, Any]]) -> str:
    """The reply to a conversation."""
    whole = "\n".join(str(message.get("content") or "") for message in messages)
    last, lap = str(messages[-1].get("content") or ""), sum(one["role"] == "assistant" for one in messages)
    found = [*_QUESTION.findall(whole), *_QUERY.findall(whole)]
    question = found[-1] if found else last[:200]
    documents = _DOCUMENT.findall(whole)
    number, sentence = best(question, documents)
    words = " ".join(_WORD.findall(sentence)[:6])
    over = lap >= 2
    fields = {"number": number, "sentence": sentence, "words": words, "grade": helps(question, last),
              "asked": " ".join(_WORD.findall(question)), "sure": 9 if len(documents) > _ENOUGH else 4,
              "follow": "none" if over else f"Who or what is {words}?",
              "fault": "Search: " + words if "faults" not in whole else "NO FAULTS",
              "step": f"So the answer is {sentence}" if over else f"Next, {words} has to be known.",
              "action": "Finish" if over else f"Search: {words}"}
    form = form_of(last)
    if form is None:
        return f"<Thinking>The documents say it.</Thinking>\n<Answer>{sentence} [{number}]</Answer>"
    return form.format(**fields)


def form_of(prompt: str) -> str | None:
    """The form of the reply that a prompt asks for; None where it is an answer or prose."""
    return next((form for asked, form in _FORMS if asked in prompt), None)


def best(question: str, documents: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """The number of the document and its sentence that share the most words with the question; the first of equals."""
    asked = set(_WORD.findall(question.lower()))
    ranked = [(-len(asked & set(_WORD.findall(sentence.lower()))), int(number), sentence.strip())
              for number, text in documents for sentence in _SENTENCE.split(" ".join(text.split())) if sentence.strip()]
    _, number, sentence = min(ranked, key=lambda one: one[0], default=(0, 0, "unknown"))
    return number, sentence[:400]


def helps(question: str, prompt: str) -> int:
    """The grade of a passage: 2 where it shares three words or more with the question, else 1."""
    passage = " ".join(_PASSAGE.findall(prompt)).lower()
    return 2 if len(set(_WORD.findall(question.lower())) & set(_WORD.findall(passage))) >= 3 else 1


def filled(schema: dict[str, Any], sentence: str, number: int) -> Any:
    """A value that fits a JSON Schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: filled(one, sentence, number) for name, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema.get("items", {}), sentence, number)]
    return {"boolean": False, "integer": number, "number": number}.get(str(kind), sentence)


def message_for(body: dict[str, Any]) -> dict[str, Any]:
    """The assistant's message to a request."""
    messages, text = body["messages"], ""
    calls = sum(message["role"] == "tool" for message in messages)
    if (body.get("tools") and calls < 2 and messages[-1]["role"] != "user") or (body.get("tools") and not calls):
        query = " ".join(reply_to(messages).split()[-6:])
        call = {"id": f"call-{calls}", "type": "function",
                "function": {"name": "search", "arguments": json.dumps({"query": query})}}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    text = reply_to(messages)
    if wanted := body.get("response_format", {}).get("json_schema"):
        whole = "\n".join(str(message.get("content") or "") for message in messages)
        number, sentence = best((_QUESTION.findall(whole) or [""])[-1], _DOCUMENT.findall(whole))
        text = json.dumps(filled(wanted["schema"], sentence, number))
    return {"role": "assistant", "content": text}


async def chat(request: web.Request) -> web.Response:
    """One reply; tokens are counted as words."""
    body = await request.json()
    message = message_for(body)
    prompt = sum(len(str(one.get("content") or "").split()) for one in body["messages"])
    said = len(json.dumps(message).split())
    return web.json_response(completion(body["model"], message, prompt, said))


if __name__ == "__main__":
    asyncio.run(serve(chat))

"""A pipeline of others in the place of a model: it is sent the question and the placed documents, and returns an
answer, what it read, and what it cites."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk, chunk_id, digest
from ragbed.strategies.reading import citation_marks
from ragbed.strategies.types import Contexts, Draft, Evidence, Generate, Message, Recipe, Task

PIPELINE, OWN = "pipeline", "own"  # as tables call it, and its own search
MOST_CONTEXTS = 1_000


class ReadContext(BaseModel):
    """A passage that a pipeline says it read.

    Attributes:
        document: an id or a source path, where it says one.
        start, end: characters of the document's plain rendering, in code points, where it says both.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    document: str = ""
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class Returned(BaseModel):
    """What a pipeline returned, whatever its kind.

    Attributes:
        contexts: what it read, best first; empty where it does not say, and read what it was given.
        citations: places, from 1, in the contexts, or in the given documents where there are none; 0 is a citation of
            something else. What the answer cites in brackets counts too.
        refused: None where it does not say; then the answer's own words tell.
        price: US dollars; None where it is not known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    answer: str = ""
    contexts: tuple[ReadContext, ...] = Field(default=(), max_length=MOST_CONTEXTS)
    citations: tuple[int, ...] = ()
    refused: bool | None = None
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    price: float | None = Field(default=None, ge=0, allow_inf_nan=False)


_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}  # so that the reply is read as JSON


def pipeline(task: Task) -> Recipe:
    """One call: the pipeline's own answer. What it says that it read is the evidence; else what it was given is."""
    given = yield from task.gather(task.question)
    numbers = tuple(passage.number for passage in given)
    reply = yield Generate((Message("user", tuple(_request(task, given))),), "answer", numbers, schema=_SCHEMA)
    returned = Returned.model_validate(reply.parsed or {}, strict=False)
    if returned.contexts:
        shown = yield Contexts(tuple(_chunk(one, given) for one in returned.contexts))
        numbers = tuple(passage.number for passage in shown)
    beyond = max(numbers, default=0)  # what is cited and nowhere stays a number that nothing has
    number_of = dict(enumerate(numbers, start=1))
    read = replace(reply, parsed={
        "answer": renumbered(returned.answer, number_of, beyond), "refused": returned.refused,
        "citations": [number_of.get(place, beyond + max(place, 1)) for place in returned.citations]})
    return Draft.from_reply(read)


def _request(task: Task, given: Evidence) -> Iterator[str]:
    """The parts of one JSON object; documents are parts of their own, which are stored once."""
    asked = {"id": task.id, "question": task.question,
             "options": [{"label": label, "text": text} for label, text in task.options],
             "history": [{"question": turn.question, "answer": turn.answer} for turn in task.turns]}
    yield json.dumps(asked, ensure_ascii=False)[:-1] + ', "documents": ['
    for place, passage in enumerate(given):
        chunk = passage.chunk
        yield ", " * bool(place) + json.dumps({"document": name_of(chunk.document), "text": chunk.content},
                                              ensure_ascii=False)
    yield "]}"


def name_of(id: str) -> str:
    """Return what a pipeline is told in the place of an id, which may say what is gold, as `refusal-7/12` does."""
    return digest(id)[:12]


def _chunk(context: ReadContext, given: Evidence) -> Chunk:
    """The given chunk that it is, by its text; else one of its own."""
    chunks = [passage.chunk for passage in given]
    named = next((chunk.document for chunk in chunks if name_of(chunk.document) == context.document), context.document)
    same = [chunk for chunk in chunks if chunk.content == context.text]
    start, end = (0, 0) if context.start is None or context.end is None else (context.start, context.end)
    own = Chunk(chunk_id(named, "plain", start, end, context.text), named, "plain", start, end, context.text)
    return next((chunk for chunk in same if chunk.document == named), same[0] if same else own)


def renumbered(text: str, number_of: Mapping[int, int], beyond: int) -> str:
    """Return the text with other numbers in its brackets; what has none gets one beyond them all."""
    if all(place == number for place, number in number_of.items()):
        return text
    made, at = [], 0
    for start, end, places in citation_marks(text):
        cited = dict.fromkeys(number_of.get(place, beyond + max(place, 1)) for place in places)
        made += [text[at:start], f"[{', '.join(map(str, cited))}]"]
        at = end
    return "".join([*made, text[at:]])

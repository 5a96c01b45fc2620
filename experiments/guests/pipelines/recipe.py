"""Recipe that asks a pipeline. It sends the question and any provided documents. It receives an answer, the contexts
that the pipeline read, and its citations."""
from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ragbed.documents.types import Chunk, chunk_id, digest
from ragbed.strategies.reading import renumber_citations
from ragbed.strategies.types import (
    Asked,
    Contexts,
    Draft,
    Evidence,
    Failure,
    Generate,
    Message,
    Passage,
    PipelineFailure,
    Recipe,
    Reply,
    Task,
    ToolCall,
)

MAX_CONTEXTS = 1_000
_SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}  # parses the reply as JSON


class ReadContext(BaseModel):
    """A passage that a pipeline read.

    Attributes:
        document: an id or a source path; empty if unknown.
        start, end: characters in the document's plain text, in code points; None if unknown.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str = ""
    document: str = ""
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class PipelineReply(BaseModel):
    """The reply of a pipeline, in the same form for all kinds of pipeline.

    Attributes:
        contexts: the passages that it read, best first. If empty, it read the documents in the request.
        citations: positions in the contexts, from 1, or in the sent documents if there are no contexts. 0 cites
            something else. Numbers in brackets in the answer count too.
        refused: whether it refused; if None, the wording of the answer decides.
        price: US dollars; None if unknown.
        called: ragbed's tools that it called, each with the arguments.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    answer: str = ""
    contexts: tuple[ReadContext, ...] = Field(default=(), max_length=MAX_CONTEXTS)
    citations: tuple[int, ...] = ()
    refused: bool | None = None
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    called: tuple[tuple[str, dict[str, Any]], ...] = ()


def ask_pipeline(task: Task, documents: bool = True) -> Recipe:
    """Ask the pipeline in one call. The evidence is what the tools that it called returned, its contexts or, if there
    are none, the documents sent.

    The calls of tools are made again after the reply, so that they have steps and evidence numbers. Their results are
    stored already. This holds for a pipeline that failed, too.

    Args:
        documents: whether to search for documents to send.
    """
    sent = (yield from task.gather(task.question)) if documents else ()
    numbers = tuple(passage.number for passage in sent)
    reply: Reply | Failure = yield Generate((Message("user", tuple(_request(task, sent))),), "answer", numbers,
                                            schema=_SCHEMA, counted=False, see_failure=True)
    if isinstance(reply, Failure):
        if isinstance(reply, PipelineFailure):
            yield from _call_again(reply.called)
        return Draft("", (), False, False, None, failure=Failure(reply.kind, reply.message))
    returned = PipelineReply.model_validate(reply.parsed or {}, strict=False)
    if returned.called:
        numbers = yield from _call_again(returned.called)  # 1, 2, ..., as the results had them
    elif returned.contexts:
        shown = yield Contexts(tuple(_chunk(one, sent) for one in returned.contexts))
        numbers = tuple(passage.number for passage in shown)
    number_of = dict(enumerate(numbers, start=1))
    beyond = max(numbers, default=0)  # an unknown citation becomes a number above all known ones
    renumbered = replace(reply, parsed={
        "answer": renumber_citations(returned.answer, number_of, beyond), "refused": returned.refused,
        "citations": [number_of.get(place, beyond + max(place, 1)) for place in returned.citations]})
    return Draft.from_reply(renumbered)


def _call_again(called: Sequence[tuple[str, Mapping[str, Any]]]) -> Generator[Asked, Any, tuple[int, ...]]:
    """Make the calls of tools, and return the evidence numbers of the passages that they found."""
    seen: dict[Passage, None] = {}
    for tool, arguments in called:
        result = yield ToolCall(tool, arguments)
        seen |= dict.fromkeys(result.passages)
    yield Contexts(tuple(passage.chunk for passage in seen))
    return tuple(passage.number for passage in seen)


def _request(task: Task, sent: Evidence) -> Iterator[str]:
    """Yield the parts of one JSON object. Documents are separate parts, so that each is stored once."""
    fields = {"id": task.id, "question": task.question,
              "options": [{"label": label, "text": text} for label, text in task.options],
              "history": [{"question": turn.question, "answer": turn.answer} for turn in task.turns]}
    yield json.dumps(fields, ensure_ascii=False)[:-1] + ', "documents": ['
    for place, passage in enumerate(sent):
        chunk = passage.chunk
        yield ", " * bool(place) + json.dumps({"document": opaque_id(chunk.document), "text": chunk.content},
                                              ensure_ascii=False)
    yield "]}"


def opaque_id(id: str) -> str:
    """Return an id to send to a pipeline instead of the original, which may reveal the gold, as `refusal-7/12` does."""
    return digest(id)[:12]


def _chunk(context: ReadContext, sent: Evidence) -> Chunk:
    """Return the sent chunk with the context's text, or a new one."""
    chunks = [passage.chunk for passage in sent]
    document = next((chunk.document for chunk in chunks if opaque_id(chunk.document) == context.document),
                    context.document)
    same = [chunk for chunk in chunks if chunk.content == context.text]
    if same:
        return next((chunk for chunk in same if chunk.document == document), same[0])
    start, end = (0, 0) if context.start is None or context.end is None else (context.start, context.end)
    return Chunk(chunk_id(document, "plain", start, end, context.text), document, "plain", start, end, context.text)

"""Pipelines made with a framework: LangChain, LangGraph, Haystack, LlamaIndex. A file of the user's makes the object;
what it returns is read by its shape."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from ragbed.agents.pipelines.base import Request
from ragbed.agents.pipelines.code import CodeChannel, OfFile, field_of, tokens
from ragbed.documents.errors import SettingsError
from ragbed.documents.user_code import UserCode

if TYPE_CHECKING:
    from ragbed.agents.settings import CallLimits

_QUESTION = ("question", "query", "input", "text")  # what inputs for a question are called, the usual one first
_TAG = "ragbed"
_SOURCE_OF_LLAMA = re.compile(r"\ASource \d+:\n")


class Framework(OfFile):
    """An object of a framework, or a function without parameters that returns one. What comes back is its own fields as
    JSON, beside them `answer`, `contexts`, `prompt_tokens` and `completion_tokens`.

    Attributes:
        request: a text, as here, goes where the object takes its question.
    """

    request: Request = "{question}"

    def open(self, limits: CallLimits) -> CodeChannel:
        """Load the object; SettingsError where it is none of the kind."""
        named = self.made
        with UserCode(lambda said: SettingsError(f"pipeline {self.name}: {said}")):
            make = named if inspect.isroutine(named) else None
            call = self._caller(make() if make else named, make)
        return CodeChannel(self, call=call, plain=_plain)

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        """What asks the object once, given a request; `make` makes another."""
        raise NotImplementedError


class LangChain(Framework):
    """A Runnable, such as a chain or an agent, or a compiled graph of LangGraph, which begins a thread of its own for
    each question. Contexts are the documents in what it returns; else those that its retrievers and tools found."""

    kind: Literal["langchain", "langgraph"]

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        from ragbed.agents.pipelines.runnables import Listener, in_common

        ask, takes = made.ainvoke, ()
        if isinstance(self.request, str):  # a graph has channels
            with UserCode(lambda said: SettingsError(
                    f"pipeline {self.name}: {self.factory} does not say what it takes ({said}); say it, as in "
                    "request: {input: '{question}'}")):
                takes = getattr(made, "channels", None) or made.get_input_jsonschema().get("properties", ())
        key = next((name for name in ("messages", *_QUESTION) if name in takes), None)

        async def call(body: Any) -> Any:
            if key is not None:
                body = {key: [("user", body)] if key == "messages" else body}
            listener = Listener()
            came = await ask(body, {"callbacks": [listener], "configurable": {"thread_id": uuid4().hex}})
            return in_common(came, listener)

        return call


class Haystack(Framework):
    """A Pipeline. Contexts are the documents that the last component with any put out."""

    kind: Literal["haystack"] = "haystack"

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        takes = set(chain.from_iterable(made.inputs().values()))
        made.warm_up()  # once, before several threads do
        shown = {name for name, sockets in made.outputs(include_components_with_connected_outputs=True).items()
                 if sockets.keys() & {"answers", "replies", "documents", "last_message"}}

        def call(body: Any) -> Any:
            data = {name: body for name in _QUESTION if name in takes} if isinstance(body, str) else body
            came = made.run(data, include_outputs_from=shown)
            last = {name: value for sockets in came.values() for name, value in sockets.items()}  # in order of the run
            answer = next(iter(last.get("answers") or last.get("replies") or ()), last.get("last_message"))
            own = getattr(answer, "documents", [])
            # An agent has messages; of several replies, each says what they all used.
            said = chain.from_iterable(one.get("messages") or one.get("replies", ())[:1] for one in came.values())
            return {**came, "answer": getattr(answer, "data", getattr(answer, "text", answer)),
                    "contexts": last.get("documents", own),
                    "citations": [one.meta["source_index"] for one in own if one.meta.get("referenced")],
                    **tokens(*(field_of(field_of(one, "meta"), "usage") for one in said))}

        return call


class LlamaIndex(Framework):
    """A query engine, or a function that returns a chat engine: that remembers, so each question gets a new one."""

    kind: Literal["llamaindex"] = "llamaindex"
    refusals: tuple[str, ...] = ("Empty Response",)  # what an engine says that found nothing

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        from llama_index_instrumentation import get_dispatcher
        from llama_index_instrumentation.dispatcher import instrument_tags

        of_queries = hasattr(made, "query")
        if not of_queries and made.chat and make is None:
            raise SettingsError(f"pipeline {self.name}: a chat engine remembers what it was asked; let {self.factory} "
                                "be a function that returns one, which is called for each question")
        replies: Any = _LlamaReplies()
        get_dispatcher().add_event_handler(replies)

        def call(body: Any) -> Any:
            used: list[Any] = []
            with instrument_tags({_TAG: used}):
                came = made.query(body) if of_queries else make().chat(body)
                came = came.get_response() if hasattr(came, "get_response") else came  # of a stream
            said = came.response
            return {**vars(came), **(said.model_dump() if hasattr(said, "model_dump") else {"answer": said}),
                    "contexts": [{"text": _SOURCE_OF_LLAMA.sub("", node.get_content()).strip(),
                                  "metadata": node.metadata, "id": node.ref_doc_id or node.node_id}
                                 for node in (one.node for one in came.source_nodes)],
                    **tokens(*(field_of(one, "usage") for one in used))}

        return call


class _LlamaReplies:
    """Keeps the replies of models with the question that they were made for; an event handler of LlamaIndex's."""

    def handle(self, event: Any, **about: Any) -> None:
        """Keep a reply once: a chat that is made of a completion ends twice."""
        used = event.tags.get(_TAG)
        if used is not None and event.class_name() in ("LLMChatEndEvent", "LLMCompletionEndEvent"):
            raw = getattr(event.response, "raw", None)
            if all(raw is not one for one in used):
                used.append(raw)


def _plain(value: Any) -> Any:
    """An object as JSON has it; what has no fields, as a text: no path need lead there."""
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return vars(value) if is_dataclass(value) else str(value)

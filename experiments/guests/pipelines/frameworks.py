"""Pipelines built with LangChain, LangGraph, Haystack or LlamaIndex. The user's file builds the object."""
from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from ragbed.documents.errors import SettingsError
from ragbed.documents.user_code import UserCode
from ragbed.experiments.guests.pipelines.pipeline import Request
from ragbed.experiments.guests.pipelines.python_code import CodeChannel, FilePipeline, get_field, sum_usage

if TYPE_CHECKING:
    from ragbed.agents.model_settings import CallLimits

_QUESTION = ("question", "query", "input", "text")  # possible names of the question's input, the usual one first
_TAG = "ragbed"
_LLAMA_SOURCE = re.compile(r"\ASource \d+:\n")


class Framework(FilePipeline):
    """A framework's object, or a function without parameters that returns one. The reply has the object's output fields
    as JSON, and adds `answer`, `contexts`, `prompt_tokens` and `completion_tokens`.

    Attributes:
        request: a string replaces the question; a mapping has the object's inputs by name.
    """

    request: Request = "{question}"

    def open(self, limits: CallLimits) -> CodeChannel:
        """Load the object. Raises SettingsError if it is not an object of the framework."""
        found = self.load()
        with UserCode(lambda why: SettingsError(f"pipeline {self.name}: {why}")):
            make = found if inspect.isroutine(found) else None
            call = self._caller(make() if make else found, make)
        return CodeChannel(self, call=call, to_json=_to_json, seconds=limits.seconds)

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        """Return a function that sends one request to the object. `make` is the user's function, if there is one."""
        raise NotImplementedError


class _Runnable(Framework):
    """A LangChain Runnable. The contexts are the documents in its output, or else those that its retrievers and tools
    found."""

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        from ragbed.experiments.guests.pipelines.langchain_output import Listener, convert_output

        ask, takes = made.ainvoke, ()
        if isinstance(self.request, str):  # the inputs of a graph are its channels
            with UserCode(lambda why: SettingsError(
                    f"pipeline {self.name}: the inputs of {self.factory} are unknown ({why}); name them, e.g. "
                    "request: {input: '{question}'}")):
                takes = getattr(made, "channels", None) or made.get_input_jsonschema().get("properties", ())
        key = next((name for name in ("messages", *_QUESTION) if name in takes), None)

        async def call(body: Any) -> Any:
            if key is not None:
                body = {key: [("user", body)] if key == "messages" else body}
            listener = Listener()
            output = await ask(body, {"callbacks": [listener], "configurable": {"thread_id": uuid4().hex}})
            return convert_output(output, listener)

        return call


class LangChain(_Runnable):
    """A LangChain Runnable, such as a chain or an agent."""

    kind: Literal["langchain"] = "langchain"


class LangGraph(_Runnable):
    """A compiled LangGraph graph. Each question gets a new thread."""

    kind: Literal["langgraph"] = "langgraph"


class Haystack(Framework):
    """A Haystack Pipeline. The contexts are the documents of the last component that outputs any."""

    kind: Literal["haystack"] = "haystack"

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        takes = set(chain.from_iterable(made.inputs().values()))
        made.warm_up()  # prepare it once, before several threads use it
        shown = {name for name, sockets in made.outputs(include_components_with_connected_outputs=True).items()
                 if sockets.keys() & {"answers", "replies", "documents", "last_message"}}

        def call(body: Any) -> Any:
            data = {name: body for name in _QUESTION if name in takes} if isinstance(body, str) else body
            output = made.run(data, include_outputs_from=shown)
            last = {name: value for sockets in output.values() for name, value in sockets.items()}
            answer = next(iter(last.get("answers") or last.get("replies") or ()), last.get("last_message"))
            own = getattr(answer, "documents", [])
            # Agents return messages. If there are several replies, each reports the usage of all of them.
            replies = chain.from_iterable(one.get("messages") or one.get("replies", ())[:1] for one in output.values())
            return {**output, "answer": getattr(answer, "data", getattr(answer, "text", answer)),
                    "contexts": last.get("documents", own),
                    "citations": [one.meta["source_index"] for one in own if one.meta.get("referenced")],
                    **sum_usage(*(get_field(get_field(one, "meta"), "usage") for one in replies))}

        return call


class LlamaIndex(Framework):
    """A query engine, or a function that returns a chat engine. The function is called for each question, because a
    chat engine remembers earlier ones.
    """

    kind: Literal["llamaindex"] = "llamaindex"
    refusals: tuple[str, ...] = ("Empty Response",)  # the text of an engine that found nothing

    def _caller(self, made: Any, make: Any) -> Callable[[Any], Any]:
        from llama_index_instrumentation import get_dispatcher
        from llama_index_instrumentation.dispatcher import instrument_tags

        answers_queries = hasattr(made, "query")
        if not answers_queries and made.chat and make is None:
            raise SettingsError(f"pipeline {self.name}: a chat engine remembers earlier questions; make {self.factory} "
                                "a function that returns a new one, which is called for each question")
        replies: Any = _LlamaReplies()
        get_dispatcher().add_event_handler(replies)

        def call(body: Any) -> Any:
            used: list[Any] = []
            with instrument_tags({_TAG: used}):
                output = made.query(body) if answers_queries else make().chat(body)
                output = output.get_response() if hasattr(output, "get_response") else output  # a streamed reply
            answer = output.response
            return {**vars(output), **(answer.model_dump() if hasattr(answer, "model_dump") else {"answer": answer}),
                    "contexts": [{"text": _LLAMA_SOURCE.sub("", node.get_content()).strip(),
                                  "metadata": node.metadata, "id": node.ref_doc_id or node.node_id}
                                 for node in (one.node for one in output.source_nodes)],
                    **sum_usage(*(get_field(one, "usage") for one in used))}

        return call


class _LlamaReplies:
    """Event handler of LlamaIndex that collects the replies of models for each question."""

    def handle(self, event: Any, **about: Any) -> None:
        """Keep each reply once. A chat built on a completion emits two end events."""
        used = event.tags.get(_TAG)
        if used is not None and event.class_name() in ("LLMChatEndEvent", "LLMCompletionEndEvent"):
            raw = getattr(event.response, "raw", None)
            if all(raw is not one for one in used):
                used.append(raw)


def _to_json(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return vars(value) if is_dataclass(value) else str(value)

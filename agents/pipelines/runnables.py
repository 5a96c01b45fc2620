"""Runnables of LangChain: what their callbacks tell of a question, and what they return in one form."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult

from ragbed.agents.pipelines.code import tokens

_ANSWERS = ("answer", "output", "result", "response", "generation")
_CONTEXTS = ("context", "contexts", "documents", "docs", "source_documents")


class Listener(BaseCallbackHandler):
    """Keeps what models used, and what retrievers and tools found, on the way to one answer."""

    run_inline = True  # in the order of the calls

    def __init__(self) -> None:
        self.usages: list[Any] = []
        self.documents: list[Document] = []
        self._retrievers: set[UUID] = set()

    def on_llm_end(self, response: LLMResult, **about: Any) -> None:
        """Keep what a call used."""
        messages = (getattr(one, "message", None) for several in response.generations for one in several)
        self.usages += [one.usage_metadata for one in messages if isinstance(one, AIMessage)]

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **about: Any) -> None:
        """Keep which run it is, to tell those that it has inside."""
        self._retrievers.add(run_id)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None,
                         **about: Any) -> None:
        """Keep what the outermost retriever found, such as one that reranks."""
        if parent_run_id not in self._retrievers:
            self._keep(documents)

    def on_tool_end(self, output: Any, **about: Any) -> None:
        """Keep the documents that a tool returned beside its text."""
        if isinstance(artifact := getattr(output, "artifact", None), list):
            self._keep([one for one in artifact if isinstance(one, Document)])

    def _keep(self, documents: Sequence[Document]) -> None:
        self.documents += [one for one in documents if one not in self.documents]


def in_common(came: Any, listener: Listener) -> Any:
    """Return what a Runnable returned with an answer, contexts and tokens beside its own fields."""
    if isinstance(came, BaseMessage | str):
        came = {"answer": came}
    elif hasattr(came, "model_dump"):
        came = came.model_dump()
    if not isinstance(came, Mapping):
        return came
    replies = [one for one in came.get("messages") or () if isinstance(one, AIMessage)]
    answer = next((came[name] for name in _ANSWERS if came.get(name) is not None), replies[-1] if replies else None)
    listed = (came[name] for name in _CONTEXTS if isinstance(came.get(name), list | tuple))
    return {**came, "answer": str(answer.text) if isinstance(answer, BaseMessage) else answer,
            "contexts": next(listed, listener.documents), **tokens(*listener.usages)}

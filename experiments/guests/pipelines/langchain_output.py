"""What a LangChain Runnable returns: its output, and what its callbacks report."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult

from ragbed.experiments.guests.pipelines.python_code import sum_usage

_ANSWERS = ("answer", "output", "result", "response", "generation")
_CONTEXTS = ("context", "contexts", "documents", "docs", "source_documents")


class Listener(BaseCallbackHandler):
    """Collects, for one answer, the usage of models and the documents of retrievers and tools."""

    run_inline = True  # LangChain then reports calls in their order

    def __init__(self) -> None:
        self.usages: list[Any] = []
        self.documents: list[Document] = []
        self._retrievers: set[UUID] = set()

    def on_llm_end(self, response: LLMResult, **about: Any) -> None:
        """Keep the usage of a call."""
        messages = (getattr(one, "message", None) for several in response.generations for one in several)
        self.usages += [one.usage_metadata for one in messages if isinstance(one, AIMessage)]

    def on_retriever_start(self, serialized: Any, query: str, *, run_id: UUID, **about: Any) -> None:
        """Remember the retriever's run id, to recognise nested retrievers."""
        self._retrievers.add(run_id)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None,
                         **about: Any) -> None:
        """Keep the documents of the outermost retriever, such as one that reranks."""
        if parent_run_id not in self._retrievers:
            self._keep(documents)

    def on_tool_end(self, output: Any, **about: Any) -> None:
        """Keep the documents that a tool returned with its text."""
        if isinstance(artifact := getattr(output, "artifact", None), list):
            self._keep([one for one in artifact if isinstance(one, Document)])

    def _keep(self, documents: Sequence[Document]) -> None:
        self.documents += [one for one in documents if one not in self.documents]


def convert_output(output: Any, listener: Listener) -> Any:
    """Return a Runnable's output with `answer`, `contexts` and tokens added to its fields."""
    if isinstance(output, BaseMessage | str):
        output = {"answer": output}
    elif hasattr(output, "model_dump"):
        output = output.model_dump()
    if not isinstance(output, Mapping):
        return output
    replies = [one for one in output.get("messages") or () if isinstance(one, AIMessage)]
    answer = next((output[name] for name in _ANSWERS if output.get(name) is not None), replies[-1] if replies else None)
    listed = (output[name] for name in _CONTEXTS if isinstance(output.get(name), list | tuple))
    return {**output, "answer": str(answer.text) if isinstance(answer, BaseMessage) else answer,
            "contexts": next(listed, listener.documents), **sum_usage(*listener.usages)}

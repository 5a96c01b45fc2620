"""Tools that a strategy may call: the documents that they may read, and the results that they return.

The guest in the slot `toolbox` implements them: `check` validates the value of a strategy's parameter `tools`, and
`open` opens its tools for a run."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragbed.agents.search import SearchFunction
from ragbed.documents.types import Chunk, Document, Format
from ragbed.strategies.types import ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned: texts and spans of documents in reading order, or why it failed or refused."""

    parts: tuple[str | Chunk, ...]
    failure: str = ""


class Corpus(Protocol):
    """The documents that a question may use.

    Attributes:
        hash: hash of the content.
        format: the rendering of the documents that the question's searches show.
        ids: ids of the documents, in order.
        chunks: the chunks that the question searches.
    """

    hash: str
    format: Format
    ids: Sequence[str]
    chunks: Sequence[Chunk]

    def document(self, id: str) -> Document:
        """Return the document of an id. Raises KeyError if it is unknown."""
        ...

    def spans(self, id: str, start: int, end: int) -> tuple[Chunk, ...]:
        """Return the span `[start, end)` of a document's rendering as chunks, which may be cited. Several if the
        question has only parts of the document."""
        ...


class Toolbox(Protocol):
    """The tools of a strategy, open for a run.

    Attributes:
        specs: the tools.
        hashes: by the name of each tool, a hash of all that determines its results, except the call's arguments, the
            documents and the searches: such as the source of a function, or the version of a server.
    """

    specs: tuple[ToolSpec, ...]
    hashes: Mapping[str, str]

    async def call(self, call: ToolCall, corpus: Corpus, searches: Mapping[str, SearchFunction]) -> ToolOutput:
        """Call a tool. Unknown tools, invalid arguments and exceptions of tools give an output with a `failure`.

        Args:
            corpus: the documents that the question may use.
            searches: the question's searches by name; `search` is that of the cell's retriever.
        """
        ...

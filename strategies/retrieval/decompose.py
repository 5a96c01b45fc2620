"""Decomposition: one search for each sub-question (after Khot et al. 2023 and Press et al. 2023).

All sub-questions are written before the first search, so none can build on another's answer. If that is needed, use
IRCoT, self-ask or ReAct. The query itself is searched too, and comes first.
"""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ragbed.strategies.parts.conversation import ask_without_documents, gather_each
from ragbed.strategies.parts.merging import Keep, interleave
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Decision, Gathering, Reply, Retrieval, Task


def decompose(task: Task, query: str, *, over: Retrieval = once, parts: Annotated[int, Field(ge=1, le=10)] = 4,
              keep: Keep = None) -> Gathering:
    """Search for the query and up to `parts` sub-questions that one call writes, and interleave the results."""
    reply: Reply = yield ask_without_documents("decompose", "decompose", query=query, count=str(parts))
    asked = read_list(reply.text, query, parts)
    if not asked:
        yield Decision("searches as asked", "no sub-questions came")
    return interleave((yield from gather_each(task, [query, *asked], over)), keep)

"""Multi-query: search for several rephrasings together (RAG-Fusion: Rackauckas 2024; rewriting: Ma et al. 2023).

The query itself is searched too. The lists are merged by reciprocal rank fusion. By default, the merged list is as long
as the longest one.
"""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ragbed.strategies.parts.conversation import ask_without_documents, gather_each
from ragbed.strategies.parts.merging import Keep, fuse
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Decision, Gathering, Reply, Retrieval, Task


def multi_query(task: Task, query: str, *, over: Retrieval = once, queries: Annotated[int, Field(ge=1, le=10)] = 3,
                keep: Keep = None) -> Gathering:
    """Search for the query and up to `queries` rephrasings that one call writes."""
    reply: Reply = yield ask_without_documents("multi_query", "queries", query=query, count=str(queries))
    worded = read_list(reply.text, query, queries)
    if len(worded) < queries:
        yield Decision("searches less", f"{len(worded)} of {queries} wordings came")
    return fuse((yield from gather_each(task, [query, *worded], over)), keep)

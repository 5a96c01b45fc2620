"""HyDE: search with a hypothetical passage that answers the query (Gao et al. 2022, arXiv:2212.10496).

The paper averages the embeddings of several passages and the query. Here a retriever takes text and may not use
embeddings, so each passage becomes a query. With `beside`, the original query is searched too. The lists are merged by
reciprocal rank fusion. Several passages are drawn at the paper's temperature, 0.7.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.parts.conversation import ask_without_documents, gather_each, reply_line
from ragbed.strategies.parts.merging import Keep, fuse
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Decision, Gathering, Reply, Task

_TEMPERATURE = 0.7


def hyde(task: Task, query: str, *, samples: Annotated[int, Field(ge=1, le=10)] = 1, beside: bool = False,
         keep: Keep = None) -> Gathering:
    """Search with passages that might answer the query. One call writes each. `beside` also searches for the query."""
    call = ask_without_documents("hyde", "passage", query=query)
    if samples > 1:
        call = replace(call, temperature=_TEMPERATURE)
    replies: list[Reply] = yield [replace(call, sample=sample) for sample in range(samples)]
    passages = [passage for reply in replies if (passage := reply_line(reply))]
    if len(passages) < samples:
        what = "searches less" if passages else "searches as asked"
        yield Decision(what, f"{len(passages)} of {samples} passages came")
    queries = [query, *passages] if beside or not passages else passages
    return fuse((yield from gather_each(task, queries, once)), keep)

"""Step back: search for a more general question too (Zheng et al. 2023, "Take a Step Back").

The paper shows worked examples for each dataset; here a description of the task replaces them.
"""
from __future__ import annotations

from ragbed.strategies.parts.conversation import ask_without_documents, gather_each
from ragbed.strategies.parts.merging import Keep, interleave
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Decision, Gathering, Reply, Retrieval, Task


def step_back(task: Task, query: str, *, over: Retrieval = once, keep: Keep = None) -> Gathering:
    """Search for the query and a more general question that one call writes, and interleave the results."""
    reply: Reply = yield ask_without_documents("step_back", "step_back", query=query)
    general = read_list(reply.text, query, 1)
    if not general:
        yield Decision("searches as asked", "no more general question came")
    return interleave((yield from gather_each(task, [query, *general], over)), keep)

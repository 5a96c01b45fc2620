"""Adaptive retrieval: choose how to search by the question (Adaptive-RAG: Jeong et al. 2024).

The paper trains a classifier to predict which of three methods answers a question. Here the answering model decides how
much to search.
"""
from __future__ import annotations

from ragbed.strategies.parts.conversation import ask_without_documents
from ragbed.strategies.reading import fold, read_answer
from ragbed.strategies.retrieval.iterative import iterative
from ragbed.strategies.retrieval.once import none, once
from ragbed.strategies.types import Decision, Gathering, Reply, Retrieval, Task

_MAX_SAID = 1_000  # characters read of a reply, which should be one word


def adaptive(task: Task, query: str, *, simple: Retrieval = none, moderate: Retrieval = once,
             complex: Retrieval = iterative) -> Gathering:
    """Let one call decide whether to search not at all, once or several times. If its reply is unreadable, search once.

    The rules `grounded` and `reading` allow only documents as a source. If `simple` finds no documents under these
    rules, `moderate` follows, since the model would have to refuse otherwise.
    """
    ways = {"simple": simple, "moderate": moderate, "complex": complex}
    reply: Reply = yield ask_without_documents("adaptive", "classify", query=query)
    words = fold(read_answer(reply.text)[0][:_MAX_SAID]).split()
    said = [way for way in ways if way in words]
    if len(said) != 1:
        yield Decision("searches as moderate", "the reply names no way, or several")
        return (yield from moderate(task, query))
    yield Decision(f"searches as {said[0]}")
    evidence = yield from ways[said[0]](task, query)
    if said == ["simple"] and not evidence and task.rules in ("grounded", "reading"):
        yield Decision("searches as moderate", "the rules allow for documents alone")
        return (yield from moderate(task, query))
    return evidence

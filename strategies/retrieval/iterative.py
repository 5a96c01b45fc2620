"""Iterative retrieval: search again with the last answer (Iter-RetGen: Shao et al. 2023, arXiv:2305.15294).

As in the paper, each search uses the question with the last answer, and each answer uses only the last search's
documents. The reasoning strategy gives the final answer.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.answering import ask
from ragbed.strategies.parts.conversation import reply_line
from ragbed.strategies.parts.merging import Keep, concatenate, keep_limit, new_passages
from ragbed.strategies.prompting import template
from ragbed.strategies.reading import strip_citations
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Decision, Gathering, Reply, Retrieval, Task


def iterative(task: Task, query: str, *, over: Retrieval = once, iterations: Annotated[int, Field(ge=1, le=10)] = 2,
              keep: Keep = None) -> Gathering:
    """Search with a draft answer, and write the next draft from the results, for at most `iterations` searches.

    The results of later searches are placed first.
    """
    about = replace(task, question=query, options=(), sub_questions=(), with_sub_answers=False)
    found, said = [(yield from over(task, query))], ""
    for _ in range(1, iterations):
        reply: Reply = yield ask(about, template("iterative"), found[-1], "draft")
        drafted = strip_citations(reply_line(reply))
        if drafted in ("", said):
            yield Decision("stops", "the draft says nothing new" if drafted else "no draft to search with")
            break
        said = drafted
        yield Decision("searches again", "with the last draft")
        found.append((yield from over(task, f"{query} {drafted}")))
        if not new_passages(concatenate(found[:-1]), found[-1]):
            yield Decision("stops", "the search brought nothing new")
            break
    return concatenate(reversed(found))[:keep_limit(found, keep)]

"""Corrective retrieval: grade the results, drop what does not help, search again (CRAG: Yan et al. 2024).

The paper grades with a fine-tuned T5, cuts passages into strips, and searches the web if nothing helps. Here the
answering model grades whole passages from 0 to 3, one call each, and rewrites the query to search the same documents
again.
"""
from __future__ import annotations

from collections.abc import Generator
from typing import Annotated, Any

from pydantic import Field

from ragbed.strategies.parts.conversation import ask_without_documents
from ragbed.strategies.parts.merging import format_numbers, new_passages
from ragbed.strategies.parts.reading import read_grade, read_list
from ragbed.strategies.reading import fold, strip_thinking
from ragbed.strategies.retrieval.once import once
from ragbed.strategies.types import Asked, Decision, Evidence, Gathering, Reply, Retrieval, Task

_MAX_PASSAGE, _MAX_SAID = 6_000, 20_000  # characters graded of a passage; characters read of a reply


def corrective(task: Task, query: str, *, over: Retrieval = once, iterations: Annotated[int, Field(ge=1, le=10)] = 2,
               least: Annotated[int, Field(ge=1)] = 2, threshold: Annotated[int, Field(ge=1, le=3)] = 2) -> Gathering:
    """Grade each chunk found, drop those that do not help, and search again if too few are left.

    A chunk whose grade cannot be read is kept. If none is left, the evidence is empty, except under the rules
    `reading`, which promise that the documents suffice. Then all chunks are kept.

    Args:
        over: the retrieval strategy for each query.
        iterations: maximum number of searches, including the first.
        least: number of helpful chunks at which searching stops.
        threshold: lowest grade to keep a chunk.
    """
    found = yield from over(task, query)
    kept, tried = (yield from _graded(query, found, threshold)), [query]
    while len(kept) < least and len(tried) < iterations:
        reply: Reply = yield ask_without_documents("corrective_rewrite", "rewrite", query=query, tried="\n".join(tried))
        known = [*map(fold, tried)]
        rewritten = next((line for line in read_list(reply.text, query) if fold(line) not in known), None)
        if rewritten is None:
            yield Decision("stops", "no new query came")
            break
        yield Decision("searches again", f"{len(kept)} of {len(found)} left")
        tried.append(rewritten)
        more = yield from over(task, rewritten)
        fresh = new_passages(found, more)
        if not fresh:
            yield Decision("stops", "the search brought nothing new")
            break
        found, kept = found + fresh, kept + (yield from _graded(query, fresh, threshold))
    if found and not kept and task.rules == "reading":
        yield Decision("keeps all", "the rules promise that the documents are enough")
        return found
    return kept


def _graded(query: str, evidence: Evidence, threshold: int) -> Generator[Asked, Any, Evidence]:
    """Return the passages that help. The grading prompt shows no passage numbers, so that dropped passages cannot be
    cited."""
    replies: list[Reply] = yield [
        ask_without_documents("corrective_grade", "grade", query=query,
                              passage=passage.chunk.content[:_MAX_PASSAGE])
        for passage in evidence]
    grades = [read_grade(strip_thinking(reply.text)[:_MAX_SAID]) for reply in replies]
    graded = list(zip(evidence, grades, strict=True))
    unread = tuple(passage for passage, grade in graded if grade is None)
    dropped = tuple(passage for passage, grade in graded if grade is not None and grade < threshold)
    if unread:
        yield Decision("keeps ungraded", f"{format_numbers(unread)}: the grade cannot be read")
    if dropped:
        yield Decision("drops", format_numbers(dropped))
    return new_passages(dropped, evidence)

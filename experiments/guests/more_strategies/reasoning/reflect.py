"""Reflect: check a draft and rewrite it, until a check finds no fault.

After Self-Refine (Madaan et al. 2023) and Reflexion (Shinn et al. 2023). As in Reflexion, each draft is written with
all earlier faults in view. If a check finds that information is missing, the strategy searches for it.

Reflexion gets feedback from outside, such as a failing test. Here the model criticizes itself, and has only the
documents to compare with. Without outside feedback, Huang et al. 2024 ("Large language models cannot self-correct
reasoning yet") found that self-correction makes answers worse. The figure `revised` shows how often an answer was
changed.
"""
from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.critique import mark_revised, read_critique
from ragbed.experiments.guests.more_strategies.parts.tracing import EvidenceTrace, traced
from ragbed.strategies.answering import ask, ask_for_answer, draft
from ragbed.strategies.parts.conversation import gather_each
from ragbed.strategies.parts.merging import concatenate
from ragbed.strategies.parts.reading import NO_ANSWER
from ragbed.strategies.prompting import fill_untrusted, template
from ragbed.strategies.reading import fold
from ragbed.strategies.reasoning.direct import direct
from ragbed.strategies.types import Decision, Draft, Evidence, Generate, Reasoning, Recipe, Reply, Task


def reflect(task: Task, *, of: Reasoning = direct, iterations: Annotated[int, Field(ge=1, le=5)] = 2,
            searches: bool = True) -> Recipe:
    """Write a draft, then check and rewrite it until a check finds no fault, at most `iterations` times.

    The figure `iterations` counts the checks. With `searches`, the strategy searches for information that a check finds
    missing.
    """
    seen, faults, check = EvidenceTrace(), list[str](), 0
    first = latest = yield from traced(of, task, seen)
    evidence = seen.evidence()
    searching = searches and task.rules != "closed-book"
    for check in range(1, iterations + 1):
        reply: Reply = yield _critique(task, latest, evidence, searching)
        found = read_critique(reply.text, task.question)
        queries = found.queries if searching else ()
        if not found.faults and not queries:
            yield Decision("accepts the draft", f"check {check} found no fault")
            break
        known = evidence
        if queries:
            yield Decision("searches again", f"check {check} asks for {len(queries)} search{'es' * (len(queries) > 1)}")
            evidence = concatenate((evidence, *(yield from gather_each(task, queries, Task.gather))))
        faults += [*found.faults, *(f"Missing: {query}" for query in queries)]
        before, said = latest, fill_untrusted("reflect_revise", draft=_text(latest), faults="\n".join(faults))
        latest = yield from draft(ask_for_answer(task, said, evidence), task)
        if fold(latest.text) == fold(before.text) and evidence == known:
            yield Decision("stops", f"check {check} changed nothing")
            break
    return mark_revised(first, latest, iterations=check)


def _critique(task: Task, latest: Draft, evidence: Evidence, searching: bool) -> Generate:
    said = fill_untrusted("reflect_critique", draft=_text(latest))
    search = f"\n\n{template('reflect_search')}" if searching else ""
    return ask(task, said + search, evidence, "critique", rules=True)


def _text(latest: Draft) -> str:
    return latest.text or NO_ANSWER

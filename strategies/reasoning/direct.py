"""Strategies of one call, as in CReSt's Figures 4 to 7: a direct answer, chain of thought (Wei et al. 2022), chain of
draft (Xu et al. 2025), and plan-and-solve (Wang et al. 2023). `search_only` makes no call, to evaluate retrieval."""
from __future__ import annotations

from ragbed.strategies.answering import answer
from ragbed.strategies.types import Draft, Recipe, Task


def direct(task: Task) -> Recipe:
    """Answer in one call without reasoning."""
    evidence = yield from task.gather(task.question)
    name = "direct_cited" if task.cites and task.answer_format == "tags" else "direct"
    return (yield from answer(task, name, evidence, thinks=False))


def chain_of_thought(task: Task) -> Recipe:
    """Reason freely, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "chain_of_thought", evidence))


def chain_of_draft(task: Task) -> Recipe:
    """Draft short reasoning steps, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "chain_of_draft", evidence))


def plan_and_solve(task: Task) -> Recipe:
    """Plan, carry out the plan, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    return (yield from answer(task, "plan_and_solve", evidence))


def search_only(task: Task) -> Recipe:
    """Gather evidence without asking for an answer."""
    evidence = yield from task.gather(task.question)
    gathered = tuple(passage.number for passage in evidence)
    return Draft("", cited=(), refused=False, well_formed=True, tagged=None, gathered=gathered)

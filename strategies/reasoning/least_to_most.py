"""Least-to-most: split the question, solve the parts in turn, then the whole (Zhou et al. 2023; CReSt, Figure 8)."""
from __future__ import annotations

import re

from strategies.prompting import fill, first_message, numbers, prompt, system_message
from strategies.reading import fold
from strategies.types import Draft, Generate, Message, Recipe, Reply, Task

MOST_SUB_QUESTIONS = 6
_NUMBERING = re.compile(
    r"^\s*(?:[-*•–]|\(?\d{1,2}[.):]|[a-z][.)]|(?:sub-?)?question\s*\d*\s*:|q\d+\s*[.:)])\s*", re.IGNORECASE)


def least_to_most(task: Task) -> Recipe:
    """One call that decomposes over the documents, then one growing conversation that solves."""
    evidence = yield from task.gather(task.question)
    shown = numbers(evidence)
    plan: Reply = yield Generate(prompt("least_to_most_decompose", task, evidence, rules=False), "decompose", shown)
    parts = sub_questions(plan.text, task.question)
    if not parts:
        alone: Reply = yield Generate(prompt("least_to_most_alone", task, evidence), "answer", shown)
        return Draft.from_reply(alone, "no_sub_questions")
    opening = first_message(task, evidence, fill("least_to_most_solve", sub_question=parts[0]))
    talk: tuple[Message, ...] = (system_message(), opening)
    for following in [*parts[1:], None]:
        solved: Reply = yield Generate(talk, "solve", shown)
        step = (fill("least_to_most_final", question=task.question) if following is None
                else fill("least_to_most_next", sub_question=following))
        talk = (*talk, Message("assistant", (solved.text,)), Message("user", (step,)))
    final: Reply = yield Generate(talk, "answer", shown)
    return Draft.from_reply(final)


def sub_questions(text: str, question: str) -> list[str]:
    """At most six lines of the reply, without numbering, repeats and the question itself."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        bare = _NUMBERING.sub("", line).strip().strip("*").strip()
        key = fold(bare)
        if key and key != fold(question):
            found.setdefault(key, bare)
    return list(found.values())[:MOST_SUB_QUESTIONS]

"""Least-to-most: split the question, solve the parts in turn, then the whole (Zhou et al. 2023; CReSt, Figure 8)."""
from __future__ import annotations

import re

from strategies.answering import answer, asking, draft, form_of
from strategies.prompting import fill, first_message, numbers, prompt, system_message, template
from strategies.reading import fold, read_answer
from strategies.types import Generate, Message, Recipe, Reply, Task

MOST_SUB_QUESTIONS = 6
_LONGEST_LINE, _LONGEST_LIST = 1_000, 50_000  # characters; a longer line is no question
# Nothing may follow but space or a mark: `3.5 million`, `U.S.` and `-5 degrees` begin no list.
_NUMBERING = re.compile(
    r"(?:\s+|\*+|•|(?:[-–—]|\#{1,6}|\(?(?:\d{1,2}|[a-z])\)|\d{1,2}[.:]|q\d{1,2}\s?[.:)]"
    r"|(?:sub-?)?question(?:\s?\d{1,2})?\s?[.:)])(?=[\s*]|\Z))+", re.IGNORECASE)


def least_to_most(task: Task) -> Recipe:
    """One call that decomposes over the documents, then one growing conversation that solves.

    With the layout `as_published` its last turn asks for no tags: the whole reply is the answer.
    """
    thinks = task.layout != "as_published"
    evidence = yield from task.gather(task.question)
    shown = numbers(task, evidence)
    plan: Reply = yield Generate(prompt("least_to_most_decompose", task, evidence, rules=False), "decompose", shown)
    parts = sub_questions(read_answer(plan.text)[0], task.question)
    if not parts:
        return (yield from answer(task, "least_to_most_alone", evidence, "no_sub_questions"))
    opening = first_message(task, evidence, fill("least_to_most_solve", sub_question=parts[0]), instruction_last=True)
    talk: tuple[Message, ...] = (system_message(), opening)
    for following in [*parts[1:], None]:
        solved: Reply = yield Generate(talk, "solve", shown)
        step = _last(task, thinks) if following is None else fill("least_to_most_next", sub_question=following)
        talk = (*talk, Message("assistant", (read_answer(solved.text)[0],)), Message("user", (step,)))
    return (yield from draft(asking(task, talk, evidence, thinks), task, thinks=thinks))


def _last(task: Task, thinks: bool) -> str:
    asked = fill("least_to_most_final", question=task.question)
    return asked + (f"\n\n{template('least_to_most_finish')}" if thinks else "") + form_of(task, thinks)


def sub_questions(text: str, question: str) -> list[str]:
    """At most six lines of the reply, without numbering, repeats and the question itself.

    Headings, which end in a colon, are dropped, and so are lines of more than 1,000 characters: the model
    does not ask in them, and each would be repeated in every later prompt.
    """
    found: dict[str, str] = {}
    for line in text[:_LONGEST_LIST].splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        bare = _bare(line)
        key = fold(bare)
        if key and key != fold(question) and not bare.endswith((":", "：")):
            found.setdefault(key, bare)
    return list(found.values())[:MOST_SUB_QUESTIONS]


def _bare(line: str) -> str:
    """The line without its list mark, number and emphasis, however they are nested."""
    mark = _NUMBERING.match(line)
    return line[mark.end() if mark else 0:].strip().rstrip("*").rstrip()

"""Least-to-most: split the question, solve the parts in turn, then the whole (Zhou et al. 2023; CReSt, Figure 8)."""
from __future__ import annotations

from ragbed.strategies.answering import answer, answer_form, ask, ask_for_answer_in, draft, form_instruction
from ragbed.strategies.parts.conversation import assistant_message
from ragbed.strategies.parts.reading import read_list
from ragbed.strategies.prompting import first_message, instruction, shown_numbers, system_message
from ragbed.strategies.reading import read_answer
from ragbed.strategies.types import Generate, Message, Recipe, Reply, Task

_MAX_LENGTH = 50_000  # the conversation keeps this many characters of each answer


def least_to_most(task: Task) -> Recipe:
    """Decompose the question in one call, then solve the parts in one growing conversation.

    With the layout `as_published`, the last turn does not ask for tags, so the whole reply is the answer.
    """
    thinks = task.layout != "as_published"
    evidence = yield from task.gather(task.question)
    plan: Reply = yield ask(task, instruction(task, "least_to_most_decompose"), evidence, "decompose")
    parts = read_list(plan.text, task.question)
    if not parts:
        return (yield from answer(task, "least_to_most_alone", evidence, "no_sub_questions"))
    first = instruction(task, "least_to_most_solve", sub_question=parts[0])
    opening = first_message(task, evidence, first, instruction_last=True, form=answer_form(task, thinks))
    talk: tuple[Message, ...] = (system_message(), opening)
    finish = f"\n\n{instruction(task, 'least_to_most_finish')}" if thinks else ""
    last = instruction(task, "least_to_most_final", question=task.question) + finish + form_instruction(task, thinks)
    for following in [*parts[1:], None]:
        solved: Reply = yield Generate(talk, "solve", shown_numbers(task, evidence))
        step = last if following is None else instruction(task, "least_to_most_next", sub_question=following)
        talk = (*talk, assistant_message(read_answer(solved.text)[0], _MAX_LENGTH), Message("user", (step,)))
    return (yield from draft(ask_for_answer_in(task, talk, evidence, thinks), task, thinks=thinks, last=True))

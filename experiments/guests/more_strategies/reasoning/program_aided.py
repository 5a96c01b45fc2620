"""Program-aided: the model writes a calculation, and a calculator evaluates it (Gao et al. 2023; Chen et al. 2022).

PAL and program of thoughts run Python. Here a program consists of lines of arithmetic, which the package `arithmetic`
evaluates exactly and never runs as code. The model then sees the results and answers.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.arithmetic import FUNCTIONS, ProgramLine, run
from ragbed.strategies.answering import answer, ask, ask_for_answer, draft
from ragbed.strategies.parts.conversation import assistant_message
from ragbed.strategies.parts.reading import begins_with_nothing
from ragbed.strategies.prompting import fill, fill_untrusted
from ragbed.strategies.reading import read_answer
from ragbed.strategies.types import Decision, Draft, Message, Recipe, Reply, Task

_MAX_LENGTH = 20_000  # characters of a calculation kept in the conversation


def program_aided(task: Task, *, iterations: Annotated[int, Field(ge=1, le=5)] = 2) -> Recipe:
    """Write a calculation in one call, evaluate it, and answer with the results.

    If lines fail, the model rewrites the calculation; `iterations` limits all versions, including the first. The figure
    `worked_out` is the share of lines that could be evaluated. Without a calculation, the question is answered as by
    `chain_of_thought`, with the note `nothing_to_calculate` if the model says so, or `no_program`.
    """
    evidence = yield from task.gather(task.question)
    asked = ask(task, fill("program_aided", functions=", ".join(FUNCTIONS)), evidence, "calculate")
    lines: tuple[ProgramLine, ...] = ()
    for iteration in range(iterations):
        reply: Reply = yield asked
        lines = run(reply.text) or lines
        failed = [line for line in lines if line.error]
        worked_out = f"{len(lines) - len(failed)} of {len(lines)} lines worked out"
        yield Decision("calculates", f"iteration {iteration + 1}: {worked_out}")
        if not failed:
            break
        told = fill_untrusted("program_aided_again", lines="\n".join(map(str, failed)))
        more = assistant_message(reply.text, _MAX_LENGTH), Message("user", (told,))
        asked = replace(asked, messages=(*asked.messages, *more))
    if not lines:
        none = begins_with_nothing(read_answer(reply.text)[0])
        why = "there is nothing to calculate" if none else "no line of one could be read"
        yield Decision("answers without a calculation", why)
        note = "nothing_to_calculate" if none else "no_program"
        return (yield from answer(task, "chain_of_thought", evidence, note))
    shown = fill_untrusted("program_aided_answer", lines="\n".join(map(str, lines)))
    made: Draft = yield from draft(ask_for_answer(task, shown, evidence), task)
    return replace(made, figures={"worked_out": 1 - len(failed) / len(lines)})

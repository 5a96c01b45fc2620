"""Quote first: copy relevant quotes from the documents, then answer from the quotes only.

Anthropic's guide to long contexts asks for quotes first; "According to" prompting (Weller et al. 2024) measures how
much of an answer is quoted. Here, each quote is looked up in the documents and dropped if it is not found.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.experiments.guests.more_strategies.parts.quotes import find_quotes, read_quotes, reduce_to_quotes
from ragbed.strategies.answering import answer, ask
from ragbed.strategies.prompting import fill, shown_numbers
from ragbed.strategies.types import Decision, Draft, Recipe, Reply, Task


def quote_first(task: Task, *, quotes: Annotated[int, Field(ge=1, le=30)] = 8) -> Recipe:
    """Copy up to `quotes` quotes in one call, then answer from the quotes that are found in the documents.

    If no quote is found, the strategy refuses if the rules allow it, and otherwise answers from the documents. The
    figure `quotes_found` is the share of the model's quotes that the documents contain.
    """
    evidence = yield from task.gather(task.question)
    if not shown_numbers(task, evidence):
        return (yield from answer(task, "chain_of_thought", evidence, "no_quotes"))
    name = "quote_first" if task.separators else "quote_first_uncited"
    reply: Reply = yield ask(task, fill(name, count=str(quotes)), evidence, "quote")
    offered = read_quotes(reply.text, quotes)
    found = [quote for quote in find_quotes(offered, evidence) if quote]
    figures = {"quotes": float(len(offered))} | ({"quotes_found": len(found) / len(offered)} if offered else {})
    if len(found) < len(offered):
        yield Decision("drops quotes", f"{len(offered) - len(found)} of {len(offered)} are in no document")
    if found:
        made: Draft = yield from answer(task, "quote_first_answer", reduce_to_quotes(evidence, found))
    elif task.rules == "grounded":
        yield Decision("refuses", "no quote bears on the question")
        made = Draft(task.refusal, (), True, True, None, ("no_quotes",))
    else:
        yield Decision("answers without quotes", "the documents are shown whole")
        made = yield from answer(task, "chain_of_thought", evidence, "no_quotes")
    return replace(made, figures=figures)

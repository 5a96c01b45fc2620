"""History strategies rewrite a follow-up question so that it stands alone.

Earlier answers may quote hostile documents. Prompts show them between marks, one shortened line each. Citations are
removed, since their numbers refer to another question's documents.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from ragbed.strategies.parts.conversation import ask_without_documents
from ragbed.strategies.parts.reading import NO_ANSWER, read_list
from ragbed.strategies.prompting import fill_untrusted
from ragbed.strategies.reading import strip_citations, strip_thinking
from ragbed.strategies.types import (
    Decision,
    History,
    Reasoning,
    Recipe,
    Reply,
    Standalone,
    Task,
    Turn,
    drive,
    mark_gathering,
)

Most = Annotated[int, Field(ge=1, le=50)]  # number of most recent turns
Longest = Annotated[int, Field(ge=20, le=10_000)]  # largest number of characters of each question and answer
ASKS = "asks"  # name of the decision that records the rewritten question
_MAX_REPLY, _GROWTH = 300, 2  # a rewritten question may have 300 characters, or twice the original's
_MARK = re.compile(r"</?\w+>")  # models may copy such marks from the prompt
_NAMED = re.compile(r"^[\s*_]*(?:(?:the )?(?:re-?written|stand-?alone|self-contained|full|new) )+"
                    r"(?:question|query)[*_]*\s?[:：][\s*_]*", re.IGNORECASE)


def none(task: Task) -> Standalone:
    """Use the question unchanged."""
    yield from ()
    return task.question


def window(task: Task, *, turns: Most = 2, characters: Longest = 200) -> Standalone:
    """Put the most recent turns before the question."""
    yield from ()
    return fill_untrusted("window", turns=format_turns(task.turns[-turns:], characters), query=task.question)


def rewrite(task: Task, *, turns: Most = 5, characters: Longest = 600) -> Standalone:
    """Rewrite the question with one call, so that it names its subject."""
    before = format_turns(task.turns[-turns:], characters)
    reply: Reply = yield ask_without_documents("rewrite", "rewrite", turns=before, query=task.question)
    said = _MARK.sub("\n", strip_thinking(reply.text)).strip()
    written = next(iter(read_list(_NAMED.sub("", said), "", 1)), "").strip("\"'“”` ")
    most = max(_MAX_REPLY, _GROWTH * len(task.question))
    if not written or len(written) > most or reply.finish_reason == "length":
        yield Decision("keeps the question", "no question came" if not written else "the reply is too long for one")
        return task.question
    return written


def format_turns(turns: Sequence[Turn], characters: int) -> str:
    """Format turns for a prompt: two lines each, each text cut after `characters` characters."""
    def line(text: str) -> str:
        text = " ".join(strip_citations(text).split())
        return text if len(text) <= characters else f"{text[:characters]} …"

    return "\n".join(f"Question: {line(turn.question)}\nAnswer: {line(turn.answer) or NO_ANSWER}" for turn in turns)


def read_turns(messages: Iterable[tuple[str, str]]) -> tuple[Turn, ...]:
    """Pair each message of the role `user` with the messages that answer it."""
    turns: list[Turn] = []
    for role, text in messages:
        if role == "user" or not turns:
            turns.append(Turn(text, "") if role == "user" else Turn("", text))
        else:
            turns[-1] = Turn(turns[-1].question, "\n\n".join(filter(None, (turns[-1].answer, text))))
    return tuple(turns)


def with_history(history: History, reasoning: Reasoning) -> Reasoning:
    """Combine a history and a reasoning strategy. A question without earlier turns is answered unchanged."""
    def recipe(task: Task) -> Recipe:
        if not task.turns:
            return (yield from reasoning(task))
        asked = yield from drive(history(task), mark_gathering)
        if asked != task.question:
            yield Decision(ASKS, asked)
        return (yield from reasoning(replace(task, question=asked, turns=())))

    return recipe

"""Sub-answers in one reply: lines such as `Sub-answer 1: Paris`, and the final answer without them."""
from __future__ import annotations

import re
from dataclasses import replace

from strategies.reading import is_refusal, outside_think, read_citations
from strategies.types import Draft

_TAG = re.compile(r"</?(?:thinking|answer)>", re.IGNORECASE)
_LINE = re.compile(r"^[ \t]{0,8}(?:<(?:thinking|answer)>[ \t]?)?(?:[-*•][ \t])?[*_]{0,3}sub-?answer[ \t]?(\d{1,2})"
                   r"[*_]{0,3}[ \t]?[:：][*_]{0,3}([^\n]*)\n?", re.IGNORECASE | re.MULTILINE)
_FINAL = re.compile(r"[*_]{0,3}(?:(?:the )?final )?answer[*_]{0,3} ?[:：][*_]{0,3}", re.IGNORECASE)


def read_sub_answers(text: str, count: int) -> tuple[str | None, ...]:
    """The answers to the sub-questions 1 to `count` of a reply, None for each that has no line of the form.

    A line is `Sub-answer N: ...`, with or without emphasis or a list mark. Of two lines with one number the last
    counts. A number out of range is nobody's, and what stands in `<think>` is no line.
    """
    lines = _LINE.findall(outside_think(text))
    found = {int(number): _TAG.split(answer, maxsplit=1)[0].strip(" \t\r*_") for number, answer in lines}
    return tuple(found.get(number) or None for number in range(1, count + 1))


def without_sub_answers(draft: Draft) -> Draft:
    """The draft of a reply that was asked for sub-answers: its final answer alone, and what that cites and refuses."""
    text = draft.text
    if _LINE.search(text):
        text = _LINE.sub("", text).strip()
    named = _FINAL.match(text)
    text = text[named.end():].strip() if named else text
    if text == draft.text:
        return draft
    return replace(draft, text=text, cited=read_citations(text), refused=is_refusal(text),
                   well_formed=draft.well_formed and bool(text))

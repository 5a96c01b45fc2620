"""Semi-structured reasoning: free text under fixed headings (CReSt's published code, `semi_structured`).

In that code, one call extracts what the documents say, then asks which general knowledge helps, then reasons step by
step. Here each of the three parts has its own label at the start of a line, as in auditable reasoning (Leng et al.
2025), and facts have citations. Under rules that forbid outside knowledge, the second part is limited to the meaning of
words and units. A reply without the labels gets the note `unstructured`.
"""
from __future__ import annotations

import re

from ragbed.strategies.answering import answer_form, ask_for_answer
from ragbed.strategies.prompting import fill, template
from ragbed.strategies.types import Draft, Recipe, Reply, Task

# A label in any emphasis, at the start of a line or field. Line ends in a field may be escaped.
_LABEL = re.compile(r"(?:^|\n|\\n|[\"'>])[ \t]{0,8}(?:[-*•#>]{1,6}[ \t])?[*_]{0,3}(found|known|step)\b"
                    r"[^\n:：]{0,12}[:：]", re.IGNORECASE)


def semi_structured(task: Task) -> Recipe:
    """List facts, general knowledge and steps under fixed labels, then answer, in one call."""
    evidence = yield from task.gather(task.question)
    call = ask_for_answer(task, _instruction(task), evidence)
    reply: Reply = yield call
    wanted = {"known" if task.rules == "closed-book" else "found", "step"}
    notes = () if wanted <= labels(reply.text) else ("unstructured",)
    return Draft.from_reply(reply, *notes, form=answer_form(task))


def labels(text: str) -> set[str]:
    """Return which of the labels `found`, `known` and `step` a reply contains."""
    return {found.lower() for found in _LABEL.findall(text)}


def _instruction(task: Task) -> str:
    if task.rules == "closed-book":
        return template("semi_structured_closed_book")
    confined = task.rules in ("grounded", "reading")
    return fill("semi_structured", known=template("semi_structured_meanings" if confined else "semi_structured_known"),
                cited=template("semi_structured_cited") if task.cites else "")

"""The rubric `points`: a whole number from 0 to 10, as MDBench has its answers graded; the prompts are ours.

As published (github.com/jpeper/MDBench, `scripts/eval/evaluate.py`), a model first shortens the reply to its final
answer; of a strategy that asks for reasoning, only what stands between the first `ANSWER: ` and the next, where the
reply has one. Corrected scoring grades the answer as it is, without its citations.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from experiments.judges.base import Brief, Detour, Graded, accepted, fill, plain, stated
from experiments.record import Verdict
from strategies.reading import read_answer, strip_citations
from strategies.types import Failure, Generate, Message

MOST = 10
_ANSWER = "ANSWER: "
_POINTS = re.compile(r"(10|[0-9])(?:\s*(?:/|out of)\s*10)?", re.IGNORECASE)


def read_points(text: str) -> int | None:
    """The grade of a judge's reply, 0 to 10: after `Grade:` on its own line, or all that the reply says.

    Returns:
        None where there is no such number, or there are two; one that is no whole number or out of range is none.
    """
    said = stated(text, "Grade")
    match = _POINTS.fullmatch(plain(text) if said is None else said)
    return int(match[1]) if match else None


def shortened(graded: Graded, max_tokens: int) -> Detour:
    """One more call, which shortens the reply to its final answer, as the published code has it."""
    parts = graded.predicted.split(_ANSWER) if graded.reasoned else []
    whole = parts[1] if len(parts) > 1 else graded.predicted
    prompt = fill("points_compress", {"question": graded.question, "predicted": whole})
    reply = yield Generate((Message("user", (prompt,)),), "judge_compress", max_tokens=max_tokens, see_failure=True)
    if isinstance(reply, Failure):
        return f"call failed: {reply.kind}"
    text, _ = read_answer(reply.text)
    if not text or reply.finish_reason == "length":
        return "the shortened answer was " + ("cut" if text else "empty")
    return replace(graded, predicted=text)


def _fields(graded: Graded) -> Mapping[str, str]:
    predicted = graded.predicted if graded.scoring == "as-published" else strip_citations(graded.predicted)
    return {"question": graded.question, "accepted": accepted(graded), "predicted": predicted}


def _read(text: str, graded: Graded, judge: str) -> Verdict | None:
    points = read_points(text)
    return None if points is None else Verdict(judge=judge, points=points)


BRIEF = Brief("points", _fields, _read, as_published=shortened)

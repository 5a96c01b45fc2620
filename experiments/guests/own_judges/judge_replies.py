"""Read the grade and its reason from a judge's reply.

A grade counts after a label such as `Grade:`, in a field of JSON, or alone. Several different grades make a reply
unreadable, because a model may have copied the list from its prompt.
"""
from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from ragbed.documents.json import loads
from ragbed.experiments.judges.judge import strip_emphasis
from ragbed.strategies.reading import read_answer

_MARKS = r"[\s*_`#>\"'“”‘’«»„()\[\]{}•–-]{0,12}"
_GRADE = re.compile(rf"^{_MARKS}(?:\d[.)] ?)?(?:(?:the|my|final|overall) ){{0,2}}(?:grade|score|rating|verdict|label|"
                    rf"judge?ment|result|winner){_MARKS}(?:[:：=]|\bis\b:?)\s*(?P<value>[^\n]*)$",
                    re.IGNORECASE | re.MULTILINE)
_REASON = re.compile(rf"(?:^|\.\s|[;,|]\s?){_MARKS}(?:reason(?:ing)?|explanation|rationale|justification|because|"
                     rf"feedback|analysis){_MARKS}[:：=]\s*(?P<value>.+?)(?=\n{_MARKS}(?:grade|score|rating|verdict|winner)"
                     rf"{_MARKS}[:：=]|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_KEYS = ("grade", "score", "rating", "verdict", "label", "judgement", "judgment", "result", "winner")
_REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "feedback")
_INLINE = re.compile(r"(?<=[.!?\"”])[ \t]+(?=[*_]{0,2}(?:grade|score|rating|verdict|winner)[*_]{0,2} ?[:：=])",
                     re.IGNORECASE)
_OUT_OF = re.compile(r"(?<=\d)\s?(?:/|out of|of)\s?\d+(?:\.0)?\b", re.IGNORECASE)


def read_reply(text: str, grades: Sequence[str]) -> tuple[str, str] | None:
    """Return the grade and the reason, which may be empty; None unless the reply has exactly one grade."""
    text = read_answer(text)[0].strip()
    start, end, found = text.find("{"), text.rfind("}") + 1, None
    with contextlib.suppress(ValueError):
        found = loads(text[start:end], lenient=True) if 0 <= start < end else None
    if isinstance(found, dict):
        rows = [(str(key).lower(), " ".join(str(value).split())) for key, value in found.items()]
        text = "\n".join([text[:start].replace("```json", ""), text[end:].replace("```", ""),
                          *(f"Reason: {value}" for key, value in rows if key in _REASONS),
                          *(f"Grade: {value}" for key, value in rows if key in _KEYS)])
    text = _INLINE.sub("\n", text)
    labelled = [one["value"] for one in _GRADE.finditer(text)]
    lines = [line for line in text.splitlines() if line.strip()]
    names = {_plain(one) for one in grades}
    alone = [line for line in (*lines[:1], *lines[-1:]) if _plain(_OUT_OF.sub("", line)) in names]
    values = {_match(one, grades) for one in labelled or alone}
    if len(values) != 1 or None in values:
        return None
    reason = _REASON.search(text)
    rest = "\n".join(line for line in lines if not _GRADE.match(line) and line not in alone)
    return str(values.pop()), " ".join(strip_emphasis(reason["value"] if reason else rest).split())


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[\s_-]+", " ", strip_emphasis(text).strip(" \"'“”‘’«»„()[]{},.;!")).lower().split())


def _match(text: str, grades: Sequence[str]) -> str | None:
    """Return the grade at the start of a text, if no other grade follows."""
    by_name, text = {_plain(one): one for one in grades}, _plain(_OUT_OF.sub("", text))
    text = re.sub(r"(?<=\d)\.0+\b", "", text)
    names = "|".join(map(re.escape, sorted(by_name, key=len, reverse=True)))
    found = list(re.finditer(rf"(?<![\w.]){'(?:' + names + ')'}(?![\w%]|\.\d)", text))
    if not found or found[0].start() or text.endswith("?") or len({one[0] for one in found}) > 1:
        return None
    return by_name[found[0][0]]

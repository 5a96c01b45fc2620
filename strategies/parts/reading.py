"""Read short replies: a list of questions, the faults and queries of a check, a grade, or "none".

"None" (no fault, no further question) is recognized in English, Korean and Chinese. A reply which says that something
is missing (`no citation`, `출처 없음`) is a fault, not "none".
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ragbed.strategies.prompting import neutralize_turns
from ragbed.strategies.reading import fold, read_answer, strip_citations
from ragbed.strategies.types import Draft

MAX_QUERY = 400
_MAX_LENGTH = 200  # characters that are checked
_FAULTS = r"(?:faults?|errors?|problems?|issues?|mistakes?|flaws?)"
_VERB = (r"(?:mend|correct|change|fix|improve|search|look|find|add|ask|do|work|report|note|calculate|compute)"
         r"(?: (?:for|up|out))?")
_ENGLISH = (rf"(?:none|nothing|no (?:\w+ ){{0,2}}{_FAULTS})(?: (?:at all|else|more|further|found|here|left|needed|"
            rf"(?:is )?(?:missing|left|needed|required)|applicable|to {_VERB})){{0,3}}")
_SAYS_SO = r"(?:there (?:is|are) |i (?:find|found|see) )?"
_OF_KOREAN = (r"(?:해당(?: ?사항)?|특이 ?사항|결함|결점|오류|문제점?|잘못(?:된 ?(?:것|점|부분))?|실수"
              r"|누락(?:된 ?(?:것|정보|내용))?"
              r"|(?:부족한|빠진|필요한|고칠|수정할|추가할|더 ?찾을|더 ?물을) ?(?:것|점|정보|내용|사항|부분)|필요"
              r"|(?:(?:추가|후속|더 ?이상의?) ?)?질문|아무 ?것)")
_KOREAN = rf"(?:{_OF_KOREAN}[이가은는도]? ?)?(?:전혀 |더 ?이상 )?없(?:음|다|습니다|어요|네요)"
_OF_CHINESE = r"(?:错误|錯誤|问题|問題|缺陷|缺点|缺點|遗漏|遺漏|缺失|不足)"
_CHINESE = (rf"[并並暂暫]?(?:无|無|没有|沒有)(?:任何|什么|什麼|明显|明顯|其他)?的?{_OF_CHINESE}?了?|[无無][误誤]"
            r"|不[适適]用|不需要|[无無]需")
_SHORT = r"|no|na|n a|not (?:needed|applicable|required|necessary)"
_WHOLE = re.compile(rf"{_SHORT}|{_SAYS_SO}{_ENGLISH}|{_KOREAN}|{_CHINESE}")
_FIRST = re.compile(rf"(?:{_SAYS_SO}(?:none|nothing to {_VERB}|"
                    rf"no (?:\w+ ){{0,2}}{_FAULTS})|{_KOREAN}|{_CHINESE})(?!\w)")


def says_nothing(text: str) -> bool:
    """Return whether a text only says "none". An empty text counts too."""
    return len(text) <= _MAX_LENGTH and bool(_WHOLE.fullmatch(fold(text)))


def begins_with_nothing(text: str) -> bool:
    """Return whether a text begins with "none". `No` and `nothing` alone do not count: they may begin any sentence."""
    return bool(_FIRST.match(fold(text[:_MAX_LENGTH])))


NO_ANSWER = "(no answer)"  # shown in prompts for a draft without an answer


def mark_revised(before: Draft, after: Draft, **figures: float) -> Draft:
    """Return the later draft with the notes and figures of both. The figure `revised` is 1.0 if their texts differ."""
    changed = {"revised": float(fold(before.text) != fold(after.text))}
    return replace(after, notes=tuple(dict.fromkeys([*before.notes, *after.notes])),
                   figures={**before.figures, **after.figures, **figures, **changed})


Grade = Literal[0, 1, 2, 3]
LOWEST: Grade = 0
_GRADES: dict[str, Grade] = {"0": 0, "1": 1, "2": 2, "3": 3}
_EMPHASIS = r"[\s*_`#>:：=\"'()\[\].]{0,8}"
_GRADE = rf"(?:(?:relevance |final )?grade{_EMPHASIS})?([0-3])(?: ?/ ?3)?"
_LINE = re.compile(_EMPHASIS + _GRADE + _EMPHASIS, re.IGNORECASE)


def read_grade(text: str) -> Grade | None:
    """Read a grade, 0 to 3 as in the TREC Deep Learning track; None unless exactly one has its own line."""
    found = {match[1] for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))}
    return _GRADES[found.pop()] if len(found) == 1 else None


_MAX_REPLY, _MAX_FAULT, _MAX_FAULTS, _MAX_QUERIES = 50_000, 500, 6, 3  # characters; numbers per reply
_MARK = r"[\s>#*_•-]{0,8}(?:\(?\d{1,2}[.)]\s?)?[*_]{0,3}"
_COLON = r"\s?\d{0,2}[*_]{0,3}\s?[:：]"
_FAULT = re.compile(rf"{_MARK}(?:faults?|errors?|problems?|issues?|missing){_COLON}", re.IGNORECASE)
_QUERY = re.compile(rf"{_MARK}(?:search(?: for)?|query|look (?:for|up)){_COLON}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Critique:
    """The result of checking a draft. The draft is accepted if there are neither faults nor queries."""

    faults: tuple[str, ...] = ()  # to correct, each on one line
    queries: tuple[str, ...] = ()  # missing information to search for


def read_critique(text: str, question: str) -> Critique:
    """Read the lines `Fault: ...` and `Search: ...` of a reply.

    A reply without such lines is one fault, unless it begins with "none". A search for the question itself is ignored.
    """
    lines = read_answer(text[:_MAX_REPLY])[0].splitlines()
    faults, queries = _after(_FAULT, lines), [to_query(one) for one in _after(_QUERY, lines)]
    if not any(map(_FAULT.match, lines)) and not any(queries):
        said = "\n".join(line for line in lines if not _QUERY.match(line))
        faults = [] if begins_with_nothing(said) else [said]
    asked = {fold(query): query for query in reversed(queries) if fold(query) not in ("", fold(question))}
    return Critique(tuple(" ".join(one.split())[:_MAX_FAULT] for one in faults if fold(one))[:_MAX_FAULTS],
                    tuple(reversed(asked.values()))[:_MAX_QUERIES])


def _after(mark: re.Pattern[str], lines: list[str]) -> list[str]:
    said = [line[found.end():].strip(" *_") for line in lines if (found := mark.match(line))]
    return [one for one in said if not says_nothing(one)]


MAX_LINES = 6
_MAX_LINE, _MAX_LIST = 1_000, 50_000  # characters; a longer line is not a question
# Only space or a mark may follow: `3.5 million`, `U.S.` and `-5 degrees` do not begin a list.
_NUMBERING = re.compile(
    r"(?:\s+|\*+|•|(?:[-–—]|\#{1,6}|\(?(?:\d{1,2}|[a-z])\)|\d{1,2}[.:]|q\d{1,2}\s?[.:)]"
    r"|(?:sub-?)?(?:question|query)(?:\s?\d{1,2})?\s?[.:)])(?=[\s*]|\Z))+", re.IGNORECASE)


def read_list(text: str, asked: str, most: int = MAX_LINES) -> list[str]:
    """Read up to `most` lines of a reply, without thinking, numbering, repeats and the text `asked`.

    Lines that end in a colon (headings), say "none", or exceed 1,000 characters are dropped.
    """
    found: dict[str, str] = {}
    for line in read_answer(text)[0][:_MAX_LIST].splitlines():
        if len(line) > _MAX_LINE:
            continue
        mark = _NUMBERING.match(line)
        bare = neutralize_turns(line[mark.end() if mark else 0:]).strip().rstrip("*").rstrip()
        key = fold(bare)
        if not says_nothing(bare) and key != fold(asked) and not bare.endswith((":", "：")):
            found.setdefault(key, bare)
    return list(found.values())[:most]


def to_query(text: str) -> str:
    """Turn a text into a query: one line of at most 400 characters, without citations and surrounding quotes."""
    line = " ".join(strip_citations(neutralize_turns(text[:4 * MAX_QUERY])).split())
    return line.strip("\"'`*<>[]() ")[:MAX_QUERY]

"""Read short replies: a list of questions, the faults and queries of a check, a grade, or that there is nothing.

A model says that there is nothing (no fault, no further question) in English, Korean or Chinese. What lacks something
that it should have (`no citation`, `출처 없음`) is not among that: it is a fault like any other.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ragbed.strategies.prompting import neutralize_turns
from ragbed.strategies.reading import fold, read_answer, strip_citations
from ragbed.strategies.types import Draft

MAX_QUERY = 400
_LONGEST = 200  # characters that are looked at
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
    """Tell whether a text says that there is nothing, and no more than that; an empty one does."""
    return len(text) <= _LONGEST and bool(_WHOLE.fullmatch(fold(text)))


def begins_with_nothing(text: str) -> bool:
    """Tell whether a text begins by saying so; `no` and `nothing` alone may begin a sentence that says something."""
    return bool(_FIRST.match(fold(text[:_LONGEST])))


NO_ANSWER = "(no answer)"  # what stands for a draft that has none


def mark_revised(before: Draft, after: Draft, **figures: float) -> Draft:
    """Return the later draft with notes and figures of both, more figures, and `revised`: 1.0 where they differ."""
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
    """Read the grade, 0 to 3 as in the TREC Deep Learning track, of a reply; None where no line says one alone."""
    found = {match[1] for line in text.splitlines() if (match := _LINE.fullmatch(line.strip()))}
    return _GRADES[found.pop()] if len(found) == 1 else None


_LONGEST_REPLY, _LONGEST_FAULT, _MOST_FAULTS, _MOST_QUERIES = 50_000, 500, 6, 3  # characters; of a reply
_MARK = r"[\s>#*_•-]{0,8}(?:\(?\d{1,2}[.)]\s?)?[*_]{0,3}"
_COLON = r"\s?\d{0,2}[*_]{0,3}\s?[:：]"
_FAULT = re.compile(rf"{_MARK}(?:faults?|errors?|problems?|issues?|missing){_COLON}", re.IGNORECASE)
_QUERY = re.compile(rf"{_MARK}(?:search(?: for)?|query|look (?:for|up)){_COLON}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Critique:
    """What a check found; a draft is accepted where there is neither."""

    faults: tuple[str, ...] = ()  # what is to be mended, each on one line
    queries: tuple[str, ...] = ()  # what is missing, to be searched for


def read_critique(text: str, question: str) -> Critique:
    """Read the lines `Fault: ...` and `Search: ...` of a reply. What else a reply says that has no such lines is one
    fault, unless it begins by saying that there is none. To search for the question itself once more is no query."""
    lines = read_answer(text[:_LONGEST_REPLY])[0].splitlines()
    faults, queries = _after(_FAULT, lines), [to_query(one) for one in _after(_QUERY, lines)]
    if not any(map(_FAULT.match, lines)) and not any(queries):
        said = "\n".join(line for line in lines if not _QUERY.match(line))
        faults = [] if begins_with_nothing(said) else [said]
    asked = {fold(query): query for query in reversed(queries) if fold(query) not in ("", fold(question))}
    return Critique(tuple(" ".join(one.split())[:_LONGEST_FAULT] for one in faults if fold(one))[:_MOST_FAULTS],
                    tuple(reversed(asked.values()))[:_MOST_QUERIES])


def _after(mark: re.Pattern[str], lines: list[str]) -> list[str]:
    said = [line[found.end():].strip(" *_") for line in lines if (found := mark.match(line))]
    return [one for one in said if not says_nothing(one)]


MAX_LINES = 6
_LONGEST_LINE, _LONGEST_LIST = 1_000, 50_000  # characters; a longer line is no question
# Nothing may follow but space or a mark: `3.5 million`, `U.S.` and `-5 degrees` begin no list.
_NUMBERING = re.compile(
    r"(?:\s+|\*+|•|(?:[-–—]|\#{1,6}|\(?(?:\d{1,2}|[a-z])\)|\d{1,2}[.:]|q\d{1,2}\s?[.:)]"
    r"|(?:sub-?)?(?:question|query)(?:\s?\d{1,2})?\s?[.:)])(?=[\s*]|\Z))+", re.IGNORECASE)


def read_list(text: str, asked: str, most: int = MAX_LINES) -> list[str]:
    """Read up to `most` lines of a reply, without its thinking, numbering, repeats and what was asked itself. Headings,
    which end in a colon, are dropped, and what says that there is none; and so are lines of more than 1,000 characters:
    the model does not ask in them, and each would be repeated in every later prompt."""
    found: dict[str, str] = {}
    for line in read_answer(text)[0][:_LONGEST_LIST].splitlines():
        if len(line) > _LONGEST_LINE:
            continue
        mark = _NUMBERING.match(line)
        bare = neutralize_turns(line[mark.end() if mark else 0:]).strip().rstrip("*").rstrip()
        key = fold(bare)
        if not says_nothing(bare) and key != fold(asked) and not bare.endswith((":", "：")):
            found.setdefault(key, bare)
    return list(found.values())[:most]


def to_query(text: str) -> str:
    """Return the text as a query: one line of at most 400 characters, without citations and quotes around it."""
    line = " ".join(strip_citations(neutralize_turns(text[:4 * MAX_QUERY])).split())
    return line.strip("\"'`*<>[]() ")[:MAX_QUERY]

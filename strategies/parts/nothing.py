"""The words with which a model says that there is nothing: no fault, no further question, nothing missing.

In English, Korean and Chinese. What lacks something that it should have (`no citation`, `출처 없음`) is not among them:
that is a fault like any other.
"""
from __future__ import annotations

import re

from strategies.reading import fold

_LONGEST = 200  # characters that are looked at
_FAULT = r"(?:faults?|errors?|problems?|issues?|mistakes?|flaws?)"
_VERB = (r"(?:mend|correct|change|fix|improve|search|look|find|add|ask|do|work|report|note|calculate|compute)"
         r"(?: (?:for|up|out))?")
_ENGLISH = (rf"(?:none|nothing|no (?:\w+ ){{0,2}}{_FAULT})(?: (?:at all|else|more|further|found|here|left|needed|"
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
_FIRST = re.compile(rf"(?:{_SAYS_SO}(?:none|nothing to {_VERB}|no (?:\w+ ){{0,2}}{_FAULT})|{_KOREAN}|{_CHINESE})(?!\w)")


def says_nothing(text: str) -> bool:
    """Whether a text says that there is nothing, and no more than that; an empty one does."""
    return len(text) <= _LONGEST and bool(_WHOLE.fullmatch(fold(text)))


def begins_with_nothing(text: str) -> bool:
    """Whether a text begins by saying so; `no` and `nothing` alone may begin a sentence that says something."""
    return bool(_FIRST.match(fold(text[:_LONGEST])))

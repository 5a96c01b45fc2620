"""The lexical judge compares text, numbers and dates without a model.

It recognises neither paraphrases nor negations, so its scores are always shown with its name. Points follow from the
grade: Correct 10, Partially Correct 5, Wrong 0. A reference step counts as contained if the reasoning mentions the same
things, even if it makes a different claim about them.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ragbed.documents.numbers import find_values
from ragbed.experiments.judges.base import GRADES, GradingInput, JudgeExchange
from ragbed.experiments.metrics import contains_answer, is_korean, token_f1
from ragbed.experiments.record import Grade, Verdict
from ragbed.strategies.normalizing import normalize_answer, with_values
from ragbed.strategies.reading import fold, strip_citations
from ragbed.strategies.support.lexical import FUNCTION_WORDS

_HELD = 0.6
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]")


def find_held_steps(steps: Sequence[str], reasoning: str) -> tuple[int, ...]:
    """Return the indices of the steps that share at least 60 % of their content words with the reasoning.

    Words are case-folded, function words are ignored, and numbers and dates are compared by value. Chinese, Japanese
    and Korean text is compared by character bigrams.
    """
    reasoned, held = set(_units(reasoning)), []
    for place, step in enumerate(steps):
        words = set(_units(step))
        words = words - FUNCTION_WORDS or words
        if words and len(words & reasoned) / len(words) >= _HELD:
            held.append(place)
    return tuple(held)


def _units(text: str) -> Iterator[str]:
    yield from (value.token for value in find_values(text))
    for word in fold(text).split():
        if _UNSPACED.search(word):
            yield from (word[at:at + 2] for at in range(max(len(word) - 1, 1)))
        elif not word.isdecimal():
            yield word


_POINTS: dict[Grade, int] = {"Correct": 10, "Partially Correct": 5, "Wrong": 0}
_MAX_RATIO = 3
_MAX_WORDS = 10
_PARTIAL = 0.5
_POLAR = {"yes": True, "예": True, "네": True, "no": False, "아니요": False, "아니오": False}


class Lexical(BaseModel):
    """The lexical judge, which has no settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["lexical"] = "lexical"

    @property
    def name(self) -> str:
        return "lexical"

    def judge(self, graded: GradingInput) -> JudgeExchange:
        """Return the best grade or points over the accepted answers, or the contained steps. No model is called."""
        if graded.rubric == "steps":
            return Verdict(judge=self.name, steps=find_held_steps(graded.steps, graded.reasoning))
        text = strip_citations(graded.predicted)
        best = min((grade(text, answer) for answer in graded.answers), key=GRADES.index)
        if graded.rubric == "points":
            return Verdict(judge=self.name, points=_POINTS[best])
        return Verdict(judge=self.name, grade=best)
        yield


def grade(text: str, answer: str) -> Grade:
    """Grade a text without citations: Correct, Partially Correct or Wrong.

    Correct: the text has all numbers and dates of the answer, and the normalised answer equals the text or occurs in a
    text of at most three times its length or ten words. Partially Correct: token F1 of at least 0.5 (character bigrams
    for Korean), or at least half of the numbers and dates. Otherwise Wrong.

    If the answer is yes or no (예, 네, 아니요), the text is Correct if its first word agrees. In a short text that
    begins with neither, the last word decides. An answer that is only an article, such as the option `A`, must be
    the whole text. A number does not equal a percentage unless the text is only the number, because a question
    often names the unit. An answer of up to three Korean characters must begin a word.
    """
    polar = _POLAR.get(normalize_answer(answer))
    if polar is not None:
        return "Correct" if _polarity(text) is polar else "Wrong"
    wanted, found = find_values(answer), find_values(text)
    bare = len(found) == 1 and with_values(text) == found[0].token
    matched = sum(any(other.says(value) and (other.percent == value.percent or (bare and value.percent))
                      for other in found) for value in wanted)
    if matched == len(wanted) and _matches(text, answer):
        return "Correct"
    if _overlap(text, answer) >= _PARTIAL or (wanted and matched / len(wanted) >= _PARTIAL):
        return "Partially Correct"
    return "Wrong"


def _overlap(text: str, answer: str) -> float:
    """Return token F1 with numbers compared by value, so that 1.5 and 15 have nothing in common."""
    if is_korean(answer):
        return token_f1(text, answer)
    return token_f1(with_values(text, dates=False), with_values(answer, dates=False))


def _polarity(text: str) -> bool | None:
    """Return whether the text says yes or no; None if it says neither or both."""
    words = normalize_answer(text).split()
    first, *others = [_POLAR.get(word) for word in words] or [None]
    if first is None:
        return others[-1] if others and len(words) <= _MAX_WORDS else None
    both = len(words) > 2 and words[1] in ("and", "or") and others[1] is not None
    return None if both else first


def _matches(text: str, answer: str) -> bool:
    """Return whether the text equals or contains the answer, as written or with numbers replaced by their values."""
    if text.strip().lower() == answer.strip().lower():
        return True
    pairs = ((normalize_answer(answer), normalize_answer(text)), (with_values(answer), with_values(text)))
    if any(gold and gold == ours for gold, ours in pairs):
        return True
    gold, ours = pairs[0]
    short = len(ours) <= _MAX_RATIO * len(gold) or len(ours.split()) <= _MAX_WORDS
    return short and any(contains_answer(ours, gold) for gold, ours in pairs)

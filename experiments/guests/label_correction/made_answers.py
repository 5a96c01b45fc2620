"""Wrong and right answers, made from the gold answers of a question without a model.

A wrong answer is left out if its words or values equal an accepted answer. It is also left out if it might be right, as
101 for `about 100`, or a name that shares a word with the gold answer or the question.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from ragbed.documents.numbers import find_values
from ragbed.documents.types import digest
from ragbed.experiments.guests.answer_support.word_overlap import NUMBER_WORDS
from ragbed.experiments.metrics.matching import contains_answer, is_korean
from ragbed.experiments.question import Question
from ragbed.strategies.normalizing import normalize_answer, normalize_values

_LONG, _SHORT, _ITEM = 10, 5, 4  # most words of a gold answer, and of its items, to change a name, a number, an item
_SMALL, _TEN_PARTS = 12, 100  # a count up to _SMALL and a number below _TEN_PARTS is changed by 1
_YEARS = (1000, 2100)
_NUMBER = re.compile(r"(?<![\w.,/-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![A-Za-z0-9]|[.,:/]\d|-[A-Za-z])")
_WORD_NUMBER = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS[2:13])})\b", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:about|around|approximately|approx|circa|roughly|nearly|almost|over|than|least|most|under|below|above|some|between|"
    r"or|to)\b|[~±≈<>+–]|약|이상|이하|미만|초과|정도|넘|까지|가량", re.IGNORECASE)
_ASKS_NUMBER = re.compile(
    r"\bhow (?!is|was|did|does|do|are|can)|\bwhen\b|\b(?:years?|dates?|ages?|number|amount|ratio|rate|percentage|"
    r"price|cost|total)\b|몇|언제|얼마|년도|비율|금액|시기|기간|수는", re.IGNORECASE)
_UNITS = {"million": "billion", "billion": "million", "thousand": "million", "years": "months", "year": "month",
          "months": "weeks", "month": "week", "weeks": "days", "days": "weeks", "hours": "minutes", "minutes": "hours",
          "seconds": "minutes", "km": "miles", "kilometers": "miles", "kilometres": "miles", "miles": "kilometres",
          "meters": "feet", "metres": "feet", "feet": "metres", "kg": "pounds", "pounds": "kilograms",
          "percent": "per thousand", "%": " per thousand", "$": "€", "€": "$", "£": "€", "bc": "AD", "ad": "BC",
          "조": "억", "억": "만", "만": "억", "원": "달러", "달러": "원", "개월": "년", "시간": "분",
          "킬로미터": "마일", "미터": "킬로미터"}
_WORDS = "|".join(unit for unit in _UNITS if unit.isascii() and unit.isalpha())
_UNIT = re.compile(r"[$€£](?=\s?\d)|(?<=\d)[\s-]?(?:%|조|억|만|원|달러|개월|시간|킬로미터|미터|"
                   rf"(?:{_WORDS})\b)", re.IGNORECASE)
_OPPOSITES = {"yes": "No", "no": "Yes", "true": "False", "false": "True", "before": "After", "after": "Before",
              "more": "Less", "less": "More", "higher": "Lower", "lower": "Higher", "increased": "Decreased",
              "decreased": "Increased", "increase": "Decrease", "decrease": "Increase", "예": "아니요", "네": "아니요",
              "아니요": "예", "아니오": "예"}
_POLAR = re.compile(r"(?:yes|no)(?=[,.;] )", re.IGNORECASE)
_NAME = r"[A-ZÀ-Þ][\w’'-]+(?: (?:of |the |de |van |von |and )?[A-ZÀ-Þ][\w’'-]+){0,4}"
_INSIDE = re.compile(rf"(?<=[a-z,;(] )({_NAME})(?= [a-z]|[,.;)])")  # not at the start of a sentence
_NO_NAME = re.compile(r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December|"
                      r"\w+day|English|American|British|The|He|She|It|This|In|Presidents?|Queen|King|Mr|Mrs|Dr|Sir|St|"
                      r"and)\b")
_LIST = re.compile(r"\s*(?:;|、|\n|, and |,\s| and | 및 |(?<=[가-힣])[와과] (?=[가-힣]))\s*")


class MadeAnswer(NamedTuple):
    """An answer whose grade is known. The judge is shown the accepted `answers`."""

    kind: str
    right: bool
    text: str
    answers: tuple[str, ...]


def make_answers(question: Question, evidence: str, others: Sequence[str]) -> list[MadeAnswer]:
    """Make one answer of every kind that fits the gold answer of an answerable question.

    Args:
        evidence: texts that were shown with the question.
        others: gold answers of other questions.
    """
    gold, *more = golds = tuple(answer.strip().rstrip(".") for answer in question.answers)
    korean = is_korean(question.text)
    wrong = {kind: text for kind, text in _wrong(question, gold, evidence, others).items()
             if text and (kind == "other unit" or not _is_same(text, golds))}  # normal forms have no `$` and no `%`
    if wrong and len(gold.split()) <= _LONG:
        wrong["either"] = f"{gold} {'또는' if korean else 'or'} {next(iter(wrong.values()))}"
    wrong["no answer"] = "문서에는 나와 있지 않습니다." if korean else "The documents do not say."
    wrong["vague"] = "문서에 자세히 설명되어 있습니다." if korean else "The documents describe this in detail."
    right = dict(_right(gold, korean))
    return [*(MadeAnswer(kind, False, text, golds) for kind, text in wrong.items()),
            *(MadeAnswer(kind, True, text, golds) for kind, text in right.items()),
            *(MadeAnswer("shorter or longer", True, other, golds[:1]) for other in more[:1] if re.fullmatch(_NAME, gold)
              and (_words(other) < _words(gold) or _words(gold) < _words(other)))]


def _is_same(text: str, golds: Sequence[str]) -> bool:
    """Return whether a text contains an accepted answer or has the same values."""
    return any(contains_answer(normalize_answer(text), normalize_answer(gold)) or
               normalize_values(text) == normalize_values(gold) for gold in golds)


def _wrong(question: Question, gold: str, evidence: str, others: Sequence[str]) -> dict[str, str | None]:
    opposite = _OPPOSITES.get((_POLAR.match(gold) or [gold])[0].lower())
    if opposite:
        return {"opposite": opposite}
    length, items, made = len(gold.split()), [item for item in _LIST.split(gold) if item], dict[str, str | None]()
    if length <= _SHORT or (length <= _LONG and _ASKS_NUMBER.search(question.text) and len(find_values(gold)) == 1):
        made |= {"near number": _near_number(gold), "other unit": _other_unit(gold)}
    if len(items) > 2 or (len(items) == 2 and "," not in gold and not find_values(gold)):
        whole = max(len(item.split()) for item in items) > _ITEM or items[0].lower() in _OPPOSITES
        made["half of a list"] = None if whole else ", ".join(items[:len(items) // 2])
    return {**made, "other entity": _other_entity(question, gold, evidence) if length <= _LONG else None,
            "other answer": _other_answer(question, gold, others)}


def _near_number(gold: str) -> str | None:
    found = [*_NUMBER.finditer(gold)][-1:]
    if _HEDGED.search(gold):
        return None
    if not found:
        return _WORD_NUMBER.sub(lambda one: NUMBER_WORDS[NUMBER_WORDS.index(one[0].lower()) + 1], gold, count=1)
    written, value = found[0][0], Decimal(found[0][0].replace(",", ""))
    places = len(written.partition(".")[2])
    year = places == 0 and "," not in written and _YEARS[0] <= value < _YEARS[1]
    step = Decimal(1) if year or (not places and value < _TEN_PARTS) else max(
        Decimal(10) ** (value.adjusted() - 1), Decimal(1).scaleb(-places)) if value else Decimal(1)
    return f"{gold[:found[0].start()]}{value + step:{',' if ',' in written else ''}.{places}f}{gold[found[0].end():]}"


def _other_unit(gold: str) -> str | None:
    found = _UNIT.search(gold)
    if not found:
        return None
    unit = found[0].strip(" -")
    text = gold[:found.start()] + found[0].replace(unit, _UNITS[unit.lower()]) + gold[found.end():]
    return " ".join(text.split())


def _other_entity(question: Question, gold: str, evidence: str) -> str | None:
    """Return a name of the evidence with about as many words, chosen by hash."""
    if not re.fullmatch(_NAME, gold):
        return None
    known = {*_words(" ".join(question.answers)), *_words(question.text)}
    found = {re.sub(r"[’']s?$", "", name) for name in _INSIDE.findall(evidence)}
    names = {name for name in found if not _NO_NAME.search(name) and not known & _words(name)
             and abs(len(name.split()) - len(gold.split())) <= 1 and not name.isupper()}
    return min(names, key=lambda name: (name.count(" ") != gold.count(" "), digest(question.id, name)), default=None)


def _other_answer(question: Question, gold: str, others: Sequence[str]) -> str | None:
    """Return another question's answer of the same form: script, digits, capitals and length."""
    def form(text: str) -> tuple[bool, ...]:
        return is_korean(text), bool(find_values(text)), text[:1].isupper(), len(text.split()) > 4

    known = {*_words(" ".join(question.answers)), *_words(question.text)}
    fitting = {other for other in (one.strip().rstrip(".") for one in others)
               if form(other) == form(gold) and not known & _words(other) and other.lower() not in _OPPOSITES}
    return min(fitting, key=lambda other: digest(question.id, other), default=None)


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) > 1}


def _right(gold: str, korean: bool) -> Iterator[tuple[str, str]]:
    yield "as written", gold
    if korean:
        yield "reworded", f"정답은 다음과 같습니다: {gold}"
        yield "more words", (f"제시된 문서에 따르면 질문에 대한 답은 다음과 같습니다: {gold}. "
                             "다른 문서에는 관련 내용이 없습니다.")
    elif gold.lower() in _OPPOSITES:
        yield "more words", f"{gold}. The documents that were given show this clearly."
    else:
        yield "reworded", f"The answer is: {gold}."
        yield "more words", (f"Going by the documents that were given, the answer to this question is {gold}. "
                             "The other passages deal with other matters.")
    changed = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", gold)
    changed = changed if changed != gold else re.sub(r"(?<=\d)\s?%", "퍼센트" if korean else " percent", gold)
    changed = changed if changed != gold else re.sub(r"\b(\d{1,2}) ([A-Z][a-z]{2,8}),? (\d{4})\b", r"\2 \1, \3", gold)
    if changed != gold:
        yield "other notation", changed

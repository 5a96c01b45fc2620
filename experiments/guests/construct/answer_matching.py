"""Decide whether a solver's draft answers an item correctly, by comparing texts."""
from __future__ import annotations

import re
from collections.abc import Sequence

from ragbed.documents.numbers import TextValue, find_values
from ragbed.experiments.guests.answer_grading.lexical import denies_answer, grade
from ragbed.experiments.guests.answer_support.word_overlap import all_words, content_words
from ragbed.experiments.guests.construct.llm import LABELS
from ragbed.experiments.guests.review.items import Item
from ragbed.strategies.choice import read_choice
from ragbed.strategies.normalizing import normalize_answer
from ragbed.strategies.reading import strip_citations
from ragbed.strategies.types import Draft

_LONG, _SHARE = 5, 0.8  # a draft must have this share of an answer's content words if there are at least _LONG
_RATIO, _SHORT = 3, 10  # a draft may be this many times as long as the answer, or have this many words
_POLAR = re.compile(r"(yes|no|예|네|아니요|아니오)\s*[,.]", re.IGNORECASE)
_ASKS_POLAR = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE)
_SCALE = re.compile(r"\b(thousand|million|billion)s?\b|(만|억|조)\s?원", re.IGNORECASE)


def is_correct(item: Item, draft: Draft) -> bool:
    """Return whether a draft answers an item correctly.

    With options, the draft must name the key and no other option. Otherwise the draft must equal an accepted answer, or
    contain one and have at most ten words or three times its length. As in the lexical judge, case and punctuation do
    not count, numbers and dates are compared by value, and yes or no must be the first word.

    It also accepts a number with the unit that the question names (`1,577 million` for 1577 if the question asks for
    millions), a number written as a word, the last words of a person's name, and a draft with exactly the words of the
    answer that are not in the question (`12.5` for `The crane lifts 12.5 tonnes`). If the answer has five content words
    or more, four fifths of them and all its figures are enough.

    A negated answer, one of several alternatives, and the end of a range are wrong.
    """
    if item.options:
        return chosen_option(item, draft) in item.answers
    if draft.refused or not draft.well_formed:
        return False
    text = strip_citations(draft.text).replace("*", "")
    if text.casefold().strip() in {answer.casefold().strip() for answer in item.answers}:
        return True
    return any(_states(text, answer, item.question) for answer in item.answers)


def chosen_option(item: Item, draft: Draft) -> str | None:
    """Return the option that a draft names; None if it names none."""
    labels = tuple(zip(LABELS, item.options, strict=False))
    chosen = None if draft.refused or not draft.well_formed else read_choice(strip_citations(draft.text), labels)
    return None if chosen is None else dict(labels)[chosen]


def _states(text: str, answer: str, question: str) -> bool:
    if grade("yes", answer) == "Correct" or grade("no", answer) == "Correct":
        return grade(text, answer) == "Correct"
    begins = _POLAR.match(answer)
    if begins is not None and _ASKS_POLAR.match(question) and grade(text, begins[1]) == "Correct":
        return True
    for scale in {found for pair in _SCALE.findall(question) for found in pair if found and found not in answer}:
        text = re.sub(rf"(?<=\d)\s?{scale}(?:s\b|\b|(?=\s?원))", "", text, flags=re.IGNORECASE)
    return not denies_answer(text, answer, question) and (
        grade(text, answer, question) == "Correct" or _is_name(text, answer, question)
        or _has_key_words(text, answer, question))


def _is_name(text: str, answer: str, question: str) -> bool:
    """Return whether the text is the end of a name; for a person, the last word is enough."""
    words, plain = answer.split(), normalize_answer(text)
    if not all(word[0].isupper() for word in words):
        return False
    least = 1 if re.match(r"who\b|whose\b", question, re.IGNORECASE) else 2
    return any(plain == normalize_answer(" ".join(words[at:])) for at in range(1, len(words) - least + 1))


def _has_key_words(text: str, answer: str, question: str) -> bool:
    """Return whether the text has the answer's words in any order, or all of them that are not in the question."""
    if len(text.split()) > max(_SHORT, _RATIO * len(answer.split())) or _is_negated(text) != _is_negated(answer):
        return False
    known, asked, wanted = (find_values(one) for one in (text, question, answer))
    stray, missing = _has_unmatched(known, [*wanted, *asked]), _has_unmatched(wanted, known)
    words, stated, before = content_words(answer), all_words(text), content_words(question)
    if missing and (stray or _has_unmatched(wanted, [*known, *asked])):
        return False
    if any(any(map(str.isdecimal, word)) and word not in stated for word in words - before):  # such as fy2023
        return False
    enough = 1.0 if len(words) < _LONG else _SHARE
    if len(words) > 1 and len(words & stated) >= enough * len(words):
        return True
    rest, extra = words - before, content_words(text) - words - before
    return bool(rest
                or _has_unmatched(wanted,
                                  asked)) and len(rest & stated) >= enough * len(rest) and not extra and not stray


def _has_unmatched(own: Sequence[TextValue], others: Sequence[TextValue]) -> bool:
    """Return whether a number or date of `own` is missing from `others`."""
    return any(not any(other.implies(one) and other.percent == one.percent for other in others) for one in own)


def _is_negated(text: str) -> bool:
    return re.search(r"\b(?:not|never|no)\b|n't|아니|않|없", text, re.IGNORECASE) is not None

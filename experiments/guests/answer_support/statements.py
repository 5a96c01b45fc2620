"""Split an answer into statements with what they cite, and read how a model grades them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from ragbed.documents.sentences import sentence_ends
from ragbed.experiments.guests.answer_support.word_overlap import content_words
from ragbed.strategies.reading import (
    begins_with_refusal,
    is_only_citations,
    read_answer,
    read_citations,
    strip_citations,
)
from ragbed.strategies.types import Draft, Task

MAX_STATEMENTS = 40  # the last statement holds the rest of a longer answer, so that everything is checked
_MARK = re.compile(r"[\s>]*(?:#{1,6}\s|[-*•–]\s|\(?\d{1,2}[.)]\s)?\s*")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of an answer, and what it cites."""

    text: str  # without its citations
    cited: tuple[int, ...]  # its citations or, if it has none, the citations of the whole answer


def read_statements(draft: Draft, task: Task) -> tuple[Statement, ...]:
    """Split a draft's answer into statements, without headings, refusals and sentences without content.

    A sentence without content (`Yes.`, `Here is why:`) counts if it is the whole answer. The label of an option is
    replaced by the option's text. Under `open` rules, a sentence without citations is the model's own knowledge and is
    left out.
    """
    apart = task.rules == "open" and read_citations(draft.text)  # then such sentences cite nothing
    pieces = [Statement(strip_citations(piece), read_citations(piece) or (() if apart else draft.cited))
              for piece in split_statements(draft.text)]
    if task.rules == "open":
        pieces = [piece for piece in pieces if piece.cited]
    pieces = [piece for piece in pieces if not begins_with_refusal(piece.text)]
    found = [piece for piece in pieces if not piece.text.endswith((":", "："))
             and (content_words(piece.text) or any(map(str.isdecimal, piece.text)))] or pieces[:1]
    options = dict(task.options)
    return tuple(Statement(options.get(one.text.strip(" .()"), one.text), one.cited) for one in found)


def split_statements(text: str) -> list[str]:
    """Split a text into sentences, line by line. Citations on their own belong to the preceding sentence."""
    found: list[list[str]] = []
    for line in text.splitlines():
        line = line[mark.end():] if (mark := _MARK.match(line)) else line
        ends = pairwise([0, *sentence_ends(line), len(line)])
        for piece in filter(None, (line[start:end].strip() for start, end in ends)):
            if found and (len(found) == MAX_STATEMENTS or is_only_citations(piece)):
                found[-1].append(piece)
            else:
                found.append([piece])
    return list(map(" ".join, found))


_MAX_LENGTH = 200  # only this many characters are read
_SKIP = r"[\s*_`#>:：=\"'()\[\]~-]{0,12}"
_NUMBER = re.compile(rf"{_SKIP}(\d{{1,3}}(?:\.\d{{1,3}})?)\s?(?:(?:/|out of|of)\s?(\d{{1,3}})(?!\d)|(%))?(?![\d.]*\d)",
                     re.IGNORECASE)
_RANGE = re.compile(rf"{_SKIP}(?:\d{{1,3}}\s?(?:-|–|to|or|,)\s?\d|yes\s?(?:/|,|or)\s?(?:partly|partially|no)\b)",
                    re.IGNORECASE)
_WORD = re.compile(rf"{_SKIP}(?:it is |they are |is |are )?([^\W\d_]{{1,20}})", re.IGNORECASE)
_WHOLE = "yes fully completely sufficient enough supported true 예 네 충분 충분함 충분합니다"
_PARTLY = "partly partially partial somewhat mostly 부분 부분적 부분적으로 일부"
_NOT = "no not none insufficient unsupported false never 아니요 아니오 불충분 불충분함 불충분합니다 없음"
_WORDS = {word: value for value, words in ((1.0, _WHOLE), (0.5, _PARTLY), (0.0, _NOT)) for word in words.split()}


def read_share(text: str) -> float | None:
    """Read the share at the beginning of a text, from 0 to 1; None if there is none, or the text only repeats the
    scale.

    `7`, `7/10`, `7 out of 10`, `70%` and `0.7` are 0.7, and `3 of 4` is 0.75. `yes` is 1, `partly` 0.5 and `no` 0, as
    are similar words in English and Korean.
    """
    text = text[:_MAX_LENGTH]
    if _RANGE.match(text):
        return None
    number = _NUMBER.match(text)
    if number is None:
        word = _WORD.match(text)
        return _WORDS.get(word[1].lower()) if word else None
    amount, whole = float(number[1]), 10.0
    if number[2]:
        whole = float(number[2])
    elif number[3]:
        whole = 100.0
    elif "." in number[1] and amount <= 1:
        whole = 1.0
    return amount / whole if amount <= whole and whole > 0 else None


MAX_REPLY = 20_000  # only this many characters of a reply are read
_LINE = re.compile(r"^[ \t*_#>`(\[-]{0,8}(?:statement[ \t]?)?(\d{1,3})[*_`)\]]{0,4}[ \t]{0,4}[.:：)=-]([^\n]{0,200})",
                   re.IGNORECASE | re.MULTILINE)


def read_grades(text: str, count: int) -> list[float | None]:
    """Read the grades of statements 1 to `count`. If lines have the same number, the last one counts. For a single
    statement, the grade may be the whole reply."""
    said = read_answer(text)[0][:MAX_REPLY]
    found = {int(number): grade for number, line in _LINE.findall(said) if (grade := read_share(line)) is not None}
    if count == 1 and not found:
        return [read_share(said)]
    return [found.get(number) for number in range(1, count + 1)]

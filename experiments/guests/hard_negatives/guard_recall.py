"""Measure the guard's recall without a model, by planting answers in texts of the index. The certificate that an item
is unanswerable is only as reliable as this recall. It does not cover answers in entirely different words, which the
guard cannot find.
"""
from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragbed.documents.numbers import find_values
from ragbed.documents.types import Chunk, normalize
from ragbed.experiments.guests.hard_negatives.guard import GuardedIndex
from ragbed.experiments.metrics import is_korean
from ragbed.experiments.metrics.aggregation import Estimate, estimate_clustered_share
from ragbed.experiments.question import Question

_MAX_DRAWS = 20  # texts to draw for an answer, in search of one without it
_LONG = 5  # an answer of more words may also be recognised by most of them
_NAME = range(2, 5)  # the last word may replace a name of 2 to 4 words
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")


@dataclass(frozen=True, slots=True)
class GuardRecall:
    """How many planted answers the guard found.

    Attributes:
        share: share found, with its 95 % interval, clustered by answer.
        ways: number of answers found and planted, by their written form.
    """

    share: Estimate
    ways: Mapping[str, tuple[int, int]]


def guard_recall(questions: Sequence[Question], index: GuardedIndex, rng: random.Random,
                 most: int = 1_000) -> GuardRecall:
    """Plant the questions' answers in texts drawn from the index, in every form that applies, and count how many the
    guard finds. Texts in which the guard already finds the answer are not used, nor are answers that are too common,
    such as yes. At most `most` are planted.
    """
    single = [replace(one, answers=(answer,), answerable=True) for one in questions
              for answer in dict.fromkeys(one.answers)]
    planted = [(one, way, text) for one in single if index.guard(one).answers
               for way, text in answer_variants(one.answers[0])]
    rng.shuffle(planted)
    hits: list[tuple[str, str, bool]] = []
    for question, way, text in planted[:most]:
        guard = index.guard(question)
        drawn = (rng.choice(index.chunks) for _ in range(_MAX_DRAWS))
        host = next((chunk for chunk in drawn if guard.check(chunk) is None), None)
        if host is not None:
            hits.append((question.answers[0], way, guard.check(_plant(host, text, rng)) is not None))
    counts = {way: (sum(found for _, one, found in hits if one == way), sum(one == way for _, one, _ in hits))
              for way in sorted({way for _, way, _ in hits})}
    return GuardRecall(estimate_clustered_share([found for *_, found in hits], [answer for answer, *_ in hits]), counts)


def answer_variants(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the forms in which texts write an answer: the name of the form, and the text."""
    yield "as it is", answer
    if is_korean(answer):
        yield "before a particle", f"{answer}에서"
    if answer.upper() != answer.lower():
        yield "in other case", answer.upper() if answer != answer.upper() else answer.lower()
    yield from _number_variants(answer)
    words = answer.split()
    if len(words) in _NAME and all(word[0].isupper() and word[-1].isalpha() for word in words):
        yield "by the last word of a name", words[-1]
    if len(words) > _LONG and not any(map(str.isdecimal, answer)):
        yield "by most of its words", " ".join(words[1:])


def _number_variants(answer: str) -> Iterator[tuple[str, str]]:
    """Yield variants of the answer's first number or date: with or without thousands separators, the percentage in
    words, without the year, or with day and month swapped."""
    text = normalize("NFKC", answer)
    for value in find_values(text)[:1]:
        written = text[value.start:value.end]
        if value.date is not None:
            year, month, day = value.date
            if year and month and day:
                korean = is_korean(written)
                short = f"{month}월 {day}일" if korean else f"{_MONTHS[month - 1]} {day}"
                other = f"{year}-{month:02}-{day:02}" if korean else f"{day} {_MONTHS[month - 1]} {year}"
                yield "by a date without its year", text.replace(written, short, 1)
                if other != written:
                    yield "in other notation", text.replace(written, other, 1)
        elif value.number is not None:
            plain, grouped = (f"{abs(value.number):{form}}" for form in ("f", ",f"))
            if "." in plain:
                plain, grouped = (one.rstrip("0").rstrip(".") for one in (plain, grouped))
            if value.percent:
                yield "in other notation", text.replace(written, f"{plain} percent", 1)
            elif re.search(r"\d\s?(?!st|nd|rd|th)[^\W\d_]", written):  # with a scale, such as 1.5 million
                yield "in other notation", text.replace(written, grouped, 1)
            elif "," in written or len(plain) > len("1999"):  # no year
                yield "in other notation", text.replace(written, plain if "," in written else grouped, 1)


def _plant(host: Chunk, text: str, rng: random.Random) -> Chunk:
    """Return the chunk with the text inserted between two words; in HTML, after a tag."""
    ends = [found.end() for found in re.finditer(r">" if host.format == "html" else r"\s", host.content)]
    at = rng.choice(ends or [0])
    return replace(host, id="planted", content=f"{host.content[:at]} {text} {host.content[at:]}", prefix="")

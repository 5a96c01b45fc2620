"""The guard's recall, without a model: how many answers it finds that were planted in texts of the index, in the ways
that answers stand in texts. This is what a certificate is worth; an answer in other words altogether is none of these,
and the guard does not see it."""
from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragbed.documents.numbers import values
from ragbed.documents.types import Chunk, normalize
from ragbed.experiments.guests.construct.stages import Library
from ragbed.experiments.guests.review.items import Item
from ragbed.experiments.metrics import is_korean
from ragbed.experiments.metrics.aggregate import Estimate, estimate_clustered_share
from ragbed.experiments.question import Question

_HOSTS = 20  # texts that are drawn for one answer until one is found that does not hold it already
_LONG = 5  # words from which on an answer may stand with most of them
_NAME = range(2, 5)  # words of a name that may be called by its last
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")


@dataclass(frozen=True, slots=True)
class GuardRecall:
    """What the guard found of what was planted."""

    share: Estimate  # of the planted answers, with its 95 % interval, by answers where one was planted in several ways
    ways: Mapping[str, tuple[int, int]]  # how many it found and were planted, by the way they stand in the text


def guard_recall(items: Sequence[Item], library: Library, most: int = 1_000) -> GuardRecall:
    """Plant the items' answers, each in every way that applies, in texts drawn from the index, and count how many the
    guard finds. A text in which it finds the answer already is not planted in, and what stands anywhere, such as yes,
    is not planted. What is drawn, `most` at the most, is seeded."""
    planted = [(item, answer, way, text) for item in items for answer in dict.fromkeys(item.answers)
               if library.guarded_index.guard(_as_question(item, answer)).answers for way,
               text in answer_variants(answer)]
    rng = library.rng("recall")
    rng.shuffle(planted)
    hits: list[tuple[str, str, bool]] = []
    for item, answer, way, text in planted[:most]:
        guard = library.guarded_index.guard(_as_question(item, answer))
        drawn = (rng.choice(library.chunks) for _ in range(_HOSTS))
        host = next((chunk for chunk in drawn if guard.check(chunk) is None), None)
        if host is not None:
            hits.append((answer, way, guard.check(_plant(host, text, rng)) is not None))
    counts = {way: (sum(found for _, one, found in hits if one == way), sum(one == way for _, one, _ in hits))
              for way in sorted({way for _, way, _ in hits})}
    return GuardRecall(estimate_clustered_share([found for *_, found in hits], [answer for answer, *_ in hits]), counts)


def _as_question(item: Item, answer: str) -> Question:
    return Question(item.id, item.question, (answer,), True)


def answer_variants(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the ways in which texts write an answer, and what they write."""
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
    """The first number with or without thousands marks, in full, or its percent in words; the first date without its
    year, or with day and month the other way round."""
    text = normalize("NFKC", answer)
    for value in values(text)[:1]:
        stands = text[value.start:value.end]
        if value.date is not None:
            year, month, day = value.date
            if year and month and day:
                korean = is_korean(stands)
                short = f"{month}월 {day}일" if korean else f"{_MONTHS[month - 1]} {day}"
                other = f"{year}-{month:02}-{day:02}" if korean else f"{day} {_MONTHS[month - 1]} {year}"
                yield "by a date without its year", text.replace(stands, short, 1)
                if other != stands:
                    yield "in other notation", text.replace(stands, other, 1)
        elif value.number is not None:
            plain, grouped = (f"{abs(value.number):{form}}" for form in ("f", ",f"))
            if "." in plain:
                plain, grouped = (one.rstrip("0").rstrip(".") for one in (plain, grouped))
            if value.percent:
                yield "in other notation", text.replace(stands, f"{plain} percent", 1)
            elif re.search(r"\d\s?(?!st|nd|rd|th)[^\W\d_]", stands):  # with a scale, such as 1.5 million
                yield "in other notation", text.replace(stands, grouped, 1)
            elif "," in stands or len(plain) > len("1999"):  # no year
                yield "in other notation", text.replace(stands, plain if "," in stands else grouped, 1)


def _plant(host: Chunk, text: str, rng: random.Random) -> Chunk:
    """The chunk with the text between two of its words; in HTML behind a tag."""
    ends = [found.end() for found in re.finditer(r">" if host.format == "html" else r"\s", host.content)]
    at = rng.choice(ends or [0])
    return replace(host, id="planted", content=f"{host.content[:at]} {text} {host.content[at:]}", prefix="")

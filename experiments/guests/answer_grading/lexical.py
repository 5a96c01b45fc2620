"""Grade a short answer against a gold answer by words and amounts, without a model.

`notation.py` finds amounts, and equal amounts become the same word. A text contains the gold answer if it has the
answer's words in a row. The words around them must not change the meaning, as a negation, an alternative or a longer
name does. `words.yaml` has the patterns for that.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from ragbed.documents.types import normalize
from ragbed.experiments.guests.answer_grading.notation import (
    WORDS,
    Amount,
    compile_words,
    find_amounts,
    read_plainly,
    units_of,
)
from ragbed.experiments.guests.answer_support.word_overlap import FUNCTION_WORDS
from ragbed.experiments.record import Grade

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+[+#]*|(?<=\w)-(?=\w)"
                    r"|(?P<end>[,;:!?()\n、，。；：・…]|\.(?=\s|\Z))")
_ELISION = re.compile(r"\b(?P<article>[ldnjsmtc]|qu)'(?=\w)|(?P<owner>'(?=s\b))|'", re.IGNORECASE)
_ACCENTS = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f]+")
_LETTERS = str.maketrans({"ł": "l", "đ": "d", "ø": "o", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})
_ARTICLES, _TITLES, _SUFFIXES, _WHO, _ORDER, _AND, _OR = (
    frozenset(WORDS[name].split()) for name in ("articles", "titles", "suffixes", "who", "order", "and", "or"))
_POLAR = {word: name == "yes" for name in ("yes", "no") for word in WORDS[name].split()}
_SPOILED, _ALTERNATIVE, _JOINED, _PART_OF_NAME, _DENIED = (
    compile_words("|".join(WORDS[name])) for name in ("spoiled", "alternative", "joined", "part_of_name", "denied"))
_NEGATION, _JOINS, _TIME, _WHEN, _CONCLUDES = (
    compile_words(pattern) for pattern in (r"(?<!\S)\^?<negation>(?!\S)", *(
        WORDS[name] for name in ("joins", "time", "when", "concludes"))))
_BRACKETS = re.compile(r"(?<=\S)\s*\([^()]*\)")
_TITLES_AROUND = re.compile(rf"\A(?:(?:{'|'.join(_TITLES)}) )+(?=\S)|(?<=\S)(?: (?:{'|'.join(_SUFFIXES)}))+\Z")
_SEPARATOR = re.compile(rf"(?:(?<!\S)(?:[|]|{'|'.join(_AND | _OR)})(?!\S)\s?)+")
_SAME_AMOUNT = re.compile(r"(#\S+) (?:[|] )?(?:or|oder|ou) @|@ (?:[|] )?(?:or|oder|ou) (#\S+)")
_MAX_RATIO, _MAX_WORDS, _ITEM_WORDS, _SHORT_GOLD, _LONG_GOLD, _PARTIAL, _MAX_MENTIONS = 3, 10, 4, 3, 5, 0.5, 8
_EMPTY = FUNCTION_WORDS - {"before", "after", "above", "below", "over", "under"}
_IMPLIED_UNITS = frozenset(("$", "€", "¥", "₩", "元", "pound", "%", ""))  # units that an answer may leave out


@dataclass(frozen=True, slots=True)
class Reading:
    """The words of a text, and its amounts. The word of an amount begins with `#`; `amounts` is keyed by it."""

    marked: str  # space-separated words: `^` precedes a capitalised one, `|` ends a clause
    words: tuple[str, ...]
    amounts: dict[str, Amount]

    def items(self) -> list[tuple[str, ...]]:
        """Return the words between commas, `and` or `or`."""
        return [words for item in _SEPARATOR.split(self.marked) if (words := _unmark(item))]


def _unmark(marked: str) -> tuple[str, ...]:
    return tuple(word.removeprefix("^") for word in marked.split() if word not in ("|", "-"))


def grade(text: str, answer: str, question: str = "") -> Grade:
    """Grade a text without citations: Correct, Partially Correct or Wrong.

    Correct: the text is the answer, or contains it and is short. Case, accents, punctuation and notation do not count;
    numbers, dates and units are compared by value. A text is short if it has at most three times the answer's words, or
    ten words that are not in the question. A longer one must begin with the answer, say `the answer is`, or contain no
    other name or number that fits the question as well. Lists may be in any order unless the question asks for one.
    Names may have initials and titles.

    Partially Correct: some items of a list, a less exact date, a number without its unit, or most of the answer's
    words. Wrong: anything else, such as a negated answer, one of several alternatives, `before 1972` for 1972, and a
    short answer with another name or number in it. If the answer is yes or no, the first word decides, or the last one
    of a short text.
    """
    if text.strip().casefold() == answer.strip().casefold():
        return "Correct"
    gold, ours = _read_both(text, answer, question)
    polar = _POLAR.get("".join(gold.words), _POLAR.get(gold.marked.partition(" |")[0].removeprefix("^")))
    said = _polarity(ours, _words_of(question)) if polar is not None else None
    if polar is not None and ("|" not in gold.marked or said is not polar or len(ours.words) == 1):
        return "Correct" if said is polar else "Wrong"
    if not gold.words or not ours.words:
        return "Wrong"
    units = units_of(question) | _IMPLIED_UNITS
    bare = any(one.unit not in units and word in ours.amounts and not ours.amounts[word].unit
               for word, one in gold.amounts.items())
    whole: Grade = "Partially Correct" if bare else "Correct"
    asked, items = _words_of(question), gold.items()
    rest = [[word for word in reading.words if word not in asked] for reading in (ours, gold)]  # `5` for `5 boats`
    if _same(ours, gold, question) or (rest[1] and rest[0] == rest[1] and set(ours.words) <= set(gold.words)):
        return whole
    if (len(items) == 1 or re.match(r"\s*(?:\(|\d+ ?:)", answer)) and _swaps_amounts(ours, gold):  # (3, 4), 2:1
        return "Wrong"
    if len(items) > 1 and max(map(len, items)) <= _ITEM_WORDS:
        plain = _BRACKETS.sub("", text) if "(" not in answer else text
        return _grade_list(_read_both(plain, answer, question)[1], gold, bool(asked & _ORDER)) or _grade_part(
            ours, gold, asked)
    found = list(_mentions(ours, gold.words))
    clean = [text for text in found if not _is_spoiled(text, ours, gold, asked, question)]
    if any(_is_stated(text, ours, gold, asked) for text in clean):
        return whole
    return "Wrong" if found else _grade_part(ours, gold, asked)


def denies_answer(text: str, answer: str, question: str) -> bool:
    """Return whether the text contains the answer, but denies it or offers an alternative each time."""
    gold, ours = _read_both(text, answer, question)
    found = list(_mentions(ours, gold.words)) if gold.words else []
    return bool(found) and all(_is_spoiled(text, ours, gold, _words_of(question), question) for text in found)


@lru_cache(maxsize=64)
def _words_of(question: str) -> frozenset[str]:
    return frozenset(_read(question, "", False).words)


def _read_both(text: str, answer: str, question: str) -> tuple[Reading, Reading]:
    digraphs = re.search("[äöüøåæœ]", (text + answer).lower()) is not None
    gold = _read(answer, question, digraphs)
    return gold, _read(text, question, digraphs, gold.amounts)


def _read(text: str, question: str, digraphs: bool, wanted: dict[str, Amount] | None = None) -> Reading:
    """Split a text into words and amounts. An amount that matches one of `wanted` gets the word of that one."""
    plain = read_plainly(text, question).replace("&", " and ")
    plain = _ELISION.sub(lambda found: (found[1] or "") + " " * (found[0] != "'" or found["owner"] is not None), plain)
    amounts, marked, kept, at = find_amounts(plain), list[str](), dict[str, Amount](), 0
    alone = len(amounts) == 1 and not any(map(str.isalnum, plain[:amounts[0].start] + plain[amounts[0].end:]))
    for amount in (*amounts, None):
        for token in _TOKEN.finditer(plain, at, len(plain) if amount is None else amount.start):
            said, last = token[0], _unmark(marked[-1])[-1:] if marked else ()
            if token["end"] is None and said != "-":
                initial = said == "A" and plain[token.end():token.end() + 1] in ("", *".,;)")
                capital = said[0].isupper() or (marked[-2:][1:] == ["-"] and marked[-2][0] == "^")
                marked.append("^" * capital + ("A" if initial else _fold(said, digraphs)))
            elif said != "." or not last or (len(last[0]) > 1 and last[0] not in _TITLES):
                marked.append(said if said == "-" else "|")
        if amount is not None:
            same = next((one for one in (wanted or {}).values() if amount.states(one, alone)), amount).word
            marked.append(same)
            kept[same], at = amount, amount.end
    content = [word for word in marked if word.removeprefix("^") not in _ARTICLES]
    marked = content if _unmark(" ".join(content)) else marked
    return Reading(" ".join(marked), _unmark(" ".join(marked)), kept)


def _fold(word: str, digraphs: bool) -> str:
    folded = word.casefold().translate(_LETTERS)
    if not folded.isascii():
        folded = normalize("NFC", _ACCENTS.sub("", normalize("NFD", folded)))
    return re.sub(r"([aou])e", r"\1", folded) if digraphs else folded


def _polarity(ours: Reading, asked: Set[str]) -> bool | None:
    words = ours.words
    first = next((_POLAR[start] for size in (3, 2, 1) if (start := "".join(words[:size])) in _POLAR), None)
    said = {_POLAR[word] for word in words if word in _POLAR}
    if first is not None:
        return None if len(said) > 1 and words[1] in _AND | _OR else first
    if len(words) > _MAX_WORDS or len(said) > 1:
        return None
    repeats = {*asked, *FUNCTION_WORDS}.issuperset(word for word in words if not _NEGATION.search(word))
    denied = _DENIED.search(ours.marked) or (asked and repeats and _NEGATION.search(ours.marked))
    return _POLAR.get(words[-1], False if denied else None) if words else None


def _same(ours: Reading, gold: Reading, question: str) -> bool:
    """Return whether two texts have the same words, or are the same name with or without initials and titles."""
    one, other = ours.words, gold.words
    if "".join(one) == "".join(other):
        return True
    if "|" in gold.marked or re.search(r"(?<!\S)[^\s^#|-]", f"{ours.marked} {gold.marked}"):
        return False
    ends = [set(words) & _SUFFIXES for words in (one, other)]
    names = [_TITLES_AROUND.sub("", " ".join(words)) for words in (one, other)]
    if all(ends) and ends[0] != ends[1]:
        return False
    middle_left_out = bool(_WHO & set(question.casefold().split()))
    return (Counter(one) == Counter(other) and not _swaps_amounts(ours, gold)) or any(
        _name_pattern(name, middle_left_out, len(said.split())).fullmatch(said) for name, said in (names, names[::-1]))


def _swaps_amounts(ours: Reading, gold: Reading) -> bool:
    """Return whether a text has the answer's amounts in another order, as in 1-3 for a score of 3-1."""
    said, wanted = ([word for word in reading.words if word[0] == "#"] for reading in (ours, gold))
    return said != wanted and sorted(said) == sorted(wanted)


def _name_pattern(name: str, middle_left_out: bool, size: int) -> re.Pattern[str]:
    """Return a pattern of the forms of a name: with initials, without middle initials, and as an acronym."""
    *firsts, last = words = name.split()
    pattern = ""
    for word in firsts:
        form = rf"{re.escape(word)}\w*" if len(word) == 1 else f"(?:{re.escape(word)}|{re.escape(word[0])})"
        skipped = pattern and size == 2 and (len(word) == 1 or middle_left_out)
        pattern += f"(?:{form} )?" if skipped else f"{form} "
    initials = "".join(word[0] for word in words if word not in FUNCTION_WORDS)
    return re.compile(pattern + re.escape(last) + f"|{re.escape(initials)}" * (len(initials) > 2))


def _mentions(ours: Reading, wanted: Sequence[str]) -> Iterator[str]:
    """Find the wanted words, and yield the marked text once per match, with `@` instead of it. A Korean word may have
    particles, and a word of more than three characters may be inside another one."""
    for words in {tuple(wanted): None, tuple(_TITLES_AROUND.sub("", " ".join(wanted)).split()): None}:
        korean = re.search("[가-힣]", words[-1]) is not None
        lead = r"[^\s#^|]*" if korean and len(words[-1]) > _MAX_RATIO else ""
        phrase = r"(?: [|-])? \^?".join([*map(re.escape, words[:-1]), lead + re.escape(words[-1])])
        form = rf"(?<!\S)\^?{phrase}" + (r"(\S*)" if korean else r"()(?!\S)")
        for found in islice(re.finditer(form, ours.marked), _MAX_MENTIONS):
            yield f"{ours.marked[:found.start()]}@{found[1]}{ours.marked[found.end():]}"


def _grade_list(ours: Reading, gold: Reading, ordered: bool) -> Grade | None:
    """Grade a list. It is Correct if it has all items and no others, in order if `ordered`; None if it has no item."""
    items = gold.items()
    clean = [[text.index("@") for text in _mentions(ours, item) if not _SPOILED.search(text)] for item in items]
    found = [places[0] for places in clean if places]
    if not found:
        return None
    parts = [Reading(" ".join(said), said, {}) for said in ours.items() if len(said) <= max(map(len, items))]
    extra = any(not FUNCTION_WORDS.issuperset(part.words) and not any(any(_mentions(part, item)) for item in items)
                for part in parts)
    other = bool(_OR & set(ours.words)) != bool(_OR & set(gold.words))
    full = len(found) == len(items) and not extra and not other and (not ordered or found == sorted(found))
    return "Correct" if full else "Partially Correct"


def _is_spoiled(text: str, ours: Reading, gold: Reading, asked: Set[str], question: str) -> bool:
    """Return whether the words around an answer (`@`) deny it, offer others, or make it a part of another name."""
    if not _NEGATION.search(gold.marked) and _SPOILED.search(text):
        return True
    if not _OR & set(gold.words) and _ALTERNATIVE.search(text):
        same = _SAME_AMOUNT.search(text)
        other = ours.amounts.get((same[1] or same[2]) if same is not None else "")
        if other is None or not any(other.states(one, alone=True) for one in gold.amounts.values()):
            return True
    items = ours.items()
    others = items if _AND & set(ours.words) else items[1:] if len(items) > 2 else []  # `Paris, France` is one item
    if gold.words in others and not _NEGATION.search(ours.marked) and max(map(len, items)) <= _ITEM_WORDS:
        return True
    if gold.amounts:
        return False
    part = _PART_OF_NAME.search(text)
    beside = set(_unmark(part[0].replace("@", "|"))) if part is not None else set[str]()
    return (part is not None and not (beside and beside <= asked)) or (
        gold.marked[0] == "^" and not _AND & set(gold.words) and _JOINED.search(text) is not None) or (
        _WHEN.search(question) is not None and _TIME.search(text) is not None)


def _is_stated(text: str, ours: Reading, gold: Reading, asked: Set[str]) -> bool:
    """Return whether a text is short, begins with the answer (`@`), concludes with it, or has no other candidate that
    shares as many words with the question."""
    stems = {word[:5] for word in asked - FUNCTION_WORDS}
    units, known = {one.unit for one in gold.amounts.values()}, {*asked, *gold.words, *FUNCTION_WORDS}
    fits, rivals, own = list[int](), list[int](), 0
    for part in (found.split() for found in _JOINS.split(text)):
        fits.append(sum(word.removeprefix("^")[:5] in stems for word in part))
        own = fits[-1] if any(word[0] == "@" for word in part) else own
        others = [word for word in part if word.removeprefix("^") not in known]
        if any(ours.amounts[word].unit in units for word in others if word in ours.amounts) or (
                gold.marked[0] == "^" and any(word[0] == "^" for word in others)):
            rivals.append(fits[-1])
    if stems and rivals and max(rivals) > own:
        return False
    new, most = sum(word not in asked for word in ours.words), _MAX_RATIO * len(gold.words)
    return (new <= _MAX_WORDS or len(ours.words) <= most
            or re.match(r"@\S*(?: [|]|\Z)", text) is not None or _CONCLUDES.search(text) is not None
            or (bool(stems) and max(rivals, default=-1) < own))


def _grade_part(ours: Reading, gold: Reading, asked: Set[str]) -> Grade:
    """Grade a text that lacks a part of the answer. In a short answer, one wrong name or number makes it Wrong."""
    if any(one.value.date and other.bound == one.bound and one.value.implies(other.value)
           for one in gold.amounts.values() for other in ours.amounts.values()):
        return "Partially Correct"
    told = asked if set(gold.words) - asked else frozenset[str]()  # ignore these words
    one, other = (_units([word for word in reading.words if word not in told]) for reading in (ours, gold))
    said, wanted = (Counter(ours.words), Counter(gold.words)) if _OR & asked else (one, other)  # a choice
    swapped = all(any(word not in _EMPTY for word in rest) for rest in (said - wanted, wanted - said))
    kept, count = len(gold.amounts.keys() & ours.amounts.keys()), len(gold.words)
    lost = gold.amounts and not kept and (ours.amounts or count < _SHORT_GOLD)
    if (count < _LONG_GOLD and (swapped or lost)) or bool(_NEGATION.search(
            ours.marked)) != bool(_NEGATION.search(gold.marked)) or any(
            _PART_OF_NAME.search(text) for text in _mentions(gold, ours.words)):
        return "Wrong"
    f1 = 2 * (one & other).total() / ((one.total() + other.total()) or 1)
    half = kept and 2 * kept >= len(gold.amounts) >= count / _SHORT_GOLD
    return "Partially Correct" if f1 >= _PARTIAL or half else "Wrong"


def _units(words: Sequence[str]) -> Counter[str]:
    """Return the words, or the character bigrams of Korean and of scripts without spaces."""
    joined = "".join(words)
    if not re.search(f"[가-힣{_UNSPACED}]", joined):
        return Counter(words)
    return Counter(joined[at:at + 2] for at in range(max(len(joined) - 1, 1)))

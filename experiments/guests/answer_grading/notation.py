"""Read the numbers, dates and units of a short answer, in whatever notation it is written.

`read_plainly` rewrites LaTeX, digit grouping, number words, fractions and foreign dates so that `find_values` reads
them. `find_amounts` adds what changes a value: its unit, and a bound such as `before` or `at least`. The words and
patterns are in `words.yaml`.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any

import yaml

from ragbed.documents.numbers import TextValue, find_values
from ragbed.strategies.normalizing import straighten

WORDS: dict[str, Any] = yaml.safe_load(
    resources.files("ragbed.experiments.guests.answer_grading").joinpath("words.yaml").read_text(encoding="utf-8"))
_SCALES: dict[str, int] = WORDS["scales"]
_NUMERALS = {"ein": 1, **_SCALES} | {
    word: value for value, words in enumerate(WORDS["numerals"]) for word in words.split()} | {
    word: 10 * ten for ten, words in enumerate(WORDS["tens"], start=2) for word in words.split()}
_MONTHS = {name: month for month, names in WORDS["months"].items() for name in names.split()}
_HAN = {sign: int(value) for value, signs in WORDS["han"].items() for sign in signs}


def _read_numeral(match: re.Match[str]) -> str:
    found, total, current = re.findall(_LISTS["numerals"], match[0].lower()), 0, 0
    month = found == ["sept"] and re.match(r"\.?\s\d", match.string[match.end():])
    if month or found == ["ein"] or (found[0] in _SCALES and match[0].lower().startswith(found[0])):
        return match[0]
    for word in found:
        value = _NUMERALS[word]
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0
        elif word in _SCALES or (word == "vingt" and current == 4):
            current = max(current, 1) * value
        else:
            current += value
    return str(total + current)


def _read_han(match: re.Match[str]) -> str:
    total = current = 0
    for value in map(_HAN.__getitem__, match[0]):
        total, current = (total + max(current, 1) * value, 0) if value >= 10 else (total, 10 * current + value)
    return str(total + current)


def _read_clock(match: re.Match[str]) -> str:
    hour, half = int(match["h"]), (match["half"] or "").lower()
    return f"at{hour % 12 + 12 * (half == 'p') if half else hour:02}{match['m'] or '00'}"


def _divide(match: re.Match[str]) -> str:
    """Read a fraction: whole number, numerator, and denominator or its name."""
    whole, above, below = match.groups()
    size = WORDS["parts"].get(below.lower().rstrip("s"), below)
    named = size is not below
    if not Decimal(size) or (named and not above and size > 2):
        return match[0]
    return f"{Decimal(whole or 0) + Decimal(above if (above or '').isdecimal() else 1) / Decimal(size):f}"


def _ordinal_of(name: str, end: str = "") -> Callable[[re.Match[str]], str]:
    places = {word.lower(): place for place, word in enumerate(WORDS[name].split(), start=1)}
    return lambda found: f"{places[found[0].lower()]}{end}" if found[0].lower() in places else found[0]


_FUNCTIONS: dict[str, Callable[[re.Match[str]], str]] = {
    "digits": lambda found: re.sub("[ ']", "", found[0]) if not set(".,") & set(found[0]) else found[0].replace(
        ".", "").replace(",", "." if "." in found[0] else ""),
    "power": lambda found: f"{Decimal(found[1]).scaleb(int(found[2].replace('−', '-'))):f}",
    "times": lambda found: f"{Decimal(found[1]) * _SCALES[found[2].lower()]:f}",
    "month": lambda found: f" {_MONTHS[found[1].lower()]} ",
    "roman": _ordinal_of("roman"), "ordinal": _ordinal_of("ordinals", "th"), "native": _ordinal_of("native"),
    "clock": _read_clock, "divide": _divide, "numeral": _read_numeral, "han": _read_han}
_LISTS = {"numerals": "|".join(sorted(_NUMERALS, key=len, reverse=True)), "negation": WORDS["negation"],
          "scales": "|".join(_SCALES), "months": "|".join(_MONTHS), "parts": "|".join(WORDS["parts"]),
          "ordinals": WORDS["ordinals"].replace(" ", "|"), "native": WORDS["native"].replace(" ", "|")}


def compile_words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of `words.yaml`, with the lists that it names."""
    return re.compile(re.sub(r"<(\w+)>", lambda name: _LISTS.get(name[1], name[0]), pattern), re.IGNORECASE)


_LATEX, _REWRITES = ([(compile_words(pattern), _FUNCTIONS[new[1:]] if new.startswith("=") else new)
                      for pattern, new in WORDS[name]] for name in ("latex", "rewrites"))
_VERSIONS, _RATIOS = (compile_words(rf"\b(?:{WORDS[name]})\b") for name in ("version_words", "ratio_words"))
_COMMAS = compile_words(rf"\b(?:{WORDS['comma_languages']})\b")
_MAX_LENGTH = 4000  # characters of an answer that are read


@lru_cache(maxsize=1024)
def read_plainly(text: str, question: str = "") -> str:
    """Rewrite the numbers and dates of a text plainly, without LaTeX, invisible characters and emphasis. In German,
    French and Spanish questions, `1.250` is a whole number and `1,250` is not. If the question asks for a version or a
    section, 3.10 is not 3.1. If it asks for a ratio or a score, `1:2` is `1 to 2` and `1-2`, but not `2:1`."""
    text = re.sub(r"(?<=10)(?=[⁻⁰¹²³⁴-⁹])", "^", re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", text[:_MAX_LENGTH]))
    text = straighten(text.replace("⁻", "-")).replace("⁄", "/")
    if _COMMAS.search(question):
        text = re.sub(r"(?<![\d.,])(\d{1,3})([.,])(\d{3})(?![\d.,])",
                      lambda found: found[1] + ("" if found[2] == "." else ".") + found[3], text)
    if _VERSIONS.search(question):
        text = re.sub(r"(?<![\w.])v?\.?(\d{1,4})\.(\d{1,4})(?!\d|\.\d|\s?%)", r"v\1x\2", text, flags=re.IGNORECASE)
    if _RATIOS.search(question):
        text = re.sub(r"(?<![\d.,:])(\d{1,4})\s?(?:[:∶–—-]|to|zu|à|a)\s?(\d{1,4})(?![\d:]|[.,]\d)", r"to\1x\2", text)
    for pattern, new in (*(_LATEX if "\\" in text or text.count("$") > 1 else ()), *_REWRITES):
        text = pattern.sub(new, text)
    return text


_UNIT = compile_words("[ -]?(?:" + "|".join(f"(?P<u{place}>{unit[2]})" for place, unit in enumerate(WORDS["units"]))
                      + r")(?![A-Za-z\u00c0-\u024f\d/])")
_UNIT_WORD = compile_words(r"(?<![A-Za-z])" + _UNIT.pattern)
_SYMBOL = compile_words(r"(?:US)?([$€£¥₩]|\bUSD|\bEUR|\bGBP)\s?-?\Z")
_BEFORE, _AFTER = (
    compile_words(lead + "(?:" + "|".join(f"(?P<{bound}>{forms})" for bound, forms in WORDS[name].items()) + ")" + end)
    for name, lead, end in (("before", r"(?<![A-Za-zÀ-ÿ가-힣])", r"(?:\s(?:the|year|about|around))*\s?\Z"),
                            ("after", r"\s?(?:[명개건권대]|[人個个名])?\s?", "(?![a-z])")))
_RANGE, _AND = compile_words(r"\s?(?:[-–—~〜]|to|bis|à|through|until)\s?"), compile_words(" (?:and|und|et|y) ")
_JOINT = compile_words(r",?\s?(?:and |und |et |y )?")
_STRICT = frozenset(("bc", "decade"))  # a number with one of these units never equals a number without it


@dataclass(frozen=True, slots=True)
class Amount:
    """A number or date of a text, with its unit and its bound."""

    start: int
    end: int
    value: TextValue
    unit: str = ""  # empty if there is none
    factor: Decimal = Decimal(1)  # size of the unit in basic units
    bound: str = ""  # `lt`, `le`, `gt` or `ge`; `pair` for the ends of a range

    @property
    def word(self) -> str:
        """Return a word that is the same for equal amounts."""
        size = self.value.token if self.value.number is None else f"{(self.value.number * self.factor).normalize():f}"
        return f"#{self.bound}{size}{self.unit}"

    def states(self, gold: Amount, alone: bool) -> bool:
        """Return whether this amount equals the gold one, also in another unit or without one, or is more exact. If it
        is `alone` in its text, its percent sign may be missing."""
        ours, theirs = self.value.number, gold.value.number
        if self.bound != gold.bound or ours is None or theirs is None:
            return self.bound == gold.bound and self.unit == gold.unit and self.value.implies(gold.value)
        if self.unit == gold.unit:
            return ours * self.factor == theirs * gold.factor
        if (self.unit and gold.unit) or {self.unit, gold.unit} & _STRICT:
            return False
        if gold.unit == "%":
            return ours * 100 == theirs or (alone and ours == theirs)
        return ours == theirs * 100 if self.unit == "%" else ours == theirs


def units_of(text: str) -> set[str]:
    """Return the basic units that a text names."""
    return {WORDS["units"][int((found.lastgroup or "")[1:])][0] for found in _UNIT_WORD.finditer(text)}


def find_amounts(text: str) -> list[Amount]:
    """Return the amounts of a text in order. The text must come from `read_plainly`."""
    found = [_read_amount(text, value) for value in find_values(text)]
    for place in range(len(found) - 2, -1, -1):  # 1 hour and 30 minutes
        one, other = found[place:place + 2]
        if one.value.number and other.value.number and one.unit == other.unit and one.factor > other.factor and (
                _JOINT.fullmatch(text, one.end, other.start)):
            size = one.value.number * (one.factor / other.factor) + other.value.number
            found[place:place + 2] = [replace(other, start=one.start, value=replace(other.value, number=size))]
    for place, (one, other) in enumerate(pairwise(found)):
        before, between = _BEFORE.search(text[max(0, one.start - 40):one.start]), text[one.end:other.start]
        opening = before[0] if before is not None and before["pair"] else ""
        if not one.bound + other.bound and (_RANGE.fullmatch(between) or (opening and _AND.fullmatch(between))):
            unit = one if one.unit else other
            found[place] = replace(one, start=one.start - len(opening), end=other.start, unit=unit.unit,
                                   factor=unit.factor, bound="pair")
            found[place + 1] = replace(other, bound="pair")
    return found


def _read_amount(text: str, value: TextValue) -> Amount:
    start, end, number, unit, factor, bound = value.start, value.end, value.number, "", Decimal(1), ""
    digits = next((at for at in range(start, end) if text[at].isdecimal() or text[at] == "."), start)
    money = _SYMBOL.search(text[:digits], max(0, digits - 6))
    form = "%" if value.percent else money[1] if money is not None else ""
    start = start if money is None else min(start, money.start())
    after = _UNIT.match(text, end)
    kind = _UNIT.match(form) if form else after
    if kind is not None and number is not None:
        unit, size, _ = WORDS["units"][int((kind.lastgroup or "")[1:])]
        decade = not form and text[end] == "s" and number >= 100 and not number % 10
        plain_year = size == 12 and number >= 1000
        unit, factor = ("decade", factor) if decade else ("", factor) if plain_year else (unit, Decimal(str(size)))
        end = after.end() if after is not None and not value.percent else end
    before, behind = _BEFORE.search(text[max(0, start - 40):start]), _AFTER.match(text, end)
    dated = value.date is not None or (number is not None and not unit and 1000 <= number <= 2100)
    if before is not None and not before["pair"] and (dated or before[0][:2].lower() != "by"):
        bound, start = before.lastgroup or "", start - len(before[0])
    elif behind is not None:
        bound, end = behind.lastgroup or "", behind.end()
    return Amount(start, end, value, unit, factor, bound)

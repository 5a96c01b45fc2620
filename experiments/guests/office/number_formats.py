"""Write numbers as a spreadsheet shows them: apply a cell's number format, as in `00000` or `d mmm yyyy`.

The rules are those of ECMA-376, part 1, section 18.8.31. Names of months and days are English. Date formats that
follow the reader's computer (14 to 17 and 22) give ISO dates, because a file does not say which computer.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import NamedTuple

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_(?P<space>.)|\*(?P<fill>.)|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<general>General)|(?P<noon>AM/PM|A/P)|(?P<exponent>[Ee][+-])|(?P<date>[yY]+|[mM]+|[dD]+|[hH]+|[sS]+|(?<![A-Za-z])e+(?![A-Za-z]))"
    r"|(?P<tenths>\.0+(?=[^0#?]|$))|(?P<digit>[0#?.,])|(?P<other>.)", re.DOTALL)
_SECTIONS = re.compile(r'(?:"[^"]*"?|\\.|\[[^\]]*\]|[^;"\\\[]|\\|\[)*', re.DOTALL)
_CONDITION = re.compile(r"(<>|<=|>=|=|<|>)(-?\d+(?:\.\d+)?)")
_COMPARE = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_FRACTION = re.compile(r"(?:(?P<whole>[0#?]+)(?P<gap>\D*?))?(?P<top>[0#?]+) ?/ ?(?P<bottom>[0#?]+|\d{1,5})")
_LOCAL = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy": "yyyy-mm-dd", "m/d/yyyy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd h:mm"}
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MAX_PLACES = 300


class Token(NamedTuple):
    """A part of a number format: what kind it is, and its text."""

    kind: str
    text: str


def format_number(value: float, code: str, year_1904: bool = False) -> str:
    """Write a number in a number format. `year_1904` tells whether days are counted from 1904 instead of 1900.

        format_number(2494, "00000") == "02494"
    """
    sections = _split_sections(_LOCAL.get(code, code))
    number, condition = _choose_section(value, sections)
    tokens = sections[number]
    shown = abs(value) if _drops_sign(number, condition) else value
    if any(token.kind == "date" for token in tokens):
        if shown < 0 or shown >= 2_958_466:  # the year 10000
            return format_general(value)
        return _write_date(shown, tokens, year_1904).strip()
    text = _write_number(abs(shown), tokens)
    sign = "-" if shown < 0 and re.search("[1-9]", text) else ""
    return " ".join((sign + text).split())


def format_text(text: str, code: str) -> str:
    """Write a text in a number format, as in `@" kg"`."""
    sections = _split_sections(code)
    tokens = sections[3] if len(sections) > 3 else sections[-1]
    if len(sections) > 3 or any(token.text == "@" and token.kind == "other" for token in tokens):
        return "".join(text if token.text == "@" and token.kind == "other" else token.text for token in tokens).strip()
    return text


def format_general(value: float) -> str:
    """Write a number without a format, with at most 15 significant digits."""
    return f"{value:.15g}".upper()


@lru_cache(maxsize=1_000)
def _split_sections(code: str) -> list[list[Token]]:
    texts: list[str] = []
    at = 0
    while at <= len(code) and len(texts) < 4:
        found = _SECTIONS.match(code, at)
        assert found is not None
        texts.append(found[0])
        at = found.end() + 1
    return [_read_section(text) for text in texts]


def _read_section(text: str) -> list[Token]:
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text[:_MAX_PLACES]):
        kind, part = found.lastgroup or "other", found[found.lastgroup or 0]
        if kind == "bracket":
            tokens.append(_read_bracket(part))
        elif kind == "space":
            tokens.append(Token("literal", " "))
        elif kind in ("quoted", "escaped"):
            tokens.append(Token("literal", part))
        elif kind == "tenths":
            seconds = any(token.kind == "date" and token.text[0].lower() == "s" for token in tokens[-1:])
            tokens += [Token("tenths", part)] if seconds else [Token("digit", each) for each in part]
        elif kind != "fill":
            tokens.append(Token("date" if kind == "noon" else kind, part))
    return tokens


def _read_bracket(part: str) -> Token:
    if part.startswith("$"):
        return Token("literal", part[1:].partition("-")[0])
    if part and not part.lower().strip("hms") and len(set(part.lower())) == 1:
        return Token("date", f"[{part.lower()}]")
    return Token("condition" if _CONDITION.fullmatch(part) else "ignored", part if _CONDITION.fullmatch(part) else "")


def _choose_section(value: float, sections: list[list[Token]]) -> tuple[int, str]:
    """Return the number of the section for a value, and its condition, as in `>=100`."""
    numeric = sections[:3]
    conditions = [next((token.text for token in tokens if token.kind == "condition"), "") for tokens in numeric]
    if any(conditions[:2]):
        for number, condition in enumerate(conditions):
            if found := _CONDITION.fullmatch(condition):
                if _COMPARE[found[1]](value, float(found[2])):
                    return number, condition
            elif number == len(numeric) - 1 or (number == 1 and value < 0):
                return number, "<0" if number == 1 and value < 0 and len(numeric) > 2 else ""
        return len(numeric) - 1, ""
    if value < 0 and len(numeric) > 1:
        return 1, "<0"
    return (2, "") if value == 0 and len(numeric) > 2 else (0, "")


def _drops_sign(number: int, condition: str) -> bool:
    found = _CONDITION.fullmatch(condition)
    return (number > 0 and condition == "<0") or (found is not None and found[1][0] == "<" and found[1] != "<>"
                                                and float(found[2]) <= 0)


def _write_number(value: float, tokens: list[Token]) -> str:
    if any(token.kind == "general" or (token.kind == "other" and token.text == "@") for token in tokens):
        return "".join(format_general(value) if token.kind == "general" or token.text == "@"
                       else "" if token.kind == "condition" else token.text for token in tokens)
    exact = Decimal(f"{value:.15g}") * 100 ** sum(token == ("other", "%") for token in tokens)
    if any(token.kind == "exponent" for token in tokens):
        return _write_scientific(exact, tokens)
    pattern = "".join(token.text if token.kind in ("digit", "other") else "\0" for token in tokens)
    fraction = _FRACTION.search(pattern)
    if fraction is not None:
        first, last = fraction.span()  # a literal is one character of the pattern
        outside = [token.text for token in tokens], pattern
        if len(outside[0]) == len(pattern):
            return "".join(outside[0][:first]) + _write_fraction(exact, fraction) + "".join(outside[0][last:])
    return _write_places(exact, tokens)


def _write_places(exact: Decimal, tokens: list[Token]) -> str:
    """Write a number in the digit places of a section, between its literals."""
    places = [(at, token.text) for at, token in enumerate(tokens) if token.kind == "digit"]
    dot = next((at for at, text in places if text == "."), len(tokens))
    whole = [at for at, text in places if text in "0#?" and at < dot]
    decimals = [at for at, text in places if text in "0#?" and at > dot]
    end = max(whole, default=-1)
    commas = [at for at, text in places if text == ","]
    for at in commas:
        exact = exact / 1000 if whole and (end < at < dot or at > max(decimals, default=at)) else exact
    grouped = any(at < end for at in commas)
    rounded = exact.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP) if exact.adjusted() < 300 else exact
    digits, _, rest = f"{rounded:f}".partition(".")
    digits = digits.lstrip("0")
    written = dict(_write_whole(digits, [(at, tokens[at].text) for at in whole], grouped))
    keep = len(rest.rstrip("0"))
    for index, at in enumerate(decimals):
        sign = tokens[at].text
        shows = index < keep or any(tokens[later].text == "0" for later in decimals[index:])
        written[at] = rest[index] if shows else {"?": " "}.get(sign, "")
    if dot < len(tokens):
        written[dot] = ("" if whole else digits) + "."
    parts = [written.get(at, "") if token.kind == "digit" else "" if token.kind == "condition" else token.text
             for at, token in enumerate(tokens)]
    return "".join(parts)


def _write_whole(digits: str, places: list[tuple[int, str]], grouped: bool) -> Iterable[tuple[int, str]]:
    """Yield what is written in each place before the decimal point. The first one has all digits that are left."""
    zero = False
    for index, (at, sign) in enumerate(places):
        left = len(places) - index  # places from this one to the last
        last = max(len(digits) - left + 1, 0)
        part = digits[:last] if index == 0 else digits[last - 1:last] if last else ""
        zero = zero or sign == "0"
        text = part or ("0" if zero else " " if sign == "?" else "")
        if grouped:
            end = left - 1  # digits after this place
            text = "".join(each + ("," if (rest := end + len(text) - 1 - number) and rest % 3 == 0 and each.isdigit()
                                   else "") for number, each in enumerate(text))
        yield at, text


def _write_scientific(exact: Decimal, tokens: list[Token]) -> str:
    at = next(index for index, token in enumerate(tokens) if token.kind == "exponent")
    head, sign, tail = tokens[:at], tokens[at].text, tokens[at + 1:]
    dot = next((index for index, token in enumerate(head) if token.text == "."), len(head))
    width = max(1, sum(token.kind == "digit" and token.text in "0#?" for token in head[:dot]))
    decimals = sum(token.kind == "digit" and token.text in "0#?" for token in head[dot:])
    power = exact.adjusted() // width * width if exact else 0
    step = Decimal(1).scaleb(-decimals)
    if exact and exact.scaleb(-power).quantize(step, ROUND_HALF_UP) >= 10 ** width:
        power += width
    places = sum(token.kind == "digit" for token in tail)
    literal = "".join(token.text for token in tail if token.kind not in ("digit", "condition"))
    return (_write_places(exact.scaleb(-power), head) + sign[0].upper()
            + ("-" if power < 0 else "+" if sign[1] == "+" else "") + str(abs(power)).zfill(places) + literal)


def _write_fraction(exact: Decimal, pattern: re.Match[str]) -> str:
    bottom = pattern["bottom"]
    value = Fraction(exact)
    whole = int(value) if pattern["whole"] else 0
    rest = value - whole
    if bottom[0] in "0#?":
        part = rest.limit_denominator(10 ** min(len(bottom), 7) - 1)
        top, under = part.numerator, part.denominator
    else:
        under = max(int(bottom), 1)
        top = int(rest * under + Fraction(1, 2))
    if pattern["whole"] and top == under:
        whole, top = whole + 1, 0
    if pattern["whole"] and not top:
        return str(whole)
    shown = f"{whole} " if whole or "0" in (pattern["whole"] or "") else ""
    return f"{shown}{top}/{under}"


def _write_date(value: float, tokens: list[Token], year_1904: bool) -> str:
    dates = [at for at, token in enumerate(tokens) if token.kind == "date"]
    tenths = max((len(token.text) - 1 for token in tokens if token.kind == "tenths"), default=0)
    seconds = any("s" in tokens[at].text.lower() for at in dates)
    unit = 10 ** tenths if seconds else 1000  # Excel rounds to the last unit that it shows, but never minutes or hours
    count = int(Decimal(repr(value)) * 86_400 * unit + Decimal("0.5"))
    days, left = divmod(count, 86_400 * unit)
    hour, minute = left // unit // 3_600, left // unit // 60 % 60
    noon = any(tokens[at].text in ("AM/PM", "A/P") for at in dates)
    parts: list[str] = []
    for at, token in enumerate(tokens):
        if token.kind == "tenths":
            parts.append("." + str(left % unit).zfill(tenths))
        elif token.kind != "date":
            parts.append("" if token.kind in ("condition", "ignored") else token.text)
        elif token.text in ("AM/PM", "A/P"):
            parts.append(token.text.split("/")[hour >= 12])
        elif token.text.startswith("["):
            size = {"h": 3_600, "m": 60, "s": 1}[token.text[1]]
            parts.append(str(count // unit // size).zfill(len(token.text) - 2))
        elif token.text[0].lower() == "h":
            parts.append(str((hour - 1) % 12 + 1 if noon else hour).zfill(min(len(token.text), 2)))
        elif token.text[0].lower() == "s":
            parts.append(str(left // unit % 60).zfill(min(len(token.text), 2)))
        elif token.text[0].lower() == "m" and _is_minute(at, dates, tokens):
            parts.append(str(minute).zfill(min(len(token.text), 2)))
        else:
            parts.append(_write_day(days, token.text.lower(), year_1904))
    return "".join(parts)


def _is_minute(at: int, dates: list[int], tokens: list[Token]) -> bool:
    place = dates.index(at)
    before = [tokens[each].text.lower().strip("[]") for each in dates[:place] if tokens[each].text[0] not in "Aa"]
    after = [tokens[each].text.lower().strip("[]") for each in dates[place + 1:]]
    return len(tokens[at].text) <= 2 and ("".join(before[-1:])[:1] == "h" or "".join(after[:1])[:1] == "s")


def _write_day(days: int, text: str, year_1904: bool) -> str:
    if year_1904:
        day = datetime(1904, 1, 1) + timedelta(days)
    else:  # 1900 has a 29 February, day 60, in this count
        day = datetime(1899, 12, 30) + timedelta(days + (days < 60))
    if text[0] in "ye":
        return f"{day.year % 100:02}" if len(text) <= 2 and text[0] == "y" else str(day.year)
    if text[0] == "d":
        number = 29 if days == 60 and not year_1904 else 0 if days == 0 and not year_1904 else day.day
        name = _DAYS[day.weekday()]
        return str(number).zfill(len(text)) if len(text) <= 2 else name[:3] if len(text) == 3 else name
    month = _MONTHS[1 if days == 60 and not year_1904 else 0 if days == 0 and not year_1904 else day.month - 1]
    return {1: str(_MONTHS.index(month) + 1), 2: f"{_MONTHS.index(month) + 1:02}", 3: month[:3], 5: month[0]}.get(
        len(text), month)

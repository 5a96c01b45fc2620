"""Write the numbers that Word puts before headings and list items, as in `1.`, `2.3` and `(a)`.

The rules are those of ECMA-376, part 1, section 17.9. Lists that share a definition (`w:abstractNum`) count together,
unless an override starts one anew.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_LEVELS = 9
_MAX_DEPTH = 20  # of styles that are based on others
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
_SERIES = {
    "ganada": "가나다라마바사아자차카타파하", "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳", "decimalEnclosedCircleChinese": "①②③④⑤⑥⑦⑧⑨⑩",
    "aiueo": "アイウエオカキクケコサシスセソタチツテト", "iroha": "イロハニホヘトチリヌルヲワカヨタレソ",
    "russianLower": "абвгдежзиклмнопрстуфхцчшщыэюя", "russianUpper": "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸"}
_CHINESE = frozenset({"chineseCounting", "chineseCountingThousand", "ideographDigital", "japaneseCounting",
                      "taiwaneseCounting", "taiwaneseCountingThousand", "chineseLegalSimplified", "koreanCounting"})


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a list: the first number, the format of the number, and the text around it, as in `%1.%2`."""

    start: int = 1
    format: str = "decimal"
    text: str = ""
    suffix: str = "tab"
    restart: int | None = None  # the level, from 1, that starts this one anew; 0 for none, None for all above
    legal: bool = False  # whether all numbers are decimal
    style: str | None = None

    @classmethod
    def read(cls, element: Any) -> _Level:
        restart = _value(element, "lvlRestart")
        return cls(_number(_value(element, "start"), 1), _value(element, "numFmt") or "decimal",
                   _value(element, "lvlText") or "", _value(element, "suff") or "tab",
                   None if restart is None else _number(restart, 0), _is_on(element, "isLgl"),
                   _value(element, "pStyle"))


@dataclass(slots=True)
class _List:
    """A list (`w:num`): its definition, its levels with overrides, and the levels that it starts anew."""

    definition: str
    levels: dict[int, _Level]
    starts: dict[int, int]


@dataclass(frozen=True, slots=True)
class Label:
    """The number of a paragraph. `value` is the plain number if the text is only that and a full stop, as in `3.`."""

    text: str
    value: int | None
    bullet: bool
    list: str
    level: int


@dataclass(slots=True)
class Numbering:
    """Counts the paragraphs of a document, in order."""

    lists: Mapping[str, _List]
    styles: Mapping[str, tuple[str | None, int | None, str | None]]  # list, level and base of each paragraph style
    _counts: dict[str, dict[int, int]] = field(default_factory=dict)
    _started: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def read(cls, numbering: Any, styles: Any) -> Numbering:
        """Read the roots of the parts `numbering.xml` and `styles.xml`, either of which may be None."""
        known: dict[str, tuple[str | None, int | None, str | None]] = {}
        linked: dict[str, str] = {}
        for style in () if styles is None else styles.iterchildren(f"{WORD}style"):
            properties = style.find(f"{WORD}pPr/{WORD}numPr")
            id = style.get(f"{WORD}styleId", "")
            known[id] = (*_read_properties(properties), _value(style, "basedOn"))
            if style.get(f"{WORD}type") == "numbering" and properties is not None:
                linked[id] = _value(properties, "numId") or ""
        return cls({} if numbering is None else _read_lists(numbering, linked), known)

    def next_label(self, paragraph: Any) -> Label | None:
        """Count a `w:p` element, and return its number; None if it has none."""
        list_id, level = self._place(paragraph)
        found = self.lists.get(list_id or "")
        if found is None or level not in found.levels:
            return None
        shape = found.levels[level]
        if shape.format == "bullet":
            return Label("", None, True, list_id or "", level)
        counts = self._counts.setdefault(found.definition, {})
        if level in found.starts and (list_id or "", level) not in self._started:
            counts[level] = found.starts[level]
        else:
            counts[level] = counts.get(level, shape.start - 1) + 1
        self._started.add((list_id or "", level))
        for deeper in range(level + 1, _LEVELS):
            restart = found.levels[deeper].restart if deeper in found.levels else None
            if restart is None or level < restart:
                counts.pop(deeper, None)

        def number(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            one = found.levels.get(at, _Level())
            format = "decimal" if shape.legal and one.format != "none" else one.format
            return format_count(counts.get(at, found.starts.get(at, one.start)), format)

        text = re.sub("%([1-9])", number, shape.text)
        simple = shape.format == "decimal" and shape.text == f"%{level + 1}."
        text += " " if text and shape.suffix != "nothing" else ""
        return Label(text, counts[level] if simple else None, False, list_id or "", level)

    def _place(self, paragraph: Any) -> tuple[str | None, int]:
        """Return the list and level of a paragraph: its own, or those of its style."""
        properties = paragraph.find(f"{WORD}pPr")
        list_id, level = (None, None) if properties is None else _read_properties(properties.find(f"{WORD}numPr"))
        style = None if properties is None else _value(properties, "pStyle")
        named = style
        for _ in range(_MAX_DEPTH):
            if style not in self.styles or (list_id is not None and level is not None):
                break
            from_list, from_level, style = self.styles[style or ""]
            list_id, level = (from_list if list_id is None else list_id), (from_level if level is None else level)
        if level is None and list_id in self.lists:
            levels = self.lists[list_id or ""].levels
            level = next((at for at, one in levels.items() if named and one.style == named), 0)
        return list_id, level or 0


def _read_lists(root: Any, linked: Mapping[str, str]) -> dict[str, _List]:
    definitions: dict[str, dict[int, _Level]] = {}
    links: dict[str, str] = {}
    for each in root.iterchildren(f"{WORD}abstractNum"):
        id = each.get(f"{WORD}abstractNumId", "")
        definitions[id] = {_number(level.get(f"{WORD}ilvl"), 0): _Level.read(level)
                           for level in each.iterchildren(f"{WORD}lvl")}
        if link := _value(each, "numStyleLink"):
            links[id] = linked.get(link, "")
    nums = list(root.iterchildren(f"{WORD}num"))
    of_list = {num.get(f"{WORD}numId", ""): _value(num, "abstractNumId") or "" for num in nums}
    lists: dict[str, _List] = {}
    for num in nums:
        id = num.get(f"{WORD}numId", "")
        definition = of_list[id]
        for _ in range(_MAX_DEPTH):
            definition = of_list.get(links.get(definition, ""), definition)
        levels, starts = dict(definitions.get(definition, {})), {}
        for override in num.iterchildren(f"{WORD}lvlOverride"):
            at = _number(override.get(f"{WORD}ilvl"), 0)
            own, start = override.find(f"{WORD}lvl"), _value(override, "startOverride")
            if own is not None:
                levels[at] = _Level.read(own)
            if start is not None:
                starts[at] = _number(start, 1)
                levels[at] = replace(levels.get(at, _Level()), start=starts[at])
        lists[id] = _List(definition, levels, starts)
    return lists


def format_count(number: int, format: str) -> str:
    """Write a number in a number format of Word, as in `lowerRoman`. Unknown formats are decimal."""
    if format in ("none", "bullet"):
        return ""
    if format in ("lowerLetter", "upperLetter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 100)
        return letter if format == "lowerLetter" else letter.upper()
    if format in ("lowerRoman", "upperRoman") and 0 < number < 100_000:
        left, text = number, ""
        for value, sign in _ROMAN:
            text += sign * (left // value)
            left %= value
        return text if format == "upperRoman" else text.lower()
    if format == "ordinal":
        ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
        return f"{number}{ending}"
    if format in _CHINESE and 0 < number < 100:
        digits = "〇一二三四五六七八九"
        if format == "ideographDigital":
            return "".join(digits[int(each)] for each in str(number))
        tens, ones = divmod(number, 10)
        return (digits[tens] if tens > 1 else "") + ("十" if tens else "") + (digits[ones] if ones else "")
    if format in _SERIES and 0 < number <= len(_SERIES[format]):
        return _SERIES[format][number - 1]
    others = {"decimalZero": f"{number:02}", "numberInDash": f"- {number} -", "hex": f"{number:X}"}
    return others.get(format, str(number))


def _read_properties(element: Any) -> tuple[str | None, int | None]:
    """Return the list and level of a `w:numPr` element, each None if it is not stated."""
    if element is None:
        return None, None
    level = _value(element, "ilvl")
    return _value(element, "numId"), None if level is None else _number(level, 0)


def _value(element: Any, name: str) -> str | None:
    found = element.find(f"{WORD}{name}")
    value: str | None = None if found is None else found.get(f"{WORD}val")
    return value


def _is_on(element: Any, name: str) -> bool:
    return element.find(f"{WORD}{name}") is not None and _value(element, name) not in ("0", "false")


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 7 else otherwise

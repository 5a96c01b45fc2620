"""Read tables, and sentences with numbers or dates, as typed tables that a program can ask about.

A typed table has named entities, and fields with one value per entity. In a table whose columns are periods, such as a
financial statement, the periods are the entities and the lines are the fields.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from ragbed.documents.numbers import find_values
from ragbed.documents.types import Document, normalize
from ragbed.experiments.guests.formats.document_tables import SourceTable, find_tables
from ragbed.experiments.guests.formats.table_totals import find_totals
from ragbed.strategies.normalizing import normalize_values

Kind = Literal["number", "date", "text"]
Date = tuple[int, int, int]
SENTENCE, VALUE = "sentence", "value"
BLANK = "____"
GONE = "[redacted]"  # replaces a removed value; a dash would mean zero in a financial statement
_EMPTY = re.compile(r"(?:US\$|[$€£¥₩])?\s*[-—–−.…]*\s*%?|\(?\*+\)?|\[redacted\]|n\s?[./]?\s?[am]\.?|not (?:meaningful|"
                    r"applicable|available)|k\.\s?a\.|nil|nan|none|tb[ad]|unknown|해당\s?없음|없음|미정", re.IGNORECASE)
_FOOTNOTE = re.compile(r"(?<=[\d%)])\s*\^?(?:\((?:\d|[a-z])\)|[*†‡§¹²³⁴-⁹⁰]+)$")
NUMBER = re.compile(r"(?P<before>[(\s]*(?:US\$|[$€£¥₩])?\s*[(\s]*[-−–△▲+]?\s*(?:US\$|[$€£¥₩])?\s*)"
                    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)"
                    r"(?P<after>\s*\)?\s*%?\s*(?:[^\W\d_]{1,12})?\s*\)?)")
_NO_UNITS = frozenset({"st", "nd", "rd", "th", "월", "일", "년", "시", "위", "호", "차", "am", "pm"})
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_PERIOD = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_WHEN = re.compile(r"\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\b|[\d,\s년월일]", re.IGNORECASE)
_SCALE = re.compile(r"\(?\b(?:in )?(?:thousands?|millions?|billions?)\b[^)]*\)?|\(unaudited\)|\([^()]*\)$",
                    re.IGNORECASE)
_SCALES = re.compile(r"\b(thousand|million|billion)s?\b|(천|백만|십억|억)\s?원|\b(Tsd|Mio|Mrd)\b", re.IGNORECASE)
_TOTALS = re.compile(r"\b(?:sub|grand )?totals?\b|\bsum(?:me)?\b|gesamt|\bensemble\b|consolidated$|[합총소]\s*계|"
                     r"총\s*합|^계$|[合总總小]\s*[计計]|평균$|average$", re.IGNORECASE)
_FRAGMENT = re.compile(r"[a-z][^A-Z]|[(\d]|[$€£¥₩]")  # begins the second line of a label
_DEDUCTION = re.compile(
    r"\b(?:loss(?:es)?|deficits?|expenses?|costs?|charges?|debts?|liabilit\w+|payables?|paid|(?:re)?payments?|used|outflows?"
    r"|purchases?|decreases?|reductions?|depreciation|amorti[sz]ation|impairments?|allowances?|provisions?|tax(?:es)?|less"
    r"|dividends?|verlust\w*|aufw\w*|\w*kosten|schulden|pertes?|dettes?|pérdidas?|gastos?|deudas?)\b|손실|적자|비용|부채|지출|차입"
    r"|损失|費用|费用|负债|負債", re.IGNORECASE)
_TWO_WAYS = re.compile(r"\([^()\d]{3,}\)|/")
_ORDINAL = re.compile(r"\b(?:ranks?|ranking|picks?|rounds?|no|numbers?|years?|games?|weeks?|pos|position|place|seed|"
                      r"seasons?|episodes?|series|code|id|page|phone|longitude|latitude|geo)\b|#|"
                      r"순위|번호|연도|차수|회차|페이지", re.IGNORECASE)
_AVERAGE = re.compile(r"\b(?:average|avg|mean|rate|ratio|margin|yield|per|percent|percentage|pct)\b|(?<!\d)%|평균|율"
                      r"|비율|률", re.IGNORECASE)
_MAX_NAME, _MAX_TITLE, _MAX_ROWS = 60, 90, 40


@dataclass(frozen=True, slots=True)
class Value:
    """A value as written, with its place in the document's `plain` rendering. It may be a number or a date."""

    text: str
    start: int
    end: int
    number: Decimal | None = None
    date: Date | None = None

    @property
    def empty(self) -> bool:
        return _EMPTY.fullmatch(self.text.strip()) is not None


@dataclass(frozen=True, slots=True)
class Field:
    """A field and its values, one per entity. Mixed kinds or units are `text`. `unit` is the text around numbers."""

    name: str
    values: tuple[Value, ...]
    kind: Kind
    unit: tuple[str, str] = ("", "")

    @property
    def is_measure(self) -> bool:
        """Whether differences are meaningful: the field is not a rank, a year or an identifier, and its sign is clear.
        """
        return self.kind == "number" and not _ORDINAL.search(self.name) and self.is_sign_clear

    @property
    def is_sign_clear(self) -> bool:
        """Whether a negative value is less of what the field's name says. A loss or a debt in brackets is more of it.
        """
        numbers = [value.number for value in self.values if value.number]
        if not any(number < 0 for number in numbers):
            return True
        bracketed = max(numbers) < 0 and any("(" in value.text for value in self.values)
        return not bracketed and not is_deduction(self.name)

    @property
    def is_summable(self) -> bool:
        """Whether sums and ratios are meaningful."""
        return self.is_measure and self.is_amount

    @property
    def is_amount(self) -> bool:
        """Whether values are amounts, which the table's scale applies to, and not shares or averages."""
        return self.kind == "number" and self.unit[1] != "%" and not _AVERAGE.search(self.name)


@dataclass(frozen=True, slots=True)
class TypedTable:
    """Entities and their fields, from one table or from the sentences of a passage.

    Attributes:
        title: what questions call it.
        start, end: its place in the document's `plain` rendering.
        key: title of the column that names the entities; empty for periods, SENTENCE for sentences.
        spans: for sentences, the place of each.
        scale: such as `million`, if the header or the text above states it.
        rows: all cells below the header, totals included.
    """

    document: str
    title: str
    start: int
    end: int
    key: str
    entities: tuple[str, ...]
    fields: Mapping[str, Field]
    spans: tuple[tuple[int, int], ...] = ()
    scale: str = ""
    rows: Sequence[Sequence[Value]] = ()

    def at(self, name: str, entity: str) -> Value:
        """Return a value, which may be empty."""
        return self.fields[name].values[self.entities.index(entity)]

    @property
    def is_comparable(self) -> bool:
        """Whether entities can be compared. Periods must have the same length and kind."""
        return bool(self.key) or len({_WHEN.sub("", one).casefold() for one in self.entities}) == 1

    def fields_where(self, test: Callable[[Field], bool]) -> list[Field]:
        """Return the fields that pass a test, in order. Shares and averages are left out if the table has two amounts
        that they may follow from."""
        rated = sum(one.is_amount and not _ORDINAL.search(one.name) for one in self.fields.values()) < 2
        return [one for one in self.fields.values() if test(one) and (rated or one.is_amount or one.kind != "number")]

    def replace_values(self, read: Callable[[str, Value], str]) -> TypedTable:
        """Return the table with each value's text replaced by `read(entity, value)`, and parsed again."""
        return replace(self, fields={name: _infer_field(self.key, name, [
            replace(value, text=read(entity, value), number=None, date=None)
            for entity, value in zip(self.entities, one.values, strict=True)]) for name, one in self.fields.items()})


def parse_number(text: str) -> tuple[Decimal, tuple[str, str]] | None:
    """Parse a text that is one number. Return the number, and the text before and after it. Parentheses mean that it is
    negative. Scale words are units: `3.2 million` gives 3.2. Return None for other texts and for ordinals such as
    `3rd`."""
    if (found := NUMBER.fullmatch(text.strip())) is None:
        return None
    before, after = found["before"], found["after"]
    unit = re.sub(r"[\s(\-−–△▲+]", "", before), re.sub(r"[\s)]", "", after)
    if before.count("(") != after.count(")") or before.count("(") > 1 or unit[1].casefold() in _NO_UNITS:
        return None
    number = Decimal(found["digits"].replace(",", ""))
    return -number if re.search(r"[(\-−–△▲]", before) else number, unit


def _parse_date(text: str) -> Date | None:
    if _YEAR.fullmatch(text.strip()):
        return int(text), 0, 0
    found = find_values(text)
    if len(found) != 1 or found[0].date is None or found[0].token != normalize_values(text):
        return None
    year, month, day = found[0].date
    return (year, month or 0, day or 0) if year else None


def _infer_field(key: str, name: str, raw: Sequence[Value]) -> Field:
    """Return a field with the kind that all its values have. In sentences, each value has its own kind."""
    if key == SENTENCE:
        return Field(name, tuple(_infer_field("", name, [value]).values[0] for value in raw), "text")
    full = [value for value in raw if not value.empty]
    dates = {id(value): _parse_date(value.text) for value in full}
    if full and all(dates.values()) and len({tuple(map(bool, one)) for one in dates.values() if one}) == 1:
        return Field(name, tuple(replace(value, date=dates.get(id(value))) for value in raw), "date")
    numbers = {id(value): parse_number(value.text) for value in full}
    found = [one for one in numbers.values() if one]
    before, after = {unit[0] for _, unit in found} - {""}, {unit[1] for _, unit in found}
    if full and len(found) == len(full) and len(before) < 2 and len(after) == 1:
        return Field(name, tuple(replace(value, number=one[0] if (one := numbers.get(id(value))) else None)
                                 for value in raw), "number", ("".join(before), "".join(after)))
    return Field(name, tuple(raw), "text")


@lru_cache(maxsize=4096)
def read_tables(document: Document) -> tuple[TypedTable | str, ...]:
    """Return each table of a document as a typed table, or the reason why no question uses it."""
    return tuple(_read_table(document, table) for table in find_tables(document))


def _read_table(document: Document, table: SourceTable) -> TypedTable | str:
    if table.plain is None:
        return "the table is inside a list"
    if any("|" in cell.text for row in table.rows for cell in row.cells):
        return "a cell contains a vertical bar"
    if not 3 <= len(table.rows) <= _MAX_ROWS:
        return f"fewer than 3 rows or more than {_MAX_ROWS}"
    rows = [[_read_cell(document.plain, *cell.plain) if cell.plain else Value("", 0, 0)
             for cell in row.cells] for row in table.rows]
    above = re.findall(r"\bin (?:thousand|million|billion)s\b",
                       document.plain[:table.plain[0]].rstrip().rpartition("\n")[2])
    made = TypedTable(document.id, _table_title(document, table.caption), *table.plain, "", (), {}, rows=rows,
                      scale=find_scale(" ".join((table.caption, *table.header, *above))))
    periods = [place for place, name in enumerate(table.header) if place and _PERIOD.search(name)]
    return _read_statement(made, table.header, rows, periods) if len(periods) > 1 else _read_records(made,
                                                                                                     table.header, rows)


def _read_cell(text: str, start: int, end: int) -> Value:
    """Return a cell, and a number without its footnote mark."""
    whole = text[start:end]
    bare = _FOOTNOTE.sub("", whole)
    kept = bare if parse_number(bare) else whole
    return Value(kept, start, start + len(kept))


def is_deduction(name: str) -> bool:
    """Return whether a name says that something is taken away, such as a loss, and does not also say the opposite."""
    return _DEDUCTION.search(name) is not None and not _TWO_WAYS.search(name)


def find_scale(text: str) -> str:
    """Return the scale word in a text, such as `million` in `$ in millions`; empty if there is none."""
    found = _SCALES.search(text)
    return next(filter(None, found.groups())).lower() if found else ""


def _read_statement(made: TypedTable, header: Sequence[str], rows: Sequence[Sequence[Value]],
                    periods: Sequence[int]) -> TypedTable | str:
    """Read a table whose columns are periods. The periods become the entities, and the rows the fields."""
    names = tuple(" ".join(_SCALE.sub(" ", header[place]).split()) or header[place] for place in periods)
    if len(set(names)) < len(names):
        return "two columns have the same name"
    if any(re.search(r"[^\w)%’']$|\b([^\W\d]{3,})\b.* \1\b", one) or any(f"{one} " in other for other in names)
           for one in names):
        return "a column's name is cut or joined from two"
    if any(row[place].text for row in rows for place in range(1, len(header)) if place not in periods):
        return "a column is computed from others"
    if any(not row[0].text and any(row[place].text for place in periods) for row in rows):
        return "a row without a name"
    labels = Counter(_line_label(row[0].text) for row in rows)
    fields = [_infer_field("", row[0].text, [row[place] for place in periods]) for before, row, after in zip(
        [[], *rows], rows, [*rows[1:], []], strict=False) if labels[_line_label(row[0].text)] == 1
              and not _TOTALS.search(row[0].text) and not _is_wrapped(before, row, after)]
    kept = {one.name: one for one in fields if one.kind == "number" and 2 < len(one.name) <= _MAX_NAME}
    return replace(made, entities=names, fields=kept) if len(kept) > 1 else "too few lines with numbers"


def _is_wrapped(before: Sequence[Value], row: Sequence[Value], after: Sequence[Value]) -> bool:
    """Return whether a line's name goes on in the next line, or began in the one before, as in `$(32), and $5`."""
    begun, follows = ("" if any(value.text for value in line[1:]) else "".join(value.text for value in line[:1])
                      for line in (before, after))
    name = row[0].text
    return bool((begun and not begun.endswith(":") and _FRAGMENT.match(name))
                or re.match(r"[a-z][^A-Z]|[$€£¥₩]", follows)
                or re.match(r"[$€£¥₩]|.*(?:[,(–-]|\b(?:of|and|the|for|to|in|by|on|or))$", name))


def find_sums(table: TypedTable) -> list[tuple[Value, ...]]:
    """Return groups of cells in which each can be computed from the others, such as a total with its
    parts, the largest number last. The first column has names, not numbers."""
    cells = [value for row in table.rows for value in row]
    rows = [[None, *(found[0] if (found := parse_number(value.text)) else None for value in row[1:])]
            for row in table.rows]
    sizes = [abs(number or Decimal(0)) for row in rows for number in row]
    return [tuple(cells[at] for at in sorted(group, key=lambda at: sizes[at])) for group in find_totals(rows)]


def _line_label(text: str) -> str:
    """Return a line's name without brackets: `Income` and `Income (loss)` count as the same line."""
    return re.sub(r"\([^()]*\)", "", text).strip().casefold()


def _read_records(made: TypedTable, header: Sequence[str], rows: Sequence[Sequence[Value]]) -> TypedTable | str:
    """Read a table whose rows are entities, named by the first column of distinct texts or distinct dates."""
    columns = [_infer_field("", name, [row[place] for row in rows]) for place, name in enumerate(header)
               if name and header.count(name) == 1 and len(name) <= _MAX_NAME]
    keys = [one for kind in ("text", "date") for one in columns if one.kind == kind and _can_name_rows(one)]
    if not keys:
        return "no column names the rows"
    entities = tuple(value.text for value in keys[0].values)
    if any(map(_TOTALS.search, entities)):
        return "a row of totals, which an edit would make wrong"
    kept = {one.name: one for one in columns if one is not keys[0]}
    return replace(made, key=keys[0].name, entities=entities, fields=kept) if kept else "no column besides the names"


def _can_name_rows(one: Field) -> bool:
    """Return whether the values are distinct, and short names or dates."""
    texts = {value.text.casefold() for value in one.values if not value.empty and 1 < len(value.text) <= _MAX_NAME}
    return len(texts) == len(one.values) and (one.kind == "date" or all(re.search(r"[^\W\d_]", text) for text in texts))


def _table_title(document: Document, caption: str) -> str:
    """Return the title that questions use for a table: the document's title and the caption. If the title has no word,
    or the document has pages, use the file name instead of the title."""
    own = not document.pages and re.search(r"[^\W\d_]{3}", document.title)  # filings in PDF often share a title
    title = re.sub(r"\.\w{2,5}$", "", document.title if own else document.source.rpartition("/")[2])
    adds = caption and caption[0] not in "(*" and caption.casefold() not in title.casefold()
    joined = f"{title}, {caption.rstrip(':')}" if adds else title
    return joined if len(joined) <= _MAX_TITLE else title[:_MAX_TITLE]


_SENTENCE = re.compile(r"(?<=[a-z0-9%)”][.!?])(?<!Ms\.|Mr\.|Dr\.|Co\.|No\.)(?<!Inc\.|Mrs\.|Ltd\.)\s+(?=[A-Z“])|"
                       r"(?<=다\.)\s+|\n\n+")
_PART = re.compile(r"[\d.,'’(/-]____|____(?:[.,]?\d|\)|[-–]\d|\([a-z]\))")
_NAME_BEFORE = re.compile(r"(?:\b\w*[A-Z][\w&’'.-]*|[#§]|[^\W_][-–])\s?$")
_NAME_AFTER = re.compile(r"\([a-z]\)|[-–]\d|[A-Za-z]")
_POINTS = re.compile(r"(?:This|That|These|Those|It|Its|They|Their|He|She|His|Her|Such|However|In addition|Also|"
                     r"The (?:increase|decrease|company)|이|그|또한|따라서|특히|하지만)\b")
_CHANGE = re.compile(r"\b(?:increas|decreas|declin|r[io]se|f[ae]ll|gr[eo]w|up\b|down\b|compared|versus)|증가|감소",
                     re.IGNORECASE)
_MIN_SENTENCE, _MAX_SENTENCE = 40, 260


@lru_cache(maxsize=1)
def _join_lines(document: Document) -> str:
    return document.plain.replace("\n", " ")


@lru_cache(maxsize=4096)
def read_sentences(document: Document, start: int, end: int) -> TypedTable:
    """Return the sentences of a passage that contain a date or a number of several digits, and that are unique in the
    document. A sentence's name is its text with the first date or number blanked out."""
    kept: dict[str, tuple[Value, tuple[int, int]]] = {}
    whole = _join_lines(document)
    for at, text in _split_sentences(document.plain, start, end):
        if normalize("NFKC", text) != text or _POINTS.match(text):
            continue
        found = {text[one.start:one.end]: one for one in find_values(text)}
        if _CHANGE.search(text) and sum(not one.date for one in found.values()) > 2:
            continue  # one of the numbers may follow from the two others
        token = next((token for token, one in found.items() if text.count(token) == 1 and (
            _parse_date(token) if one.date else is_distinctive(token) and parse_number(token)
            and not is_in_name(text, one.start, one.end))), None)
        if token and not _PART.search(masked := text.replace(token, BLANK)) and whole.count(
                max(masked.split(BLANK), key=len)) == 1:
            start_of = at + found[token].start
            kept[masked] = Value(token, start_of, start_of + len(token)), (at, at + len(text))
    fields = {VALUE: _infer_field(SENTENCE, VALUE, [value for value, _ in kept.values()])}
    return TypedTable(document.id, _table_title(document, ""), start, end, SENTENCE, tuple(kept), fields,
                      tuple(span for _, span in kept.values()))


def _split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    at = start
    for stop in [*(match.span() for match in _SENTENCE.finditer(text, start, end)), (end, end)]:
        sentence = text[at:stop[0]].replace("\n", " ")
        if _MIN_SENTENCE <= len(sentence) <= _MAX_SENTENCE and sentence[-1] in ".。" and (
                sentence[0].isupper() or "가" <= sentence[0] <= "힣") and "|" not in sentence:
            yield at, sentence
        at = stop[1]


def is_distinctive(text: str) -> bool:
    """Return whether a value can be recognised elsewhere: it has at least three digits, and is not a year."""
    return sum(map(str.isdecimal, text)) >= 3 and not _YEAR.fullmatch(text.strip())


def is_in_name(text: str, start: int, end: int) -> bool:
    """Return whether a number belongs to a name, such as `Office 365`, `401(k)` or `Exhibit 10.1`."""
    return not re.search(r"[$€£¥₩%]", text[start:end]) and bool(
        _NAME_BEFORE.search(text[max(start - 40, 0):start]) or _NAME_AFTER.match(text, end))
